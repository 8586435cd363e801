package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// entry is a listing entry.
type entry struct{ id, modified string }

// page is an answer to a listing.
type page struct {
	answer
	entries    []entry
	next, prev map[string]any
}

// page follows a path of a page pointer, or asks for a listing of the version.
func (a api) page(t *testing.T, path string) page {
	t.Helper()
	if path == "" || path[0] == '?' {
		path = "/assets" + path
	}
	got := a.do(t, call{method: "GET", path: path}).must(t, 200)
	p := page{answer: got, next: object(got.json["next_page"]), prev: object(got.json["prev_page"])}
	for _, e := range list(got.json["data"]) {
		p.entries = append(p.entries, entry{text(object(e)["id"]), text(object(e)["dateModified"])})
	}
	if p.next == nil {
		t.Fatalf("%s: no next_page: %s", path, got.text)
	}
	return p
}

// now returns the feed's end, from where a scenario sees its own changes.
func (a api) now(t *testing.T) string {
	t.Helper()
	return text(a.publish(t, validAsset()).data()["dateModified"])
}

func testFeed(t *testing.T, a api) {
	start := a.now(t)
	first, second := a.publish(t, validAsset()), a.publish(t, validAsset())
	draft := a.create(t, validAsset())
	moved := a.patch(t, first, fields{"description": "інший"}).must(t, 200)
	want := []entry{{second.id, text(second.data()["dateModified"])}, {first.id, text(moved.data()["dateModified"])}}

	p := a.page(t, "?limit=1000&offset="+url.QueryEscape(start))
	if mine := only(p.entries, first.id, second.id, draft.id); !slices.Equal(mine, want) {
		t.Errorf("got %v, want %v", mine, want)
	}
	if len(object(list(p.json["data"])[0])) != 2 {
		t.Errorf("an entry has more than it should: %v", list(p.json["data"])[0])
	}
	last := p.entries[len(p.entries)-1]
	path := "/api/" + a.current() + "/assets?limit=1000&offset=" + url.QueryEscape(last.modified)
	if p.next["offset"] != last.modified || p.next["path"] != path || p.next["uri"] != a.base+path || len(p.next) != 3 {
		t.Errorf("next_page is %v, want %s", p.next, path)
	}
	// What follows says where to go on, page after page, one at a time.
	var seen []entry
	for next := "?limit=1&offset=" + url.QueryEscape(start); ; {
		p := a.page(t, next)
		if len(p.entries) == 0 {
			break
		}
		seen = append(seen, p.entries...)
		next = text(p.next["path"])
	}
	if mine := only(seen, first.id, second.id, draft.id); !slices.Equal(mine, want) {
		t.Errorf("page by page got %v, want %v", mine, want)
	}
	published := a.patch(t, draft, fields{"status": "pending"}).must(t, 200)
	after := a.page(t, "?limit=1000&offset="+url.QueryEscape(want[1].modified))
	if mine := only(after.entries, first.id, second.id, draft.id); !slices.Equal(mine,
		[]entry{{draft.id, text(published.data()["dateModified"])}}) {
		t.Errorf("a draft that was published: %v", mine)
	}
	a.do(t, call{method: "HEAD", path: "/assets"}).must(t, 200)
}

func only(entries []entry, ids ...string) []entry {
	var kept []entry
	for _, e := range entries {
		if slices.Contains(ids, e.id) {
			kept = append(kept, e)
		}
	}
	return kept
}

