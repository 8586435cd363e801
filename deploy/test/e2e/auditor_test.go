package e2e

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// auditor remembers every checkpoint that a log has shown it.
type auditor struct {
	mu    sync.Mutex
	roots map[int64]string // roots of the tree; the keys are sizes of the log
	forks []string         // checkpoints that differ from an earlier one of the same size, and malformed ones
}

// watch reads checkpoints until the registry stops answering.
func (w *auditor) watch(a api) {
	for ; ; time.Sleep(5 * time.Millisecond) {
		resp, err := client.Get(a.base + "/log/checkpoint")
		if err != nil {
			return
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close() // the body was only read, so an error does not matter
		if err != nil {
			return
		}
		if resp.StatusCode != http.StatusOK {
			continue
		}
		c, err := translog.Unverified(body)
		w.mu.Lock()
		root, seen := w.roots[c.Size]
		if err != nil || seen && root != c.Root.String() {
			w.forks = append(w.forks, string(body))
		}
		w.roots[c.Size] = c.Root.String()
		w.mu.Unlock()
	}
}

// check checks two things. The log must continue every checkpoint that the auditor has seen. It must have a
// leaf for each acknowledged change of a published asset.
func (w *auditor) check(t *testing.T, a api, l *ledger) {
	t.Helper()
	var last int64 // position of the newest acknowledged change
	for _, p := range l.assets {
		if p.listed {
			last = max(last, micros(t, p.modified))
		}
	}
	leaves := a.leavesUpTo(t, last)
	var tree translog.Tree
	known := map[string]bool{}
	for _, leaf := range leaves {
		var err error
		tree, _, err = tree.Append([][]byte{leaf.Encode()})
		expect.OK(t, err)
		if root, seen := w.roots[tree.Size()]; seen && root != tree.Root().String() {
			t.Errorf("the checkpoint of %d leaves had the root %s, the log has %s", tree.Size(), root, tree.Root())
		}
		known[leaf.Asset+" "+time.UnixMicro(leaf.Position).UTC().String()] = true
	}
	for size := range w.roots {
		if size > tree.Size() {
			t.Errorf("got a log of %d leaves, want at least the %d of an earlier checkpoint", tree.Size(), size)
		}
	}
	for _, fork := range w.forks {
		t.Errorf("got two checkpoints of one size, or a malformed one:\n%s", fork)
	}
	for _, p := range l.assets {
		for i, date := range p.dates {
			at := time.UnixMicro(micros(t, date)).UTC().String()
			if i > 0 && !known[p.id+" "+at] { // the first change created a draft, which has no leaf
				t.Errorf("asset %s: got no leaf of its change of %s, want one", p.id, date)
			}
		}
	}
	t.Logf("%d leaves, %d checkpoints were seen", tree.Size(), len(w.roots))
	if len(w.roots) < 3 {
		t.Errorf("got %d checkpoints, want at least 3", len(w.roots))
	}
}
