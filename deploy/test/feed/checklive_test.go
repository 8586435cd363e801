package feed

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"time"
)

// testPause is the time between two changes of the test asset. It is longer than the time between two heartbeats,
// so followers of test assets get bookmarks.
const testPause = 20 * time.Second

// prepare creates the test asset, and the drafts whose publication ends the feed.
func (h *history) prepare(ctx context.Context) {
	create := func(mode string) (a owned) {
		for ok := false; !ok && ctx.Err() == nil; {
			a, ok = h.draft(ctx, mode)
		}
		return a
	}
	h.rare, h.lasts["test"], h.lasts[""] = create("test"), create("test"), create("")
}

// isTimeForTest reports whether the test asset must change now. It returns true to only one of the writers.
func (h *history) isTimeForTest() bool {
	last, now := h.changed.Load(), time.Now().Unix()
	return now-last >= int64(testPause/time.Second) && h.changed.CompareAndSwap(last, now)
}

// publishLast adds the entries that end the feed, one for each mode. A follower that gets the last entry of its
// mode has passed all other entries.
func (h *history) publishLast(ctx context.Context) {
	h.publish(ctx, h.rare) // this asset changes once more, because its last change may have got no answer
	h.publish(ctx, h.lasts["test"])
	h.publish(ctx, h.lasts[""])
}

// lastID returns the id of the asset whose entry ends the feed of a mode.
func (h *history) lastID(mode string) string {
	if mode == "test" {
		return h.lasts["test"].id
	}
	return h.lasts[""].id
}

// lists reports whether the feed of a mode lists the asset.
func (h *history) lists(mode, id string) bool {
	isTest := id == h.rare.id || id == h.lasts["test"].id
	return mode == "_all_" || isTest == (mode == "test")
}

// checkLive checks the entries that the live followers have got.
func (h *history) checkLive(ctx context.Context) {
	if len(h.lives) == 0 {
		return
	}
	final, replaced := h.readAll(ctx), h.changesByAsset()
	descriptions := map[place]string{}
	for _, a := range h.acks {
		descriptions[a.place] = a.description
	}
	for _, l := range h.lives {
		if !l.ended {
			h.report.violation(&h.report.lost, "a follower by %v of mode %q: got to %q, want it at the last entry", l.ways,
				l.mode, l.at)
		}
		l.checkLosses(final, replaced)
		l.checkStates(descriptions)
		h.report.deliveries += l.entries
		h.report.connections += l.connections
		h.report.bookmarks += l.bookmarks
		h.report.repeats += l.repeats
	}
	h.measureLive()
}

// readAll reads the whole feed, page by page.
func (h *history) readAll(ctx context.Context) (all []place) {
	f := follower{history: h}
	for path := "/api/2.5/assets?mode=_all_&limit=1000"; ctx.Err() == nil; {
		p := f.get(ctx, path)
		if len(p.Data) == 0 {
			break
		}
		for _, e := range p.Data {
			all = append(all, place{e.ID, e.DateModified})
		}
		path = p.Next.Path
	}
	return all
}

// changesByAsset returns the acknowledged changes of each asset, the oldest first.
func (h *history) changesByAsset() map[string][]ack {
	byAsset := map[string][]ack{}
	for _, a := range h.acks {
		byAsset[a.id] = append(byAsset[a.id], a)
	}
	for _, acks := range byAsset {
		slices.SortFunc(acks, func(a, b ack) int { return cmp.Compare(a.modified, b.modified) })
	}
	return byAsset
}

// checkLosses checks that the follower has got each change that the feed lists at the end. It must also have got
// each earlier change, with one exception: the feed lists an asset only at its newest position. So a follower may
// miss a change if a later change of the asset had begun before the follower passed the position of the missed
// change.
func (l *live) checkLosses(final []place, acks map[string][]ack) {
	r, checks := &l.report, 0
	for _, at := range final {
		if !l.lists(l.mode, at.id) {
			continue
		}
		checks++
		if _, seen := l.seen[at]; !seen {
			r.violation(&r.lost, "%s at %s: a follower by %v of mode %q got no entry, want the newest one", at.id, at.modified,
				l.ways, l.mode)
		}
	}
	for id, changes := range acks {
		if !l.lists(l.mode, id) {
			continue
		}
		for i, a := range changes {
			checks++
			if _, seen := l.seen[a.place]; !seen && !l.replaced(a, changes[i+1:]) {
				r.violation(&r.lost, "%s at %s: a follower by %v of mode %q passed it without an entry, want one", id, a.modified,
					l.ways, l.mode)
			}
		}
	}
	r.count(0, checks)
}

// replaced reports whether the change a may already have been replaced when the follower passed its position. This
// is so if a later change of the same asset had begun by then.
func (l *live) replaced(a ack, later []ack) bool {
	i := sort.Search(len(l.passed), func(i int) bool { return l.passed[i].to >= a.modified })
	if i == len(l.passed) {
		return false
	}
	began := func(tick int64) bool { return tick <= l.passed[i].tick }
	return slices.ContainsFunc(later, func(b ack) bool { return began(b.begun) }) ||
		slices.ContainsFunc(l.doubts[a.id], began)
}

// checkStates checks each entry. It must belong to the follower's mode. It must belong to a change that a writer
// has sent, and have the description of that change.
func (l *live) checkStates(descriptions map[place]string) {
	r := &l.report
	r.count(0, len(l.seen))
	for at, got := range l.seen {
		want, acknowledged := descriptions[at]
		isOpen := !acknowledged && (l.fields == "" && len(l.doubts[at.id]) > 0 || l.unknown[got.description] == at.id)
		switch {
		case !l.lists(l.mode, at.id):
			r.violation(&r.other, "%v: got it by %s in mode %q, want no such entry", at, got.way, l.mode)
		case isOpen || acknowledged && (l.fields == "" || got.description == want):
		default:
			r.violation(&r.other, "%v: got the description %q by %s, want %q", at, got.description, got.way, want)
		}
	}
}

// wayReport reports what all live followers together got in one way.
type wayReport struct {
	way     way
	entries int
	delays  []time.Duration // times from an acknowledgement until each follower has the change
}

// measureLive computes the delays for each way.
func (h *history) measureLive() {
	acked := map[place]time.Time{}
	for _, a := range h.acks {
		acked[a.place] = a.at
	}
	byWay := map[way]*wayReport{}
	for _, w := range append(ways, hooks) {
		byWay[w] = &wayReport{way: w}
	}
	for _, l := range h.lives {
		for at, s := range l.seen {
			byWay[s.way].entries++
			if end, was := acked[at]; was {
				byWay[s.way].delays = append(byWay[s.way].delays, max(0, s.at.Sub(end)))
			}
		}
	}
	for _, w := range append(ways, hooks) {
		slices.Sort(byWay[w].delays)
		h.report.live = append(h.report.live, *byWay[w])
	}
}

// printLive prints a table of the entries that live followers got.
func printLive(r *report) {
	if len(r.live) == 0 {
		return
	}
	fmt.Printf("live: %d deliveries, %d of them again, %d bookmarks, %d connections\n", r.deliveries, r.repeats,
		r.bookmarks, r.connections)
	for _, w := range r.live {
		fmt.Printf("live: %8d by %-6s  delay p50 %v, p99 %v\n", w.entries, w.way,
			percentile(w.delays, 0.5).Round(time.Millisecond), percentile(w.delays, 0.99).Round(time.Millisecond))
	}
}