func testPages(t *testing.T, a api) {
	for range 3 {
		a.publish(t, validAsset())
	}
	p := a.page(t, "")
	if len(p.entries) > 100 || p.prev != nil {
		t.Errorf("the first page has %d entries and prev_page %v", len(p.entries), p.prev)
	}
	if !slices.IsSortedFunc(p.entries, func(x, y entry) int { return strings.Compare(x.modified, y.modified) }) {
		t.Error("the page is out of order")
	}
	p = a.page(t, "?limit=2&mode=_all_&feed=changes&opt_fields=status&opt_pretty=1&colour=blue")
	next := text(p.next["path"])
	for _, kept := range []string{"limit=2", "mode=_all_", "feed=changes", "opt_fields=status",
		"offset=" + url.QueryEscape(p.entries[1].modified)} {
		if !strings.Contains(next, kept) {
			t.Errorf("next_page.path %s has lost %s", next, kept)
		}
	}
	if len(p.entries) != 2 || strings.Contains(next, "opt_pretty") || strings.Contains(next, "descending") {
		t.Errorf("%d entries, next_page.path %s", len(p.entries), next)
	}
	p = a.page(t, next)
	if !strings.Contains(text(p.prev["path"]), "descending=1") || p.prev["offset"] != p.entries[0].modified {
		t.Errorf("prev_page of a page after an offset is %v", p.prev)
	}
	// An empty page keeps its offset, however it was written.
	for _, offset := range []string{"9998-01-01T00:00:00.000000+00:00", "9998-01-01T00:00:00",
		"9998-01-01T02:00:00+02:00", "9998-01-01 00:00:00Z"} {
		p := a.page(t, "?offset="+url.QueryEscape(offset))
		if len(p.entries) != 0 || p.next["offset"] != offset || p.prev["offset"] != offset {
			t.Errorf("at %s: %v, next_page %v", offset, p.entries, p.next)
		}
	}
	start := a.now(t)
	c := a.publish(t, validAsset())
	for _, offset := range []string{url.QueryEscape(start), start, strings.Replace(start, "+00:00", "Z", 1),
		strings.TrimSuffix(start, "+00:00"), strings.Replace(start, "+", "%20", 1)} {
		if p := a.page(t, "?limit=1000&offset="+offset); len(only(p.entries, c.id)) != 1 {
			t.Errorf("offset %s does not show what came after it", offset)
		}
	}
	if p := a.page(t, "?offset=&limit=&descending=&mode=&opt_fields="); len(p.entries) == 0 || p.prev != nil {
		t.Errorf("empty parameters are not absent: %v", p.next)
	}
}

func testDescending(t *testing.T, a api) {
	first, second := a.publish(t, validAsset()), a.publish(t, validAsset())
	p := a.page(t, "?descending=1&limit=1")
	if !strings.Contains(text(p.next["path"]), "descending=1") || strings.Contains(text(p.prev["path"]), "descending") {
		t.Fatalf("next_page %v, prev_page %v", p.next, p.prev)
	}
	third := a.publish(t, validAsset())
	for forward := text(p.prev["path"]); ; {
		page := a.page(t, forward)
		if len(only(page.entries, third.id)) == 1 {
			break
		}
		if len(page.entries) == 0 {
			t.Fatal("forward from the newest, a later change does not come")
		}
		forward = text(page.next["path"])
	}
	var seen []entry
	for next := text(p.next["path"]); len(only(seen, first.id)) == 0; {
		p := a.page(t, next)
		if len(p.entries) == 0 {
			t.Fatal("the way back ends before it has shown all")
		}
		seen, next = append(seen, p.entries...), text(p.next["path"])
	}
	all := append(only(p.entries, second.id), only(seen, second.id)...)
	if len(all) != 1 {
		t.Errorf("the second asset was seen %d times on the way back", len(all))
	}
	if empty := a.page(t, "?descending=1&offset=1990-01-01"); len(empty.entries) != 0 ||
		empty.prev["offset"] != "1990-01-01" || empty.next["offset"] != "1990-01-01" {
		t.Errorf("before the beginning: %v", empty.json)
	}
}

func testModes(t *testing.T, a api) {
	start := url.QueryEscape(a.now(t))
	real, test := a.publish(t, validAsset()), a.publish(t, validAsset().set("mode", "test"))
	for _, c := range []struct {
		mode string
		want []entry
	}{
		{"", []entry{{real.id, text(real.data()["dateModified"])}}},
		{"other", []entry{{real.id, text(real.data()["dateModified"])}}},
		{"test", []entry{{test.id, text(test.data()["dateModified"])}}},
		{"_all_", []entry{{real.id, text(real.data()["dateModified"])}, {test.id, text(test.data()["dateModified"])}}},
	} {
		if got := only(a.page(t, "?limit=1000&mode="+c.mode+"&offset="+start).entries, real.id,
			test.id); !slices.Equal(got, c.want) {
			t.Errorf("mode %q: got %v, want %v", c.mode, got, c.want)
		}
	}
}

func testListingFields(t *testing.T, a api) {
	start := url.QueryEscape(a.now(t))
	c := a.publish(t, validAsset())
	p := a.page(t, "?opt_fields=status,assetID,title,asset_id,,items&offset="+start)
	for _, e := range list(p.json["data"]) {
		o := object(e)
		if o["id"] == c.id && (o["status"] != "pending" || o["title"] != validAsset()["title"] ||
			o["assetID"] != c.data()["assetID"] || len(list(o["items"])) != 1 || len(o) != 6) {
			t.Errorf("got %v", o)
		}
	}
	if len(only(p.entries, c.id)) != 1 {
		t.Errorf("the asset is not listed: %v", p.entries)
	}
}

