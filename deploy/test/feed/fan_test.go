package feed

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"
)

// fan sends the feed of a naive registry to followers, as many systems do it. Unless it
// is hasty or its buffers are small, it is sound.
type fan struct {
	registry *naive
	hasty    bool // it sends changes before it has sent all pages
	buffer   int  // of each follower; a change that finds it full is dropped

	mu        sync.Mutex
	followers map[chan naiveAsset]bool
}

const (
	fanPage  = 10      // entries of a page
	fanSound = 100_000 // a buffer that never fills up
)

// changed gives a change to each follower. The registry's lock keeps the order.
func (f *fan) changed(a naiveAsset) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for follower := range f.followers {
		select {
		case follower <- a:
		default:
		}
	}
}

// join adds a follower until leave.
func (f *fan) join() (changes chan naiveAsset, leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes = make(chan naiveAsset, f.buffer)
	f.followers[changes] = true
	return changes, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.followers, changes)
	}
}

// stream sends pages, and then each change as a line.
func (f *fan) stream(w http.ResponseWriter, r *http.Request) {
	changes, leave := f.join()
	defer leave()
	control, at := http.NewResponseController(w), r.URL.Query().Get("offset")
	send := func(a naiveAsset) error {
		if at = a.DateModified; json.NewEncoder(w).Encode(a) != nil {
			return http.ErrAbortHandler
		}
		return control.Flush()
	}
	for {
		page := f.page(at)
		for _, a := range page {
			if send(a) != nil {
				return
			}
		}
		if len(page) == 0 || f.hasty {
			break
		}
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case a := <-changes:
			if a.DateModified > at && send(a) != nil {
				return
			}
		}
	}
}

func (f *fan) page(after string) []naiveAsset {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	return f.registry.page(after, fanPage, false)
}

func TestTheCheckerFindsLossesOfANaiveStream(t *testing.T) {
	for _, c := range []struct {
		name  string
		fan   *fan
		found func(r *report) bool
	}{
		{"pages, then all changes, is sound", &fan{buffer: fanSound},
			func(r *report) bool { return len(r.examples) == 0 && r.deliveries > r.changes }},
		{"changes before the last page", &fan{buffer: fanSound, hasty: true}, func(r *report) bool { return r.lost > 0 }},
		{"a change is dropped if the buffer is full", &fan{buffer: 1}, func(r *report) bool { return r.lost > 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			registry := &naive{sound: true, fan: c.fan}
			c.fan.registry, c.fan.followers = registry, map[chan naiveAsset]bool{}
			all := taste{ways: []way{lines}, mode: "_all_", stay: 100 * time.Millisecond}
			r := registry.run(t, load{writers: 16, changes: 2000, assets: 100, live: []taste{all, all, all}})
			if !c.found(r) {
				t.Errorf("got %d changes, %d deliveries, %d losses and %q", r.changes, r.deliveries, r.lost, r.examples)
			}
		})
	}
}
