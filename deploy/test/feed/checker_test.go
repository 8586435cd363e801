package feed

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"asset-registry/shared/randtest"
)

// load describes how much a run does.
type load struct {
	writers, followers int
	changes            int           // acknowledged changes after which the writers stop, unless the field `lasts` is set
	lasts              time.Duration // time after which the writers stop
	each               int           // one of so many steps of a writer creates an asset; 0 means 20
	pause              time.Duration // longest pause of a writer after a change, and of a follower after an empty page
	assets             int           // the number of assets that the writers create in all
	live               []taste       // the run has one live follower for each of these
}

// report is the result of a run.
type report struct {
	changes, unknown, pages, checks     int // unknown: changes without a clear answer
	lost, duplicated, outOfOrder, other int // violations by kind
	walks, vanished                     int // complete reads of the feed, and assets that such a read missed
	recorded                            int // changes in the records of all assets
	missing, extra, reordered           int // violations of the records by kind
	examples                            []string
	// Times from an acknowledgement until the first follower sees the change.
	delays                          []time.Duration
	live                            []wayReport // in the order of the list ways
	deliveries                      int         // entries that the live followers got
	connections, bookmarks, repeats int         // counts of all live followers together
	mu                              sync.Mutex
}

// violation counts a violation of one kind, and keeps the first ten violations of all kinds as examples.
func (r *report) violation(count *int, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*count++
	if len(r.examples) < 10 {
		r.examples = append(r.examples, fmt.Sprintf(format, args...))
	}
}

// count adds to the number of pages that were read, and to the number of checks that were made.
func (r *report) count(pages, checks int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages += pages
	r.checks += checks
}

// walked counts one more complete read of the feed.
func (r *report) walked() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.walks++
}

// delay returns a percentile of the delays. For the median, share is 0.5.
func (r *report) delay(share float64) time.Duration { return percentile(r.delays, share) }

// percentile returns a percentile of sorted delays, or 0 if delays is empty.
func percentile(delays []time.Duration, share float64) time.Duration {
	if len(delays) == 0 {
		return 0
	}
	return delays[min(len(delays)-1, int(share*float64(len(delays))))]
}

// place is an asset and its position in the feed.
type place struct{ id, modified string }

// ack is an acknowledged change.
type ack struct {
	place
	description string
	begun, end  int64 // ticks of the clock when the request was sent and when its answer came
	at          time.Time
}

// progressEach is the number of changes between two lines that report the progress.
const progressEach = 1000

// history records the answers that the writers got, and the entries that the followers got.
type history struct {
	services *services
	load     load
	begun    time.Time
	report   report
	ticks    atomic.Int64 // logical clock: it ticks at each request and at each answer
	done     atomic.Int64 // number of acknowledged changes
	finished atomic.Bool  // true after the writers have ended and the faults have stopped

	mu     sync.Mutex
	assets []owned
	acks   []ack
	tried  map[string]bool     // descriptions that writers have sent
	seen   map[place]time.Time // when the first follower saw an entry at this place

	unknown map[string]string  // changes without a clear answer: the description that was sent -> the asset
	doubts  map[string][]int64 // ticks of the requests of such changes; the keys are ids of assets

	lives   []*live
	rare    owned            // the one test asset that changes during the run
	lasts   map[string]owned // drafts that are published at the end of the run; the keys are modes
	changed atomic.Int64     // when the test asset changed last, in Unix seconds
}

// owned is an asset with its owner token and the dateModified of its creation.
type owned struct{ id, token, created string }

func newHistory(s *services, l load) *history {
	return &history{services: s, load: l, begun: time.Now(), tried: map[string]bool{}, seen: map[place]time.Time{},
		unknown: map[string]string{}, doubts: map[string][]int64{}, lasts: map[string]owned{}}
}

// run runs the load and checks its history. When the writers have ended, it calls the function `calm`, which must
// return only after the faults have ended.
func (h *history) run(ctx context.Context, calm func()) *report {
	h.create(ctx) // a descending follower needs an entry to start at
	var writers, followers, lives sync.WaitGroup
	patience, hurry := context.WithCancel(ctx)
	defer hurry()
	if len(h.load.live) > 0 {
		h.prepare(ctx)
	}
	for i, t := range h.load.live {
		l := newLive(h, i, t)
		h.lives = append(h.lives, l)
		lives.Go(func() { l.follow(patience) })
	}
	for i := range h.load.followers {
		f := &follower{history: h, seen: map[place]bool{}}
		followers.Go(func() { f.follow(ctx, i%2 == 1) })
	}
	followers.Go(func() { h.walk(ctx) })
	for range h.load.writers {
		writers.Go(func() { h.write(ctx) })
	}
	writers.Wait()
	calm()
	if len(h.lives) > 0 {
		h.publishLast(ctx)
	}
	h.finished.Store(true)
	followers.Wait()
	late := time.AfterFunc(catchUp, hurry)
	lives.Wait()
	late.Stop()
	h.checkLive(ctx)
	h.checkAcknowledgements()
	h.checkAssets(ctx)
	h.checkRecord(ctx)
	h.measure()
	return &h.report
}

