package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/shared/randtest"
)

// entry is one entry of a listing.
type entry struct{ id, modified string }

// page is the answer to a listing.
type page struct {
	answer
	entries    []entry
	next, prev map[string]any
}

// busyReads is how often a reader repeats a request when the registry could not read the page in time. The stand-in
// for MongoDB in the tests is slow on a busy machine.
const busyReads = 5

// page reads a page of a listing. The parameter `path` is the path of a next_page or prev_page, or only a query.
func (a api) page(t *testing.T, path string) page {
	t.Helper()
	if path == "" || path[0] == '?' {
		path = "/assets" + path
	}
	got := a.do(t, call{method: "GET", path: path})
	for attempt := 0; got.status == http.StatusServiceUnavailable && attempt < busyReads; attempt++ {
		time.Sleep(time.Second) // the store is busy, and the answer asks to repeat the request
		got = a.do(t, call{method: "GET", path: path})
	}
	got.must(t, 200)
	p := page{answer: got, next: object(got.json["next_page"]), prev: object(got.json["prev_page"])}
	for _, e := range list(got.json["data"]) {
		p.entries = append(p.entries, entry{text(object(e)["id"]), text(object(e)["dateModified"])})
	}
	if p.next == nil {
		t.Fatalf("%s: got %s, want a next_page", path, got.text)
	}
	return p
}

// The method `now` returns an offset at the end of the feed. All later changes are listed after it.
func (a api) now(t *testing.T) string {
	t.Helper()
	return text(a.publish(t, validAsset()).data()["dateModified"])
}

// testFeed creates and changes assets, and lists the feed after an offset on one page, and then page by page
// (docs/contract.md, "Feed"). Both must show the published assets in the order of their last changes. A draft must
// appear only after it is published.
// Promises: feed
func testFeed(t *testing.T, a api) {
	start := a.now(t)
	first, second := a.publish(t, validAsset()), a.publish(t, validAsset())
	draft := a.create(t, validAsset())
	moved := a.patch(t, first, fields{"description": "інший"}).must(t, 200)
	want := []entry{{second.id, text(second.data()["dateModified"])}, {first.id, text(moved.data()["dateModified"])}}

	p := a.page(t, "?limit=1000&offset="+url.QueryEscape(start))
	same(t, "entries of one page", only(p.entries, first.id, second.id, draft.id), want)
	if len(object(list(p.json["data"])[0])) != 2 {
		t.Errorf("got the entry %v, want id and dateModified alone", list(p.json["data"])[0])
	}
	last := p.entries[len(p.entries)-1]
	path := "/api/" + a.current() + "/assets?limit=1000&offset=" + url.QueryEscape(last.modified)
	equal(t, "next_page", p.next, map[string]any{"offset": last.modified, "path": path, "uri": a.base + path})
	var seen []entry
	for next := "?limit=1&offset=" + url.QueryEscape(start); ; {
		p := a.page(t, next)
		if len(p.entries) == 0 {
			break
		}
		seen = append(seen, p.entries...)
		next = text(p.next["path"])
	}
	same(t, "entries page by page", only(seen, first.id, second.id, draft.id), want)
	published := a.patch(t, draft, fields{"status": "pending"}).must(t, 200)
	after := a.page(t, "?limit=1000&offset="+url.QueryEscape(want[1].modified))
	if mine := only(after.entries, first.id, second.id, draft.id); !slices.Equal(mine,
		[]entry{{draft.id, text(published.data()["dateModified"])}}) {
		t.Errorf("a draft that was published: %v", mine)
	}
	a.do(t, call{method: "HEAD", path: "/assets"}).must(t, 200)
}

// The function `same` compares two lists of entries. It treats nil and an empty slice as equal.
func same(t *testing.T, what string, got, want []entry) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// The function `only` returns the entries of the assets with the given ids.
func only(entries []entry, ids ...string) []entry {
	var kept []entry
	for _, e := range entries {
		if slices.Contains(ids, e.id) {
			kept = append(kept, e)
		}
	}
	return kept
}

