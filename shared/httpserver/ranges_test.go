package httpserver

import (
	"asset-registry/shared/testing/expect"
	"net/http/httptest"
	"testing"
)

// TestRangesOfAFile asks for ranges of a file of 100 bytes.
func TestRangesOfAFile(t *testing.T) {
	const large = "99999999999999999999" // more than an int64 has
	whole, none := ByteRange{Length: 100}, ByteRange{}
	for _, c := range []struct {
		method, asked, condition string
		want                     ByteRange // none: the range must be refused
	}{
		{"GET", "", "", whole},
		{"GET", "bytes=0-", "", ByteRange{0, 100, true}},
		{"GET", "bytes=5-9", "", ByteRange{5, 5, true}},
		{"GET", "bytes=5-5", "", ByteRange{5, 1, true}},
		{"GET", "bytes=5-", "", ByteRange{5, 95, true}},
		{"GET", "bytes=5-200", "", ByteRange{5, 95, true}},
		{"GET", "bytes=5-" + large, "", ByteRange{5, 95, true}},
		{"GET", "bytes=-5", "", ByteRange{95, 5, true}},
		{"GET", "bytes=-200", "", ByteRange{0, 100, true}},
		{"GET", "bytes=-" + large, "", ByteRange{0, 100, true}},
		{"GET", "bytes=99-", "", ByteRange{99, 1, true}},
		{"GET", "bytes=5-9", `"a"`, ByteRange{5, 5, true}},
		{"GET", "bytes=5-9", `"b"`, whole},
		{"HEAD", "bytes=5-9", "", whole},
		{"GET", "bytes=100-", "", none},
		{"GET", "bytes=100-200", "", none},
		{"GET", "bytes=" + large + "-", "", none},
		{"GET", "bytes=-0", "", none},
		{"GET", "bytes=0-1,4-5", "", none},
		{"GET", "bytes=0-1, 4-5", "", none},
		{"GET", "bytes=0-,0-,0-", "", none},
		{"GET", "bytes=0-1\t,x", "", none},
		{"GET", "bytes=,5-9 ,", "", ByteRange{5, 5, true}},
		{"GET", "Bytes=5-9", "", ByteRange{5, 5, true}},
		// These ranges are invalid, and an invalid range is ignored (RFC 9110, 14.2).
		{"GET", "bytes=9-5", "", whole},
		{"GET", "bytes=" + large + "-5", "", whole},
		{"GET", "bytes=-", "", whole},
		{"GET", "bytes=5", "", whole},
		{"GET", "bytes=a-b", "", whole},
		{"GET", "bytes=", "", whole},
		{"GET", "bytes=,", "", whole},
		{"GET", "bytes=1-2-3", "", whole},
		{"GET", "bytes=+5-9", "", whole},
		{"GET", "bytes", "", whole},
		{"GET", "5-9", "", whole},
		// A range in an unknown unit is ignored, too.
		{"GET", "items=5-9", "", whole},
		{"GET", "items=0-1,4-5", "", whole},
		{"GET", "none", "", whole},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.Header.Set("Range", c.asked)
		r.Header.Set("If-Range", c.condition)
		got, err := RangeOf(r, `"a"`, 100)
		if refused := c.want == none; refused != (err != nil) || !refused && got != c.want {
			t.Errorf("%s %q if %q: got %v, %v; want %v", c.method, c.asked, c.condition, got, err, c.want)
		}
	}
}

// TestRangesOfAnEmptyFile asks for ranges of a file that has none, and sends several headers.
func TestRangesOfAnEmptyFile(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	for _, asked := range []string{"bytes=0-", "bytes=0-0", "bytes=-0", "bytes=-5", "bytes=5-", "bytes=0-1,4-5"} {
		r.Header.Set("Range", asked)
		expect.Value(t, (ByteRange{}), "%q of an empty file", asked)(RangeOf(r, `"a"`, 0))
	}
	r.Header["Range"] = []string{"bytes=0-1", "bytes=4-5"}
	expect.Value(t, (ByteRange{Length: 100}), "two headers")(RangeOf(r, `"a"`, 100))
}
