package feed

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// load is what is put on the services.
type load struct {
	writers, followers int
	changes            int // acknowledged ones at least
	assets             int // that the writers share, in the end
}

// report is what was found.
type report struct {
	changes, unknown, pages, checks     int
	lost, duplicated, outOfOrder, other int
	examples                            []string
	delays                              []time.Duration // from acknowledgement until a follower has seen the change
	violationsMu                        sync.Mutex
}

func (r *report) violation(count *int, format string, args ...any) {
	r.violationsMu.Lock()
	defer r.violationsMu.Unlock()
	*count++
	if len(r.examples) < 10 {
		r.examples = append(r.examples, fmt.Sprintf(format, args...))
	}
}

func (r *report) count(pages, checks int) {
	r.violationsMu.Lock()
	defer r.violationsMu.Unlock()
	r.pages += pages
	r.checks += checks
}

// delay returns the delay that a share of the changes did not exceed.
func (r *report) delay(share float64) time.Duration {
	if len(r.delays) == 0 {
		return 0
	}
	return r.delays[min(len(r.delays)-1, int(share*float64(len(r.delays))))]
}

// place is an asset at a position.
type place struct{ id, modified string }

// ack is a change that a writer was told of.
type ack struct {
	place
	description string
	begun, end  int64 // ticks
	at          time.Time
}

// progressEach is after how many changes the checker says how far it is.
const progressEach = 1000

// history is what the writers were told and the followers were shown.
type history struct {
	services *services
	load     load
	begun    time.Time
	report   report
	ticks    atomic.Int64 // a clock of events: one tick for each begin and end
	done     atomic.Int64 // changes acknowledged
	finished atomic.Bool  // the writers have ended, and nothing goes wrong any more

	mu     sync.Mutex
	assets []owned
	acks   []ack
	tried  map[string]bool     // descriptions that nobody has said anything of
	seen   map[place]time.Time // by the first follower
}

// owned is an asset with its token.
type owned struct{ id, token string }

func newHistory(s *services, l load) *history {
	return &history{services: s, load: l, begun: time.Now(), tried: map[string]bool{}, seen: map[place]time.Time{}}
}

// run puts the load on; calm is called when the writers have ended, and returns
// when nothing goes wrong any more.
func (h *history) run(ctx context.Context, calm func()) *report {
	h.create(ctx) // so that a follower who starts at the newest has where to start
	var writers, followers sync.WaitGroup
	for i := range h.load.followers {
		f := &follower{history: h, seen: map[place]bool{}}
		followers.Go(func() { f.follow(ctx, i%2 == 1) })
	}
	for range h.load.writers {
		writers.Go(func() { h.write(ctx) })
	}
	writers.Wait()
	calm()
	h.finished.Store(true)
	followers.Wait()
	h.checkAcknowledgements()
	h.checkAssets(ctx)
	h.measure()
	return &h.report
}

// write creates assets until there are enough, and changes them.
func (h *history) write(ctx context.Context) {
	for ctx.Err() == nil && h.done.Load() < int64(h.load.changes) {
		h.mu.Lock()
		count := len(h.assets)
		h.mu.Unlock()
		if count == 0 || count < h.load.assets && rand.IntN(20) == 0 {
			h.create(ctx)
			continue
		}
		h.mu.Lock()
		a := h.assets[rand.IntN(len(h.assets))]
		h.mu.Unlock()
		if !h.change(ctx, a) {
			time.Sleep(rand.N(100 * time.Millisecond))
		}
	}
}

// answer is what the services say of one asset.
type answer struct {
	Access struct{ Token string }
	Data   struct{ ID, DateModified, Description string }
}

// create makes an asset and, in a second change, publishes it.
func (h *history) create(ctx context.Context) {
	var got answer
	if h.services.call(ctx, "POST", "/api/2.5/assets", "", map[string]any{"data": asset("new")},
		&got) != http.StatusCreated {
		return
	}
	a := owned{got.Data.ID, got.Access.Token}
	for ctx.Err() == nil && !h.change(ctx, a) { // until then it is in no feed
		time.Sleep(10 * time.Millisecond)
	}
	h.mu.Lock()
	h.assets = append(h.assets, a)
	h.mu.Unlock()
}

