package feed

import (
	"context"
	"fmt"
	"time"

	"asset-registry/shared/randtest"
	"asset-registry/shared/sleep"
)

// walk reads the whole list again and again until the writers and the faults have ended. It acts as a crawler that
// believes an asset is gone when the list lacks it. So each walk must find every asset whose publication was
// acknowledged before the walk began. After a walk, it rests for as long as the walk took: the stand-in for MongoDB
// reads all assets for each page, and the writers need the stand-in, too.
func (h *history) walk(ctx context.Context) {
	f, missed := &follower{history: h}, map[string]bool{}
	for ctx.Err() == nil && !h.finished.Load() {
		begun, want := time.Now(), map[string]bool{}
		h.mu.Lock()
		for _, a := range h.assets {
			want[a.id] = true
		}
		h.mu.Unlock()
		count, pages := len(want), 0
		path := fmt.Sprintf("/api/2.5/assets?mode=_all_&limit=%d", 30+randtest.IntN(70))
		if randtest.IntN(2) == 0 {
			path += "&opt_fields=description"
		}
		for ctx.Err() == nil {
			p := f.get(ctx, path)
			pages++
			if len(p.Data) == 0 {
				break
			}
			for _, e := range p.Data {
				delete(want, e.ID)
			}
			path = p.Next.Path
		}
		if ctx.Err() != nil {
			return
		}
		h.report.count(pages, count)
		h.report.walked()
		before := missed
		missed = want
		for id := range want {
			if h.services.watch != nil && !before[id] {
				continue // the drill's reads may be stale, but not twice
			}
			h.report.violation(&h.report.vanished, "%s was published before a walk began, but the walk did not find it", id)
		}
		rested := time.Now().Add(time.Since(begun))
		for ctx.Err() == nil && !h.finished.Load() && time.Now().Before(rested) {
			sleep.For(ctx, 50*time.Millisecond)
		}
	}
}
