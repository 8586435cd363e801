package file

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// TestCounts ends uploads in each possible way, collects the files that nobody names, and removes a file twice.
// Each event must be counted once.
func TestCounts(t *testing.T) {
	b := newBench()
	b.limits.Waiting = 4
	away := fault.New(fault.Unavailable, fault.URL, "files", "The store does not answer.")
	var kept File
	for _, c := range []struct {
		text    string
		failure error // error of the store of bytes
	}{{"content", nil}, {"other", nil}, {"content", ErrFull}, {"content", errLost}, {"content", away}} {
		f := b.register(t, "content")
		b.memory.fails("put", c.failure)
		if stored, err := b.Upload(t.Context(), broker, f.ID, upload(c.text)); err == nil {
			kept = stored
		}
	}
	b.memory.step = func(string) error { return nil }
	must(t, kept, b.Name(t.Context(), kept.ID, false))
	b.clock = start.Add(2 * keep)
	b.memory.reading.Complete = b.clock
	done, err := b.Collect(t.Context())
	if must(t, done, err).Kept != kept.Size {
		t.Errorf("got %d bytes that stay, want %d", done.Kept, kept.Size)
	}
	b.limits.BrokerBytes = kept.Size
	expect.FailsOf(t, "")(b.Add(t.Context(), broker, upload("more")))
	admin := identity.Identity{Role: identity.Administrator}
	for range 2 { // the second removal changes nothing
		expect.ErrOf(t, nil, "")(b.Remove(t.Context(), admin, kept.ID, "a reason"))
	}
	n := &b.Counts
	got := []int64{n.Stored.Load(), n.Refused.Load(), n.Quota.Load(), n.Full.Load(), n.Failed.Load(), n.Collected.Load(),
		n.Removed.Load(), n.Received.Load()}
	expect.NoDiff(t, cmp.Diff([]int64{1, 1, 1, 1, 2, 4, 1, int64(len("content"))}, got), "got other counts")
}
