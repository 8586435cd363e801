package feed

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"asset-registry/shared/randtest"
)

// follower is one synchroniser. It reads each page from a random service, as behind a load balancer.
type follower struct {
	*history
	seen map[place]bool
}

// page is a page of the feed.
type page struct {
	Data []struct{ ID, DateModified, Description string }
	Next struct{ Path string } `json:"next_page"`
	Prev struct{ Path string } `json:"prev_page"`
}

// get repeats the request for a page until it succeeds or ctx is done.
func (f *follower) get(ctx context.Context, path string) (p page) {
	for ctx.Err() == nil {
		p = page{}
		if f.services.call(ctx, "GET", path, "", nil, &p) == http.StatusOK {
			return p
		}
		time.Sleep(20 * time.Millisecond)
	}
	return page{}
}

// follow reads the feed until the writers have ended and a page is empty. A descending follower starts at the
// newest entry, and reads the earlier entries at the end.
func (f *follower) follow(ctx context.Context, descending bool) {
	next, past := fmt.Sprintf("/api/2.5/assets?mode=_all_&opt_fields=description&limit=%d", 1+randtest.IntN(100)), ""
	if descending {
		p := f.get(ctx, next+"&descending=1")
		f.keep(ctx, p, true)
		if next = p.Prev.Path; len(p.Data) > 0 { // an empty page has no earlier entries
			past = p.Next.Path
		}
	}
	for ctx.Err() == nil {
		last := f.finished.Load()
		p := f.get(ctx, next)
		f.keep(ctx, p, false)
		next = p.Next.Path
		if len(p.Data) == 0 {
			if last {
				break
			}
			time.Sleep(randtest.N(50*time.Millisecond + f.load.pause))
		}
	}
	for past != "" && ctx.Err() == nil {
		p := f.get(ctx, past)
		f.keep(ctx, p, true)
		if past = p.Next.Path; len(p.Data) == 0 {
			break
		}
	}
	f.checkAll(ctx)
}

// keep remembers the entries of a page, and checks their order. For some pages it also reads one of the assets,
// which must be at least as new as its entry.
func (f *follower) keep(ctx context.Context, p page, descending bool) {
	now := time.Now()
	f.report.count(1, 2*len(p.Data))
	before := ""
	for _, e := range p.Data {
		at := place{e.ID, e.DateModified}
		switch {
		case f.seen[at]:
			f.report.violation(&f.report.duplicated, "got %v twice, want it once", at)
		case before != "" && (e.DateModified <= before) != descending:
			f.report.violation(&f.report.outOfOrder, "got %s after %s on a page, want the other order", e.DateModified,
				before)
		}
		f.seen[at], before = true, e.DateModified
		f.mu.Lock()
		if _, known := f.history.seen[at]; !known {
			f.history.seen[at] = now
		}
		f.mu.Unlock()
	}
	if len(p.Data) == 0 || f.services.watch != nil || randtest.IntN(5) > 0 { // the drill's reads may be stale
		return
	}
	e, got := p.Data[randtest.IntN(len(p.Data))], answer{}
	if f.services.call(ctx, "GET", "/api/2.5/assets/"+e.ID, "", nil, &got) == http.StatusOK &&
		got.Data.DateModified < e.DateModified {
		f.report.violation(&f.report.other, "%s: got dateModified %s after its entry of %s, want that or later", e.ID,
			got.Data.DateModified, e.DateModified)
	}
}

// checkAll reads the whole feed again. The follower must have seen every entry, and each asset must have only one.
func (f *follower) checkAll(ctx context.Context) {
	ids := map[string]bool{}
	for path := "/api/2.5/assets?mode=_all_&limit=100"; ctx.Err() == nil; {
		p := f.get(ctx, path)
		if len(p.Data) == 0 {
			break
		}
		for _, e := range p.Data {
			if ids[e.ID] {
				f.report.violation(&f.report.duplicated, "got two entries of %s, want one", e.ID)
			}
			if ids[e.ID] = true; !f.seen[place{e.ID, e.DateModified}] {
				f.report.violation(&f.report.lost, "%s at %s: got no entry in the pages of a follower, want it seen",
					e.ID,
					e.DateModified)
			}
		}
		f.report.count(1, 2*len(p.Data))
		path = p.Next.Path
	}
}
