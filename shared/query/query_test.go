package query

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// TestEveryFaultIsNamed reads query strings with each kind of fault, alone and beside others.
// Promises: search-faults
func TestEveryFaultIsNamed(t *testing.T) {
	const malformed = "The query string is malformed: a % needs two hexadecimal digits, and & separates parameters."
	const undecoded = "could not decode params: the query string is not valid UTF-8"
	for _, c := range []struct {
		raw    string
		values url.Values
		faults []string
		onPage string // faults of a page, if they differ; "none": it has none
	}{
		{"", url.Values{}, nil, ""},
		{"q=a&region=b&region=c", url.Values{"q": {"a"}, "region": {"b", "c"}}, nil, ""},
		{"q=&q=a&q=&region=", url.Values{"q": {"a"}}, nil, ""},
		{"x=&regoin=", url.Values{}, nil, ""},
		{"opt_pretty=1&acc_token=t&_=1&_=2", url.Values{"opt_pretty": {"1"}, "acc_token": {"t"}, "_": {"1", "2"}}, nil, ""},
		{"region=a;", url.Values{}, []string{"region: " + malformed}, ""},
		{"region=%zz&q=a", url.Values{"q": {"a"}}, []string{"region: " + malformed}, ""},
		{"%zz=a&;q=b&q=%", url.Values{}, []string{"query: " + malformed, "query: " + malformed, "q: " + malformed}, ""},
		{"q=%ff&%ff=1", url.Values{}, []string{"q: " + undecoded, "query: " + undecoded}, ""},
		{"regoin=a&q=b", url.Values{"regoin": {"a"}, "q": {"b"}},
			[]string{"regoin: There is no such parameter; the nearest is region."}, ""},
		{"utm_source=a", url.Values{"utm_source": {"a"}},
			[]string{"utm_source: There is no such parameter; the nearest is region."}, "none"},
		{"q=a&q=a", url.Values{"q": {"a", "a"}}, []string{"q: The parameter may stand once."}, ""},
		{"q=a&q=b&regoin=x&region=%", url.Values{"q": {"a", "b"}, "regoin": {"x"}}, []string{"region: " + malformed,
			"q: The parameter may stand once.", "regoin: There is no such parameter; the nearest is region."}, ""},
	} {
		for _, isPage := range []bool{false, true} {
			values, faults := Read(c.raw, Params{Names: []string{"q", "region"}, Lists: []string{"region"}, IsPage: isPage})
			var got []string
			for _, f := range faults {
				got = append(got, f.Name+": "+f.Description)
			}
			want := c.faults
			if isPage && c.onPage == "none" {
				want = nil
			}
			expect.NoDiff(t, cmp.Diff(want, got), "%q, on a page %t: the faults", c.raw, isPage)
			expect.NoDiff(t, cmp.Diff(c.values, values), "%q: the parameters", c.raw)
		}
	}
	const unknown = "a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1&j=1&k=1"
	for _, raw := range []string{unknown, strings.Repeat("%&", 20), strings.Repeat("q=%ff&", 20)} {
		if _, faults := Read(raw, Params{Names: []string{"q"}}); len(faults) != maxFaults {
			t.Errorf("%q: got %d faults, want %d", raw, len(faults), maxFaults)
		}
	}
}