func testFeedUnderLoad(t *testing.T, a api) {
	const writers, changes = 8, 60
	start := a.now(t)
	var final sync.Map // id -> dateModified of the last acknowledged change
	var done atomic.Bool
	var clock clock
	var writing, following sync.WaitGroup
	for range writers {
		writing.Go(func() {
			var mine []created
			for i := range changes {
				before := clock.newest()
				var c created
				if i%3 == 0 {
					c = a.publish(t, validAsset())
					mine = append(mine, c)
				} else {
					c = mine[rand.IntN(len(mine))]
					c.answer = a.patch(t, c, fields{"description": fmt.Sprint("change ", i)}).must(t, 200)
				}
				modified := text(c.data()["dateModified"])
				if modified <= before {
					t.Errorf("a change stands at %s, though one at %s was acknowledged before it was asked for",
						modified, before)
				}
				clock.raise(modified)
				final.Store(c.id, modified)
			}
		})
	}
	var mu sync.Mutex
	var followers []*follower
	for i := range 4 {
		following.Go(func() {
			f := newFollower(a, i%2 == 1, start)
			mu.Lock()
			followers = append(followers, f)
			mu.Unlock()
			for last := false; !last; {
				last = done.Load()
				f.catchUp(t)
			}
		})
	}
	writing.Wait()
	done.Store(true)
	following.Wait()
	for i, f := range followers {
		f.check(t, fmt.Sprint("follower ", i))
		final.Range(func(id, modified any) bool {
			if !f.seen[entry{id.(string), modified.(string)}] {
				t.Errorf("follower %d has not seen %v of %v", i, id, modified)
			}
			return true
		})
	}
}

// clock knows the newest dateModified that was acknowledged to anybody.
type clock struct {
	mu   sync.Mutex
	last string
}

func (c *clock) newest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *clock) raise(modified string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, modified)
}

// follower is a synchroniser that remembers all it was shown.
type follower struct {
	api
	next string // path of the next page
	from string // offset that it began at
	seen map[entry]bool
	past string // path of the next page into the past; "" when there is nothing to fetch there
}

// newFollower returns a follower that begins at an offset, or with descending
// at the newest, as synchronisers do.
func newFollower(a api, descending bool, offset string) *follower {
	f := &follower{api: a, from: offset, seen: map[entry]bool{},
		next: fmt.Sprintf("?mode=_all_&limit=%d&offset=%s", 1+rand.IntN(40), url.QueryEscape(offset))}
	if descending {
		f.past, f.next = fmt.Sprintf("?mode=_all_&descending=1&limit=%d", 1+rand.IntN(40)), ""
	}
	return f
}

// catchUp follows until there is nothing more.
func (f *follower) catchUp(t *testing.T) {
	t.Helper()
	for f.past != "" { // the past first: nothing comes into it any more
		p := f.page(t, f.past)
		if f.next == "" {
			f.next = text(p.prev["path"])
		}
		f.past = text(p.next["path"])
		f.keep(t, p.entries)
		if len(p.entries) == 0 || p.entries[len(p.entries)-1].modified < f.from {
			f.past = ""
		}
	}
	for {
		p := f.page(t, f.next)
		f.next = text(p.next["path"])
		f.keep(t, p.entries)
		if len(p.entries) == 0 {
			return
		}
	}
}

// keep remembers what it was shown, which is nothing twice.
func (f *follower) keep(t *testing.T, entries []entry) {
	t.Helper()
	for _, e := range entries {
		if f.seen[e] {
			t.Errorf("%v was shown twice", e)
		}
		f.seen[e] = true
	}
}

// check reads the feed anew: each asset stands in it once, each at a place of
// its own, and the follower must have seen all of it that lies behind where it
// has got to.
func (f *follower) check(t *testing.T, name string) {
	t.Helper()
	reached, err := url.ParseQuery(f.next[strings.IndexByte(f.next, '?')+1:])
	if err != nil {
		t.Fatal(err)
	}
	offset := reached.Get("offset")
	ids, last := map[string]bool{}, ""
	for next := "?mode=_all_&limit=1000&offset=" + url.QueryEscape(f.from); ; {
		p := f.page(t, next)
		if len(p.entries) == 0 {
			return
		}
		for _, e := range p.entries {
			if ids[e.id] {
				t.Errorf("%s stands twice in the feed", e.id)
			}
			if e.modified <= last {
				t.Errorf("%v comes after %s", e, last)
			}
			ids[e.id], last = true, e.modified
			if e.modified <= offset && !f.seen[e] {
				t.Errorf("%s: %v came up behind %s", name, e, offset)
			}
		}
		next = text(p.next["path"])
	}
}
