package httpapi

import (
	"net/http/httptest"
	"testing"
)

// TestRangesOfAFile asks for ranges of a file of 100 bytes.
func TestRangesOfAFile(t *testing.T) {
	const large = "99999999999999999999" // more than an int64 has
	whole, none := byteRange{0, 100}, byteRange{}
	for _, c := range []struct {
		method, asked, condition string
		want                     byteRange // none: the range must be refused
	}{
		{"GET", "", "", whole},
		{"GET", "bytes=5-9", "", byteRange{5, 5}},
		{"GET", "bytes=5-5", "", byteRange{5, 1}},
		{"GET", "bytes=5-", "", byteRange{5, 95}},
		{"GET", "bytes=5-200", "", byteRange{5, 95}},
		{"GET", "bytes=5-" + large, "", byteRange{5, 95}},
		{"GET", "bytes=-5", "", byteRange{95, 5}},
		{"GET", "bytes=-200", "", whole},
		{"GET", "bytes=-" + large, "", whole},
		{"GET", "bytes=99-", "", byteRange{99, 1}},
		{"GET", "bytes=5-9", `"a"`, byteRange{5, 5}},
		{"GET", "bytes=5-9", `"b"`, whole},
		{"HEAD", "bytes=5-9", "", whole},
		{"GET", "bytes=100-", "", none},
		{"GET", "bytes=100-200", "", none},
		{"GET", "bytes=" + large + "-", "", none},
		{"GET", "bytes=-0", "", none},
		{"GET", "bytes=0-1,4-5", "", none},
		// These ranges are invalid, and an invalid range is ignored (RFC 9110, 14.2).
		{"GET", "bytes=9-5", "", whole},
		{"GET", "bytes=" + large + "-5", "", whole},
		{"GET", "bytes=-", "", whole},
		{"GET", "bytes=5", "", whole},
		{"GET", "bytes=a-b", "", whole},
		{"GET", "5-9", "", whole},
		{"GET", "items=5-9", "", whole},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.Header.Set("Range", c.asked)
		r.Header.Set("If-Range", c.condition)
		got, err := rangeOf(r, `"a"`, 100)
		if refused := c.want == none; refused != (err != nil) || !refused && got != c.want {
			t.Errorf("%s %q if %q: got %v, %v; want %v", c.method, c.asked, c.condition, got, err, c.want)
		}
	}
}
