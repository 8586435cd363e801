package httpapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

const noon = 1_763_640_000_000_000 // 2025-11-20T12:00:00Z in µs

func TestParseListing(t *testing.T) {
	cases := []struct {
		name, query string
		want        registry.Query
	}{
		{"no parameters", "", registry.Query{Limit: 100}},
		{"empty parameters are absent", "limit=&offset=&descending=&mode=&opt_fields=", registry.Query{Limit: 100}},
		{"unknown parameters are ignored", "feed=changes&colour=blue", registry.Query{Limit: 100}},
		{"a limit", "limit=7", registry.Query{Limit: 7}},
		{"a limit above the maximum", "limit=1000000000", registry.Query{Limit: 1000}},
		{"a limit above the largest integer", "limit=99999999999999999999", registry.Query{Limit: 1000}},
		{"any value of descending", "descending=yes", registry.Query{Limit: 100, Descending: true}},
		{"test mode", "mode=test", registry.Query{Limit: 100, Mode: registry.Test}},
		{"all modes", "mode=_all_", registry.Query{Limit: 100, Mode: registry.All}},
		{"an unknown mode means real assets", "mode=x", registry.Query{Limit: 100}},
		{"an offset as the service prints it", "offset=2025-11-20T12%3A00%3A00.000007%2B00%3A00",
			registry.Query{Limit: 100, Offset: noon + 7}},
		{"an offset in another zone", "offset=2025-11-20T14:00:00.000007%2B02:00",
			registry.Query{Limit: 100, Offset: noon + 7}},
		{"an unescaped plus sign", "offset=2025-11-20T14:00:00+02:00", registry.Query{Limit: 100, Offset: noon}},
		{"an offset without a zone is UTC", "offset=2025-11-20T12:00:00", registry.Query{Limit: 100, Offset: noon}},
		{"a blank between date and time", "offset=2025-11-20%2012:00:00", registry.Query{Limit: 100, Offset: noon}},
		{"an offset with Z", "offset=2025-11-20T12:00:00Z", registry.Query{Limit: 100, Offset: noon}},
		{"an offset before the epoch is the start", "offset=1812-01-01T00:00:00Z",
			registry.Query{Limit: 100, Offset: 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			params := expect.Get(url.ParseQuery(c.query))(t)
			got, err := parseListing(params)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("got error %v; the query differs (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestParseListingRefuses(t *testing.T) {
	cases := []struct {
		name, query string
		kind        fault.Kind
		place       string
	}{
		{"a limit of zero", "limit=0", fault.Invalid, "limit"},
		{"a negative limit", "limit=-1", fault.Invalid, "limit"},
		{"a limit below the smallest integer", "limit=-99999999999999999999", fault.Invalid, "limit"},
		{"a limit that is a word", "limit=x", fault.Invalid, "limit"},
		{"a limit with a fraction", "limit=1.5", fault.Invalid, "limit"},
		{"an offset that is a word", "offset=yesterday", fault.NotFound, "offset"},
		{"an offset in the year 10000", "offset=10000-01-01T00:00:00Z", fault.NotFound, "offset"},
		{"an offset on day 32", "offset=2025-11-32", fault.NotFound, "offset"},
		{"an offset in a week", "offset=2026-W47-7", fault.NotFound, "offset"},
		{"an offset in microseconds", "offset=1795217164964702", fault.NotFound, "offset"},
		{"an offset with a null byte", "offset=2026-11-20T12:00%00", fault.NotFound, "offset"},
		{"an offset in a leap second", "offset=9999-12-31T23:59:60Z", fault.NotFound, "offset"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			params, err := url.ParseQuery(c.query)
			expect.OK(t, err)
			_, err = parseListing(params)
			f, ok := err.(*fault.Error)
			if !ok || f.Kind != c.kind || f.Details[0].Location != fault.Query || f.Details[0].Name != c.place {
				t.Errorf("got %v, want a fault of kind %d at %s/%s", err, c.kind, fault.Query, c.place)
			}
		})
	}
}

func TestLinksKeepTheParametersOfTheRequest(t *testing.T) {
	params := expect.Get(url.ParseQuery("feed=changes&limit=5&mode=_all_&opt_fields=status,title&opt_pretty=1&colour=blue&descending=1&offset=x"))(t)
	l := links{base: "https://registry.example", path: "/api/2.5/assets", params: params, descending: true}
	offset := "2025-11-20T12:00:00.000000+00:00"
	path := "/api/2.5/assets?descending=1&feed=changes&limit=5&mode=_all_&offset=2025-11-20T12%3A00%3A00.000000%2B00%3A00&opt_fields=status%2Ctitle"
	link := func(path string) record.Object {
		return record.Object{
			{Name: "offset", Value: offset}, {Name: "path", Value: path}, {Name: "uri", Value: l.base + path},
		}
	}
	expect.NoDiff(t, cmp.Diff(link(path), l.next(offset)), "the next page differs")
	expect.NoDiff(t, cmp.Diff(link(strings.Replace(path, "descending=1&", "", 1)), l.prev(offset)),
		"the previous page differs")
}

// TestAPageHasLinksToItsNeighbours reads pages of an empty feed and of a feed with three assets, and compares the
// offsets of their links.
// Promises: next-page, far-offset
func TestAPageHasLinksToItsNeighbours(t *testing.T) {
	const none, path = "no link", "/api/2.5/assets?limit=2"
	empty, full := newService(t), newService(t)
	var at []string
	for range 3 {
		at = append(at, printPosition(full.positionAt(t, full.published(t)), time.UTC))
	}
	from := func(offset string) string { return "&offset=" + url.QueryEscape(offset) }
	soon := time.Now().Add(50 * time.Second).UTC().Format(time.RFC3339) // another clock may have handed it out
	for _, c := range []struct {
		name              string
		s                 service
		query, next, prev string
	}{
		{"the first page", full, "", at[1], none},
		{"the second page", full, from(at[1]), at[2], at[2]},
		{"after the last page", full, from(at[2]), at[2], printPosition(parsed(t, at[2])+1, time.UTC)},
		{"the newest page", full, "&descending=1", at[1], at[2]},
		{"before the newest page", full, "&descending=1" + from(at[1]), at[0], at[0]},
		{"no asset", empty, "", "", none},
		{"no asset, the newest first", empty, "&descending=1", "", ""},
		{"no asset after an offset", empty, from("2025-11-20T12:00:00"), "2025-11-20T12:00:00",
			"2025-11-20T12:00:00.000001+00:00"},
		{"no asset before an offset", empty, "&descending=1" + from("2025-11-20T12:00:00"), "2025-11-20T12:00:00",
			"2025-11-20T11:59:59.999999+00:00"},
		{"soon", full, from(soon), soon, printPosition(parsed(t, soon)+1, time.UTC)},
		{"far", full, from("2731-01-02"), at[2], "2731-01-02T00:00:00.000001+00:00"},
		{"far, the newest first", full, "&descending=1" + from("2731-01-02"), at[1], at[2]},
		{"the last time that is printed", full, from("9999-12-29T23:59:59.999999"), at[2],
			"9999-12-30T00:00:00.000000+00:00"},
		{"a later time", empty, from("9999-12-30"), "1970-01-01T00:00:00.000000+00:00", "9999-12-30"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var page struct {
				Next *struct{ Offset, Path string } `json:"next_page"`
				Prev *struct{ Offset, Path string } `json:"prev_page"`
			}
			text := c.s.do(t, exchange{"GET", path + c.query, "", "", "", 200, ""}).Body.Bytes()
			if err := json.Unmarshal(text, &page); err != nil || page.Next == nil {
				t.Fatalf("got %v and %s, want a page with a link", err, text)
			}
			prev := none
			if page.Prev != nil {
				prev = page.Prev.Offset
				if isBack := strings.Contains(page.Prev.Path, "descending=1"); isBack == strings.Contains(c.query, "desc") {
					t.Errorf("got the previous page %s, want one in the other direction", page.Prev.Path)
				}
			}
			if page.Next.Offset != c.next || prev != c.prev {
				t.Errorf("got the offsets %q and %q, want %q and %q", page.Next.Offset, prev, c.next, c.prev)
			}
		})
	}
}

// parsed returns the position of an offset.
func parsed(t *testing.T, offset string) int64 {
	t.Helper()
	return expect.Get(parseOffset(offset))(t)
}

// TestAFailedPageReturnsItsMemory reads pages with fields that cannot be shown, or that cannot be sent. Each request
// reserves memory, and must return it.
func TestAFailedPageReturnsItsMemory(t *testing.T) {
	s := newWithSnapshots(t)
	s.api.RouteFeed(s.handler.(*gin.Engine), s.signer, nil, nil)
	fields := "?opt_fields=status"
	s.list(t, lowID, `{"id":"`+lowID+`","status":"active"}`)
	refused := func(path string, status int, says string) {
		t.Helper()
		s.do(t, exchange{"GET", path, identity.Anonymous, "", "", status, says})
		expect.Equal(t, s.api.memory.Work.Used(), 0, "%s, bytes held after the answer", path)
	}
	refused("/api/2.5/assets?%zz", 400, `"name":"query"`)
	refused("/api/2.5/assets"+fields, 200, "active")
	refused("/api/2.5/me/assets"+fields, 403, "permission")
	held := int64(0)
	for ; s.api.memory.Answers.Hold(1 << 20); held += 1 << 20 {
	}
	for ; s.api.memory.Answers.Hold(1); held++ {
	}
	refused("/api/2.5/assets"+fields, 503, "large requests")
	refused("/feed/2.5/page"+fields, 503, "large requests")
	s.api.memory.Answers.Release(held)
	s.list(t, highID, `{"id":"`+highID+`","rectificationPeriod":{`) // a damaged body
	refused("/api/2.5/assets"+fields, 500, "server")
	refused("/feed/2.5/page"+fields, 500, "server")
	refused("/api/2.4/assets/"+highID, 500, "server")
	expect.OK(t, s.store.Close())
	refused("/api/2.5/assets"+fields, 503, "cannot reach its data")
	refused("/feed/2.5/page"+fields, 503, "cannot reach its data")
}

func FuzzParseOffset(f *testing.F) {
	for _, seed := range []string{"", "2025-11-20T12:00:00.000007+00:00", "2025-11-20 12:00:00 02:00", "2025-11-20",
		"yesterday", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		position, err := parseOffset(text)
		if err != nil {
			expect.FatalIf(t, fault.KindOf(err) != fault.NotFound, "%q: got %v, want kind NotFound", text, err)
			return
		}
		expect.FatalIf(t, position < 1, "%q: got position %d, want at least 1", text, position)
		again, err := parseOffset(printPosition(position, time.UTC))
		if err != nil || again != position {
			t.Fatalf("%q: %d printed and parsed again: got %d, %v; want the same", text, position, again, err)
		}
	})
}

func TestAListingWithAllFieldsCopiesTheBytesOfTheBody(t *testing.T) {
	id := strings.Repeat("a", 32)
	for _, c := range []struct{ name, body, want string }{
		{"the id comes first", `{"id":"` + id + `","title":"\u0416","n":1.50}`, `,"title":"\u0416","n":1.50}`},
		{"the id comes last", `{"title":"x","id":"` + id + `"}`, `,"title":"x"}`},
		{"another id comes first", `{"id":"` + strings.Repeat("b", 32) + `","title":"x"}`, `,"title":"x"}`},
		{"the id is all", `{"id":"` + id + `"}`, `}`},
		{"no body", "", `}`},
	} {
		for _, v := range publicVersions(nil) {
			e := registry.Entry{ID: id, Position: noon}
			if c.body != "" {
				e.Body = []byte(c.body)
			}
			got := expect.Get(v.listed([]byte("["), e, wantedOf([]string{"*"}), time.UTC))(t)
			want := `[{"id":"` + id + `","dateModified":"` + printPosition(noon, time.UTC) + `"` + c.want
			if string(got) != want {
				t.Errorf("%s, version %s: got %s, want %s", c.name, v.name, got, want)
			}
		}
	}
}

func TestAListingRefusesADamagedBody(t *testing.T) {
	id := strings.Repeat("a", 32)
	for _, body := range []string{`{"id":"` + id + `","title":"x"`, `{"id":"` + id, `"`} {
		e := registry.Entry{ID: id, Position: noon, Body: []byte(body)}
		if got, err := publicVersions(nil)[0].listed(nil, e, wantedOf([]string{"*"}), time.UTC); err == nil {
			t.Errorf("body %s: got %s, want an error", body, got)
		}
	}
}
