package search

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/disktest"
	"asset-registry/shared/testing/expect"
)

// TestAFullDiskStopsNoSearch fills the disk of the index while assets are written. The search service must answer
// from the index that it has, and report what is wrong. When the disk has room again, it must continue.
func TestAFullDiskStopsNoSearch(t *testing.T) {
	small := disktest.New(t, 24)
	s := newStageIn(t, filepath.Join(small, "search"))
	ctx, end := context.WithTimeout(t.Context(), 2*time.Second)
	defer end()
	s.write(ctx, t)
	before := s.awaitEqual(t)
	free := disktest.Fill(t, small)
	ctx, end = context.WithCancel(t.Context())
	defer end()
	var writing sync.WaitGroup
	writing.Go(func() { s.write(ctx, t) })
	const reason = "no space left on device"
	for began := time.Now(); !strings.Contains(s.output.String(), reason); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("the output has no %q after a minute: %s", reason, s.output.String())
		}
		expect.MustOf(t, "a search while the disk is full")(s.search.Search(t.Context(), url.Values{}))
	}
	end()
	writing.Wait()
	if page, err := s.search.Search(t.Context(), url.Values{}); err != nil || page.Total == 0 {
		t.Errorf("a search on a full disk: got %d assets and %v, want some of %d", page.Total, err, before)
	}
	free()
	t.Logf("the index has the %d assets of the feed, %d before the disk was full", s.awaitEqual(t), before)
}