// testFarOffset begins to follow at an offset that nobody can have handed out: by pages, by a long poll and by a
// stream. Each must go on from the end of the feed.
func (a api) testFarOffset(t *testing.T, far string) {
	t.Helper()
	path := "/assets?offset=" + url.QueryEscape(far)
	asked := []answer{a.do(t, call{method: "GET", path: path}), a.do(t, call{method: "GET", path: path + "&wait=60"})}
	s := a.openStream(t, call{path: path, header: map[string]string{"Accept": asLines}})
	defer s.close()
	later := a.publish(t, validAsset())
	for _, got := range asked {
		next := text(object(got.must(t, 200).json["next_page"])["offset"])
		found := only(a.page(t, "?limit=1000&offset="+url.QueryEscape(next)).entries, later.id)
		if len(list(got.json["data"])) != 0 || len(found) != 1 {
			t.Errorf("offset %s: got %s, and then %v; want an empty page, and then %s", far, got.text, found, later.id)
		}
	}
	s.entryOf(t, later.id)
}

// testPages reads pages with all forms of an offset (docs/contract.md, "Pages" and "Offsets"). Each page must have the
// right entries in the right order, and links to the next and the previous page.
// Promises: next-page, offsets
func testPages(t *testing.T, a api) {
	for range 3 {
		a.publish(t, validAsset())
	}
	p := a.page(t, "")
	if len(p.entries) > 100 || p.prev != nil {
		t.Errorf("got %d entries and prev_page %v on the first page, want at most 100 and none", len(p.entries), p.prev)
	}
	if !slices.IsSortedFunc(p.entries, func(x, y entry) int { return strings.Compare(x.modified, y.modified) }) {
		t.Errorf("got %v, want it in the order of dateModified", p.entries)
	}
	p = a.page(t, "?limit=2&mode=_all_&feed=changes&opt_fields=status&opt_pretty=1&colour=blue")
	next := text(p.next["path"])
	for _, kept := range []string{"limit=2", "mode=_all_", "feed=changes", "opt_fields=status",
		"offset=" + url.QueryEscape(p.entries[1].modified)} {
		if !strings.Contains(next, kept) {
			t.Errorf("got next_page.path %s, want %s in it", next, kept)
		}
	}
	if len(p.entries) != 2 || strings.Contains(next, "opt_pretty") || strings.Contains(next, "descending") {
		t.Errorf("got %d entries and next_page.path %s, want 2 and no opt_pretty or descending", len(p.entries), next)
	}
	p = a.page(t, next)
	if !strings.Contains(text(p.prev["path"]), "descending=1") || p.prev["offset"] != p.entries[0].modified {
		t.Errorf("got prev_page %v, want descending from %s", p.prev, p.entries[0].modified)
	}
	// An empty page shows its offset in the form that the client sent. Its prev_page must also have the entry at
	// that offset.
	near := time.Now().Add(30 * time.Second).UTC().Truncate(time.Second)
	zone := time.FixedZone("", 2*60*60)
	for _, layout := range []string{"2006-01-02T15:04:05.000000+00:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z"} {
		offset := near.Format(layout)
		p := a.page(t, "?offset="+url.QueryEscape(offset))
		back, err := time.Parse(time.RFC3339, text(p.prev["offset"]))
		if len(p.entries) != 0 || p.next["offset"] != offset || err != nil || !back.Equal(near.Add(time.Microsecond)) {
			t.Errorf("offset %s: got %v, next_page %v and prev_page %v, want no entries, this offset and the one before it",
				offset, p.entries, p.next, p.prev)
		}
	}
	a.testFarOffset(t, near.AddDate(300, 0, 0).In(zone).Format(time.RFC3339))
	newest := a.publish(t, validAsset())
	for next := "?mode=_all_&limit=1000&offset=" + url.QueryEscape(a.now(t)); ; {
		p := a.page(t, next)
		if len(p.entries) > 0 { // another scenario has written meanwhile
			next = text(p.next["path"])
			continue
		}
		if back := a.page(t, text(p.prev["path"])); len(only(back.entries, newest.id)) != 1 {
			t.Errorf("got %v before the empty page, want %s on it", back.entries, newest.id)
		}
		break
	}
	start := a.now(t)
	c := a.publish(t, validAsset())
	for _, offset := range []string{url.QueryEscape(start), start, strings.Replace(start, "+00:00", "Z", 1),
		strings.TrimSuffix(start, "+00:00"), strings.Replace(start, "+", "%20", 1),
		strings.NewReplacer("-", "", ":", "", "+00:00", "Z").Replace(start), start[:len("2026-11-22T09")]} {
		if p := a.page(t, "?limit=1000&offset="+offset); len(only(p.entries, c.id)) != 1 {
			t.Errorf("offset %s: got no %s, want it on the page", offset, c.id)
		}
	}
	if p := a.page(t, "?offset=&limit=&descending=&mode=&opt_fields="); len(p.entries) == 0 || p.prev != nil {
		t.Errorf("got next_page %v for empty parameters, want the first page", p.next)
	}
}

