package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"asset-registry/shared/fault"
)

// byteRange is a range of bytes of a file.
type byteRange struct{ first, length int64 }

// rangeOf returns the range that a request asks for, in a file with the given size in bytes. A GET with a valid Range
// in bytes asks for this range, unless it has an If-Range that differs from the tag of the file. Every other request
// asks for the whole file. rangeOf refuses a range outside the file, and a request for several ranges.
func rangeOf(r *http.Request, tag string, size int64) (byteRange, error) {
	whole := byteRange{0, size}
	if r.Method != http.MethodGet {
		return whole, nil
	}
	if condition := r.Header.Get("If-Range"); condition != "" && condition != tag {
		return whole, nil
	}
	ranges, isBytes := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	switch {
	case !isBytes:
		return whole, nil
	case strings.Contains(ranges, ","):
		return whole, fault.New(fault.Unsatisfiable, fault.Header, "Range", "Ask for one range at a time.")
	}
	first, last, valid := parseRange(ranges, size)
	switch {
	case !valid:
		return whole, nil // RFC 9110, 14.2: an invalid Range is ignored
	case first > last:
		return whole, fault.New(fault.Unsatisfiable, fault.Header, "Range", "The file has %d bytes.", size)
	}
	return byteRange{first, last - first + 1}, nil
}

// parseRange returns the first and the last byte of a range such as "5-9", "5-" or "-5". If the file has no byte of
// the range, then first > last.
func parseRange(text string, size int64) (first, last int64, valid bool) {
	from, to, found := strings.Cut(strings.TrimSpace(text), "-")
	if !found || !isDigits(from+to) {
		return 0, 0, false
	}
	start, _ := strconv.ParseInt(from, 10, 64) // for a number that is too large, ParseInt returns the largest int64
	end, _ := strconv.ParseInt(to, 10, 64)
	switch {
	case from == "": // such as "-5": the last 5 bytes
		return max(size-end, 0), size - 1, true
	case to == "":
		return start, size - 1, true
	default:
		return start, min(end, size-1), start <= end
	}
}

// isDigits reports whether a text has digits only, and at least one.
func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