// change makes one change, and says whether it was acknowledged.
func (h *history) change(ctx context.Context, a owned) bool {
	description := fmt.Sprintf("%016x", rand.Uint64())
	h.mu.Lock()
	h.tried[description] = true
	h.mu.Unlock()
	begun := h.ticks.Add(1)
	var got answer
	status := h.services.call(ctx, "PATCH", "/api/2.5/assets/"+a.id, a.token,
		map[string]any{"data": map[string]any{"description": description, "status": "pending"}}, &got)
	end, at := h.ticks.Add(1), time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch status {
	case http.StatusOK:
		if done := h.done.Add(1); done%progressEach == 0 {
			fmt.Printf("%v: %d changes\n", time.Since(h.begun).Round(time.Second), done)
		}
		h.acks = append(h.acks, ack{place{a.id, got.Data.DateModified}, description, begun, end, at})
		if got.Data.Description != description {
			h.report.violation(&h.report.other, "%s was set to %s, and the answer says %s", a.id, description,
				got.Data.Description)
		}
		return true
	case 0, http.StatusServiceUnavailable, http.StatusConflict, http.StatusGatewayTimeout:
		h.report.unknown++
	default:
		h.report.violation(&h.report.other, "a change was answered with %d", status)
	}
	return false
}

// checkAcknowledgements checks F3: positions are unique, and in the order of
// changes of which one ended before the other began.
func (h *history) checkAcknowledgements() {
	r := &h.report
	r.changes = len(h.acks)
	byBegin := slices.SortedFunc(slices.Values(h.acks), func(a, b ack) int { return cmp.Compare(a.begun, b.begun) })
	byEnd := slices.SortedFunc(slices.Values(h.acks), func(a, b ack) int { return cmp.Compare(a.end, b.end) })
	at, highest := map[string]string{}, ack{}
	for _, a := range byBegin {
		for len(byEnd) > 0 && byEnd[0].end < a.begun {
			if byEnd[0].modified > highest.modified {
				highest = byEnd[0]
			}
			byEnd = byEnd[1:]
		}
		r.count(0, 2)
		if a.modified <= highest.modified {
			r.violation(&r.outOfOrder, "%s got %s after %s had got %s", a.id, a.modified, highest.id, highest.modified)
		}
		if other, taken := at[a.modified]; taken {
			r.violation(&r.duplicated, "%s and %s both got %s", a.id, other, a.modified)
		}
		at[a.modified] = a.id
	}
}

// checkAssets checks that each asset stands at the newest change that was
// acknowledged, or at a later one of which nobody was told.
func (h *history) checkAssets(ctx context.Context) {
	r := &h.report
	newest, at := map[string]string{}, map[place]string{}
	for _, a := range h.acks {
		newest[a.id], at[a.place] = max(newest[a.id], a.modified), a.description
	}
	for _, a := range h.assets {
		var got answer
		for h.services.call(ctx, "GET", "/api/2.5/assets/"+a.id, "", nil, &got) != http.StatusOK && ctx.Err() == nil {
		}
		r.count(0, 2)
		if got.Data.DateModified < newest[a.id] {
			r.violation(&r.lost, "%s stands at %s, and a change at %s was acknowledged", a.id, got.Data.DateModified,
				newest[a.id])
		}
		if want, acknowledged := at[place{a.id, got.Data.DateModified}]; acknowledged && got.Data.Description != want ||
			!h.tried[got.Data.Description] {
			r.violation(&r.other, "%s at %s says %s, and %q was written there", a.id, got.Data.DateModified,
				got.Data.Description, want)
		}
	}
}

// measure takes the time from each acknowledgement until any follower had seen
// the change, of those that were not followed by another before that.
func (h *history) measure() {
	for _, a := range h.acks {
		if seen, was := h.seen[a.place]; was {
			h.report.delays = append(h.report.delays, max(0, seen.Sub(a.at)))
		}
	}
	slices.Sort(h.report.delays)
}
