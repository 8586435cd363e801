package search

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

var kills = flag.Int("kills", 8, "times that the search service is killed")

// TestAfterEachKillTheIndexIsTheFeed kills the search service while it starts, builds its index, or follows the
// feed while assets are written. After each kill, the index must become equal to the feed without help.
// Promises: search-kills
func TestAfterEachKillTheIndexIsTheFeed(t *testing.T) {
	s := newStage(t)
	r := rand.New(rand.NewPCG(7, 7))
	for n := range *kills {
		ctx, end := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		writing.Go(func() { s.write(ctx, t) })
		time.Sleep(time.Duration(50+r.IntN(900)) * time.Millisecond)
		expect.OK(t, s.service.Kill())
		switch n % 4 {
		case 2: // remove the index
			expect.OK(t, os.RemoveAll(s.dir))
		case 3: // damage the index
			spoil(t, s.dir)
		}
		s.start(t)
		time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
		end()
		writing.Wait()
		t.Logf("kill %d: the index has the %d assets of the feed", n+1, s.awaitEqual(t))
	}
}

// spoil cuts off the end of each file of the index.
func spoil(t *testing.T, dir string) {
	t.Helper()
	files := expect.Get(filepath.Glob(filepath.Join(dir, "*")))(t)
	for _, name := range files {
		info := expect.Get(os.Stat(name))(t)
		expect.OK(t, os.Truncate(name, info.Size()*2/3))
	}
}