// testDescending starts at the newest entry. prev_page must lead to later changes, and next_page to earlier ones.
func testDescending(t *testing.T, a api) {
	first, second := a.publish(t, validAsset()), a.publish(t, validAsset())
	p := a.page(t, "?descending=1&limit=1")
	if !strings.Contains(text(p.next["path"]), "descending=1") || strings.Contains(text(p.prev["path"]), "descending") {
		t.Fatalf("got next_page %v and prev_page %v, want descending in the first alone", p.next, p.prev)
	}
	third := a.publish(t, validAsset())
	for forward := text(p.prev["path"]); ; {
		page := a.page(t, forward)
		if len(only(page.entries, third.id)) == 1 {
			break
		}
		if len(page.entries) == 0 {
			t.Fatalf("got an empty page before %s, want this later change", third.id)
		}
		forward = text(page.next["path"])
	}
	var seen []entry
	for next := text(p.next["path"]); len(only(seen, first.id)) == 0; {
		p := a.page(t, next)
		if len(p.entries) == 0 {
			t.Fatalf("got an empty page before %s, want this earlier change", first.id)
		}
		seen, next = append(seen, p.entries...), text(p.next["path"])
	}
	all := append(only(p.entries, second.id), only(seen, second.id)...)
	if len(all) != 1 {
		t.Errorf("got the second asset %d times, want once", len(all))
	}
	if empty := a.page(t, "?descending=1&offset=1990-01-01"); len(empty.entries) != 0 ||
		empty.prev["offset"] != "1989-12-31T23:59:59.999999+00:00" || empty.next["offset"] != "1990-01-01" {
		t.Errorf("got %v before the first entry, want an empty page with this offset, and the one before", empty.json)
	}
}

// testModes lists assets with each value of the query parameter "mode". The list must have only real assets, only test
// assets, or both. With an unknown value it must have the real assets.
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

// testListingFields asks for additional fields of the entries of a page. Each entry must have id, dateModified and the
// additional fields. Unknown names must be ignored.
// Promises: page-fields
func testListingFields(t *testing.T, a api) {
	start := url.QueryEscape(a.now(t))
	c := a.publish(t, validAsset())
	p := a.page(t, "?opt_fields=status,assetID,title,asset_id,,items&offset="+start)
	for _, e := range list(p.json["data"]) {
		o := object(e)
		if o["id"] == c.id && (o["status"] != "pending" || o["title"] != validAsset()["title"] ||
			o["assetID"] != c.data()["assetID"] || len(list(o["items"])) != 1 || len(o) != 6) {
			t.Errorf("got the entry %v, want id, dateModified, status, assetID, title and items", o)
		}
	}
	if len(only(p.entries, c.id)) != 1 {
		t.Errorf("got %v, want %s in it", p.entries, c.id)
	}
}