// goes reports whether the writers go on.
func (h *history) goes() bool {
	if h.load.lasts > 0 {
		return time.Since(h.begun) < h.load.lasts
	}
	return h.done.Load() < int64(h.load.changes)
}

// write changes assets, and sometimes creates one, until the load ends.
func (h *history) write(ctx context.Context) {
	for ctx.Err() == nil && h.goes() {
		if h.load.pause > 0 {
			time.Sleep(randtest.N(h.load.pause))
		}
		if h.rare.id != "" && h.isTimeForTest() {
			h.change(ctx, h.rare)
		}
		h.mu.Lock()
		count := len(h.assets)
		h.mu.Unlock()
		if count == 0 || count < h.load.assets && randtest.IntN(cmp.Or(h.load.each, 20)) == 0 {
			h.create(ctx)
			continue
		}
		h.mu.Lock()
		a := h.assets[randtest.IntN(len(h.assets))]
		h.mu.Unlock()
		if !h.change(ctx, a) {
			time.Sleep(randtest.N(100 * time.Millisecond))
		}
	}
}

// answer is the body of an answer with one asset.
type answer struct {
	Access struct{ Token string }
	Data   struct{ ID, DateModified, Description string }
}

// create creates a real asset, and publishes it.
func (h *history) create(ctx context.Context) {
	if a, ok := h.draft(ctx, ""); ok {
		h.publish(ctx, a)
	}
}

// draft creates a draft, which the feed does not list. It returns false if no answer came.
func (h *history) draft(ctx context.Context, mode string) (a owned, ok bool) {
	var got answer
	status := h.services.call(ctx, "POST", "/api/2.5/assets", "", map[string]any{"data": asset("new", mode)}, &got)
	return owned{got.Data.ID, got.Access.Token, got.Data.DateModified}, status == http.StatusCreated
}

// publish publishes a draft. From then on the feed lists it.
func (h *history) publish(ctx context.Context, a owned) {
	for ctx.Err() == nil && !h.change(ctx, a) {
		time.Sleep(10 * time.Millisecond)
	}
	h.mu.Lock()
	h.assets = append(h.assets, a)
	h.mu.Unlock()
}

// change sends one change, and reports whether it was acknowledged.
func (h *history) change(ctx context.Context, a owned) bool {
	description := fmt.Sprintf("%016x", randtest.Uint64())
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
			h.report.violation(&h.report.other, "%s: got the description %s in the answer, want %s", a.id,
				got.Data.Description, description)
		}
		return true
	case 0, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		h.report.unknown++
		h.unknown[description] = a.id
		h.doubts[a.id] = append(h.doubts[a.id], begun)
	case http.StatusConflict: // the change was refused
	default:
		if h.services.watch == nil { // otherwise it has judged the status
			h.report.violation(&h.report.other, "a change: got %d, want 200 or a documented failure", status)
		}
	}
	return false
}

// checkAcknowledgements checks invariant F3: no two changes have the same position, and if one change ends before
// another begins, the first of them has the earlier position.
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
			r.violation(&r.outOfOrder, "%s: got %s, want it after %s of %s, which had ended before", a.id, a.modified,
				highest.modified, highest.id)
		}
		if other, taken := at[a.modified]; taken {
			r.violation(&r.duplicated, "got %s for %s and for %s, want a position of its own for each", a.modified,
				a.id, other)
		}
		at[a.modified] = a.id
	}
}

// checkAssets checks that each asset shows its newest acknowledged change, or a later change whose answer was lost.
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
			r.violation(&r.lost, "%s: got dateModified %s, want the acknowledged %s or later", a.id,
				got.Data.DateModified,
				newest[a.id])
		}
		if want, acknowledged := at[place{a.id, got.Data.DateModified}]; acknowledged && got.Data.Description != want ||
			!h.tried[got.Data.Description] {
			r.violation(&r.other, "%s at %s: got the description %s, want %q", a.id, got.Data.DateModified,
				got.Data.Description, want)
		}
	}
}

// measure computes how long changes took to reach the first follower. Changes that no follower saw do not count: a
// later change of the same asset had replaced them.
func (h *history) measure() {
	for _, a := range h.acks {
		if seen, was := h.seen[a.place]; was {
			h.report.delays = append(h.report.delays, max(0, seen.Sub(a.at)))
		}
	}
	slices.Sort(h.report.delays)
}
