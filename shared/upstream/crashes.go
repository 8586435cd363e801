package upstream

import (
	"hash/maphash"
	"net/http"
	"sync"
	"time"
)

const (
	crashTime  = 10 * time.Second // time for which a request is remembered
	maxCrashes = 4096             // maximum number of requests that are remembered
)

// crashes remembers requests that got no answer, perhaps because the server crashed. If a request itself caused the
// crash, a retry of the request would crash the next server.
type crashes struct {
	seed maphash.Seed
	mu   sync.Mutex
	last map[uint64]time.Time // the last time at which a request got no answer, by the key of the request
}

func newCrashes() *crashes {
	return &crashes{seed: maphash.MakeSeed(), last: map[uint64]time.Time{}}
}

// mayRepeat records that a request got no answer. It returns false if the same request got no answer at an earlier try
// within crashTime. It also returns false if too many different requests got no answer in this time.
func (c *crashes) mayRepeat(r *http.Request, now time.Time) bool {
	key := c.key(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.last[key]
	if known && now.Sub(last) < crashTime {
		return false
	}
	if len(c.last) >= maxCrashes {
		c.forget(now)
	}
	if len(c.last) >= maxCrashes { // no single request caused so many failures; retries would cause more failures
		return false
	}
	c.last[key] = now
	return true
}

// forget deletes the requests that are older than crashTime.
func (c *crashes) forget(now time.Time) {
	for key, last := range c.last {
		if now.Sub(last) >= crashTime {
			delete(c.last, key)
		}
	}
}

// key is a hash of a request's method, path, query and Idempotency-Key.
func (c *crashes) key(r *http.Request) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, text := range []string{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Idempotency-Key")} {
		h.WriteString(text)
		h.WriteByte(0)
	}
	return h.Sum64()
}
