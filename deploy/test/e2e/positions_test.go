package e2e

import (
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

// change is an acknowledged change of an asset.
type change struct{ id, at string }

// acknowledged are the changes that the registry has acknowledged to the writers.
type acknowledged struct {
	mu      sync.Mutex
	changes []change
}

func (k *acknowledged) add(c change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes = append(k.changes, c)
}

// upTo returns the newest change of each asset at or before a position.
func (k *acknowledged) upTo(position string) map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	newest := map[string]string{}
	for _, c := range k.changes {
		if c.at <= position {
			newest[c.id] = max(newest[c.id], c.at)
		}
	}
	return newest
}

// writeUntil starts four brokers, which change their assets until the channel `stop` is closed. It adds each
// acknowledged change to the list `known`.
func (a api) writeUntil(t *testing.T, stop <-chan struct{}, f fields, known *acknowledged) (wait func()) {
	t.Helper()
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			c := a.publish(t, f)
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				got := a.patch(t, c, fields{"description": fmt.Sprint("зміна ", n)}).must(t, 200)
				known.add(change{c.id, text(got.data()["dateModified"])})
			}
		})
	}
	return writers.Wait
}

// TestEachSearchHasAllUpToItsPosition asks two search services alternately while brokers write. Each answer must
// have all changes up to the position that it names.
// Promises: search-position
func TestEachSearchHasAllUpToItsPosition(t *testing.T) {
	t.Parallel()
	s := split(t, filepath.Join(t.TempDir(), "data"), processes.Stores{Search: true}, &processes.Output{})
	a, other := api{s.URL, "2.5"}, freeAddr(t)
	p := expect.Get(processes.Search(t.Context(), bin, other, s.URL, t.TempDir(), &processes.Output{}))(t)
	t.Cleanup(func() { _ = p.Kill() })
	searches := []api{a, {"http://" + other, "2.5"}}
	for _, search := range searches {
		search.awaitSearch(t)
	}
	stop, word := make(chan struct{}), nonsense()
	var known acknowledged
	wait := a.writeUntil(t, stop, validAsset().set("title", word), &known)
	for i := range 200 {
		searches[i%len(searches)].hasUpToItsPosition(t, word, &known)
	}
	close(stop)
	wait()
}

// hasUpToItsPosition searches once, and checks that the answer has all known changes up to its position.
func (a api) hasUpToItsPosition(t *testing.T, word string, known *acknowledged) {
	t.Helper()
	got := a.find(t, url.Values{"q": {word}})
	found := map[string]string{}
	for _, hit := range list(got.json["data"]) {
		found[text(at(hit, "id"))] = text(at(hit, "dateModified"))
	}
	position := text(got.json["position"])
	if position == "" {
		t.Errorf("%s: got %.300s, want a position", a.base, got.text)
	}
	for id, want := range known.upTo(position) {
		if found[id] < want {
			t.Errorf("%s at %s: got the asset %s as of %q, want %s or later", a.base, position, id, found[id], want)
		}
	}
}
