package httpserver

import (
	"net/http"
	"strconv"
	"strings"

	"asset-registry/shared/fault"
)

// ByteRange is a range of bytes of a file, or the whole file.
type ByteRange struct {
	First, Length int64
	IsAsked       bool // the request asks for this range, so the status of the answer is 206
}

// RangeOf returns the range that a request asks for, in a file with the given size in bytes. A GET with a valid Range
// in bytes asks for this range, unless it has an If-Range that differs from the tag of the file. Every other request
// asks for the whole file, and so does each request for an empty file. RangeOf refuses a range outside the file, and a
// request for several ranges.
func RangeOf(r *http.Request, tag string, size int64) (ByteRange, error) {
	whole := ByteRange{Length: size}
	if r.Method != http.MethodGet || len(r.Header["Range"]) != 1 || size == 0 {
		return whole, nil
	}
	if condition := r.Header.Get("If-Range"); condition != "" && condition != tag {
		return whole, nil
	}
	unit, text, _ := strings.Cut(r.Header.Get("Range"), "=")
	if !strings.EqualFold(strings.TrimSpace(unit), "bytes") {
		return whole, nil
	}
	ranges := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t", r) })
	switch {
	case len(ranges) == 0:
		return whole, nil
	case len(ranges) > 1:
		return whole, fault.New(fault.Unsatisfiable, fault.Header, "Range", "Ask for one range at a time.")
	}
	first, last, valid := parseRange(ranges[0], size)
	switch {
	case !valid:
		return whole, nil // RFC 9110, 14.2: an invalid Range is ignored
	case first > last:
		return whole, fault.New(fault.Unsatisfiable, fault.Header, "Range", "The file has %d bytes.", size)
	}
	return ByteRange{first, last - first + 1, true}, nil
}

// parseRange returns the first and the last byte of a range such as "5-9", "5-" or "-5". If the file has no byte of
// the range, then first > last.
func parseRange(text string, size int64) (first, last int64, valid bool) {
	from, to, found := strings.Cut(text, "-")
	if !found || strings.Trim(from+to, "0123456789") != "" || from+to == "" {
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

// HasTag reports whether one of the values of If-None-Match names a tag (RFC 9110, 13.1.2). The edge adds endings to
// the tags of compressed answers, and removes them from the tags that clients send.
func HasTag(sent []string, tag string) bool {
	for one := range strings.SplitSeq(strings.Join(sent, ","), ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == "*" || one == tag {
			return true
		}
	}
	return false
}
