package feed

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"
)

// fan sends the feed of a naive registry to followers in the way in which many systems do it. It works correctly
// unless it is hasty or its buffers are small.
type fan struct {
	registry *naive
	hasty    bool // whether it begins to send new changes before it has sent all pages
	buffer   int  // how many changes can wait for each follower; if the buffer is full, further changes are dropped

	mu        sync.Mutex
	followers map[chan naiveAsset]bool
}

const (
	fanPage  = 10      // entries on a page
	fanSound = 100_000 // size of a buffer that never becomes full in these tests
)

// changed sends a change to each follower. The caller holds the registry's lock, so changes come in order.
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

// join adds a follower. The returned function `leave` removes it.
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

// stream sends the pages of the feed, and then each change as a line.
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