// testFeedUnderLoad starts followers that read the feed while writers change assets. Each follower must see the
// last acknowledged change of each asset.
// Promises: datemodified, feed-no-loss, feed-newest
func testFeedUnderLoad(t *testing.T, a api) {
	const writers, changes = 8, 60
	start := a.now(t)
	var final sync.Map // id -> dateModified of the last acknowledged change
	var done atomic.Bool
	var clock clock
	var writing, following sync.WaitGroup
	for range writers {
		writing.Go(func() { clock.write(t, a, changes, &final) })
	}
	followers := make([]*follower, 4)
	for i := range followers {
		following.Go(func() {
			f := newFollower(a, i%2 == 1, start)
			followers[i] = f
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
				t.Errorf("follower %d: got no %v of %v, want it seen", i, id, modified)
			}
			return true
		})
	}
}

// write creates and changes assets, and stores the last dateModified of each asset in the given map. Each change must
// be later than all changes that were acknowledged before this change was sent.
func (c *clock) write(t *testing.T, a api, changes int, final *sync.Map) {
	var mine []created
	for i := range changes {
		before := c.newest()
		var asset created
		if i%3 == 0 {
			asset = a.publish(t, validAsset())
			mine = append(mine, asset)
		} else {
			asset = mine[randtest.IntN(len(mine))]
			asset.answer = a.patch(t, asset, fields{"description": fmt.Sprint("change ", i)}).must(t, 200)
		}
		modified := text(asset.data()["dateModified"])
		if modified <= before {
			t.Errorf("got dateModified %s, want it after %s, acknowledged before the request", modified, before)
		}
		c.raise(modified)
		final.Store(asset.id, modified)
	}
}

// clock keeps the newest dateModified of all answers.
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

// follower is a synchroniser that remembers all entries.
type follower struct {
	api
	next string // path of the next page; "" before the first descending page
	from string // offset at which the follower started
	seen map[entry]bool
	past string // path of the next page of earlier entries; "" when all of them have been read
}

// newFollower returns a follower that starts at an offset. A descending follower starts at the newest entry and
// reads back to the offset, as synchronisers do.
func newFollower(a api, descending bool, offset string) *follower {
	f := &follower{api: a, from: offset, seen: map[entry]bool{},
		next: fmt.Sprintf("?mode=_all_&limit=%d&offset=%s", 1+randtest.IntN(40), url.QueryEscape(offset))}
	if descending {
		f.past, f.next = fmt.Sprintf("?mode=_all_&descending=1&limit=%d", 1+randtest.IntN(40)), ""
	}
	return f
}

// catchUp reads pages until a page is empty.
func (f *follower) catchUp(t *testing.T) {
	t.Helper()
	for f.past != "" { // read the earlier entries first, because no new entries appear among them
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

// keep remembers entries. It reports an error if an entry comes twice.
func (f *follower) keep(t *testing.T, entries []entry) {
	t.Helper()
	for _, e := range entries {
		if f.seen[e] {
			t.Errorf("got %v twice, want each entry once", e)
		}
		f.seen[e] = true
	}
}

// check reads the feed again from the start. Each asset must have one entry, and no two entries may have the same
// dateModified. The follower must have seen every entry up to its offset.
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
				t.Errorf("got two entries of %s, want one", e.id)
			}
			if e.modified <= last {
				t.Errorf("got %v after %s, want a later dateModified", e, last)
			}
			ids[e.id], last = true, e.modified
			if e.modified <= offset && !f.seen[e] {
				t.Errorf("%s at %s: got %v unseen, want every entry up to the offset seen", name, offset, e)
			}
		}
		next = text(p.next["path"])
	}
}
