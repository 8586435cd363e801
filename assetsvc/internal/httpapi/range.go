package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"asset-registry/shared/fault"
)

// byteRange is a part of a file.
type byteRange struct{ first, length int64 }

// rangeOf returns the part of a file of size bytes that a request asks for: the whole
// file unless a GET has a valid Range of bytes and If-Range, if it is there, names the
// file's tag. It refuses a part that does not exist, and several parts at once.
func rangeOf(r *http.Request, tag string, size int64) (byteRange, error) {
	whole := byteRange{0, size}
	asked := r.Header.Get("Range")
	if asked == "" || r.Method != http.MethodGet {
		return whole, nil
	}
	if condition := r.Header.Get("If-Range"); condition != "" && condition != tag {
		return whole, nil
	}
	ranges, isBytes := strings.CutPrefix(asked, "bytes=")
	switch {
	case !isBytes:
		return whole, nil
	case strings.Contains(ranges, ","):
		return whole, fault.New(fault.Unsatisfiable, fault.Header, "Range", "Ask for one range at a time.")
	}
	first, last, valid := parseRange(ranges, size)
	switch {
	case !valid:
		return whole, nil // RFC 9110, 14.2: an invalid Range counts as none
	case first > last:
		return whole, fault.New(fault.Unsatisfiable, fault.Header, "Range", "The file has %d bytes.", size)
	}
	return byteRange{first, last - first + 1}, nil
}

// parseRange returns the first and the last byte of a range such as "5-9", "5-" or
// "-5". First is above last if the file has none of them.
func parseRange(text string, size int64) (first, last int64, valid bool) {
	from, to, found := strings.Cut(strings.TrimSpace(text), "-")
	if !found || !isDigits(from+to) {
		return 0, 0, false
	}
	start, errFrom := strconv.ParseInt(from, 10, 64)
	end, errTo := strconv.ParseInt(to, 10, 64)
	switch {
	case from == "": // the last bytes
		if errTo != nil { // more than there can be
			end = size
		}
		return max(size-end, 0), size - 1, true
	case errFrom != nil: // beyond every file
		return 1, 0, true
	case to == "" || errTo != nil:
		return start, size - 1, true
	default:
		return start, min(end, size-1), start <= end
	}
}

// isDigits tells whether a text has digits only, and at least one.
func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
