package upstream

import (
	"hash/maphash"
	"net/http"
	"sync"
	"time"
)

const (
	deathTime = 10 * time.Second
	maxDeaths = 4096 // requests that are remembered
)

// deaths remembers requests during which a server died. Such a request may have
// been the reason, so it is repeated once, and then not again for some time:
// it must not travel from server to server.
type deaths struct {
	seed maphash.Seed
	mu   sync.Mutex
	last map[uint64]time.Time // by request
}

func newDeaths() *deaths {
	return &deaths{seed: maphash.MakeSeed(), last: map[uint64]time.Time{}}
}

// mayRepeat notes that a server died during a request, and reports whether the
// request may be repeated: whether it is the first death in some time.
func (d *deaths) mayRepeat(r *http.Request, now time.Time) bool {
	key := d.key(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	last, known := d.last[key]
	if known && now.Sub(last) < deathTime {
		return false
	}
	if len(d.last) >= maxDeaths {
		d.forget(now)
	}
	if len(d.last) >= maxDeaths { // so many servers do not die for nothing
		return false
	}
	d.last[key] = now
	return true
}

// forget drops what happened too long ago.
func (d *deaths) forget(now time.Time) {
	for key, last := range d.last {
		if now.Sub(last) >= deathTime {
			delete(d.last, key)
		}
	}
}

// key names a request: its method, path and query, and its name if it has one.
func (d *deaths) key(r *http.Request) uint64 {
	var h maphash.Hash
	h.SetSeed(d.seed)
	for _, text := range []string{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Idempotency-Key")} {
		h.WriteString(text)
		h.WriteByte(0)
	}
	return h.Sum64()
}
