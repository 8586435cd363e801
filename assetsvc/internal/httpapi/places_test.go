package httpapi

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/fair"
	"asset-registry/shared/follow"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/memory"
	"asset-registry/shared/testing/expect"
)

// TestDearReadingsTakeAPlace sends readings while another caller holds every place. Those that can take long must be
// refused after a while, and the others answered. With free places all are answered, and none holds a place while its
// answer is sent.
// Promises: fair-places, proof-turns, asset-turns
func TestDearReadingsTakeAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLogged(t)
		small, large := s.published(t), "/api/2.5/assets/"+s.publish(t, 3*memory.Small)
		s.sign(t)
		tag := s.do(t, exchange{"HEAD", large, "", "", "", 200, ""}).Header().Get("ETag")
		for _, c := range []struct {
			method, path, unless string
			isDear               bool
			status               int
		}{
			{"GET", small, "", false, 200},
			{"GET", small + "?opt_pretty=1&opt_jsonp=f", "", false, 200},
			{"GET", small + "/items", "", false, 200},
			{"GET", "/api/2.5/assets?limit=1000", "", false, 200},
			{"GET", "/log/checkpoint", "", false, 200},
			{"GET", "/api/2.5/assets?opt_fields=*&limit=1000", "", true, 200},
			{"HEAD", "/api/2.4/assets?opt_fields=status&opt_jsonp=f", "", false, 200},
			{"GET", "/api/2.5/me/assets?opt_fields=*", "", true, 200},
			{"GET", follow.PagePath("2.5") + "?opt_fields=*", "", true, 200},
			{"GET", large, "", true, 200},
			{"HEAD", large + "?opt_pretty=1&opt_jsonp=f", "", false, 200},
			{"GET", large, tag, false, 304},
			{"GET", large + "/items", "", true, 200},
			{"GET", large + "/documents?all=1&opt_jsonp=f", "", true, 200},
			{"GET", large + "/items/none", "", true, 404},
			{"GET", large + "/revisions", "", true, 200},
			{"GET", small + "/proof", "", true, 200},
			{"GET", large + "/proof", "", true, 200},
			{"GET", "/log/tile/entries/000", "", true, 200},
		} {
			headers := http.Header{httpserver.CallerHeader: {"a caller"}}
			if c.unless != "" {
				headers.Set("If-None-Match", c.unless)
			}
			e := exchange{c.method, c.path, identity.Administrator, "token", "", c.status, ""}
			end := expect.Get(s.memory.Places.Acquire(t.Context(), "another", s.memory.Places.Size()))(t)
			if e.status = c.status; c.isDear {
				e.status = http.StatusServiceUnavailable
			}
			if got := s.doWith(t, headers, e); c.isDear && got.Header().Get("Retry-After") == "" {
				t.Errorf("%s %s without a place: got no Retry-After, want one", c.method, c.path)
			}
			end()
			w := &watched{ResponseRecorder: httptest.NewRecorder(), work: s.memory.Places}
			if s.answer(t, w, headers, e); w.Code != c.status {
				t.Errorf("%s %s with a place: got %d %s, want %d", c.method, c.path, w.Code, w.Body, c.status)
			}
			if w.held > 0 || s.memory.Places.Used()+s.memory.Work.Used() > 0 {
				t.Errorf("%s %s: got %d places held while the answer is sent, and %d and %d bytes afterwards, want none",
					c.method, c.path, w.held, s.memory.Places.Used(), s.memory.Work.Used())
			}
		}
	})
}

// TestPlacesGoRoundByCaller lets one caller ask for many pages, and then another for one. The other one is served
// first, because it has had nothing. Requests without a name count as one caller.
// Promises: fair-places
func TestPlacesGoRoundByCaller(t *testing.T) {
	for _, many := range []string{"many", ""} {
		synctest.Test(t, func(t *testing.T) {
			m := NewMemory(1 << 30)
			m.Places = fair.New(1)
			s := newServiceWith(t, m)
			s.publish(t, 10)
			end := expect.Get(m.Places.Acquire(t.Context(), many, 1))(t)
			var all sync.WaitGroup
			var mu sync.Mutex
			answered := map[string]int{}
			ask := func(by string) {
				time.Sleep(time.Millisecond)
				all.Go(func() {
					headers := http.Header{}
					if by != "" {
						headers.Set(httpserver.CallerHeader, by)
					}
					s.doWith(t, headers, exchange{"GET", "/api/2.5/assets?opt_fields=*", "", "", "", 200, ""})
					mu.Lock()
					defer mu.Unlock()
					answered[by]++
				})
				synctest.Wait()
			}
			for range 20 {
				ask(many)
			}
			ask("another")
			time.Sleep(time.Millisecond) // the last one comes later than the other
			watching := make(chan func())
			go func() {
				end, err := m.Places.Acquire(t.Context(), "the last one", 1)
				expect.Try(t, err)
				watching <- end
			}()
			synctest.Wait()
			time.Sleep(time.Millisecond)
			end()
			end = <-watching // the last one has its place, so those before it are done
			synctest.Wait()
			if answered["another"] != 1 || answered[many] != 0 {
				t.Errorf("got %v answered, want the other caller only", answered)
			}
			end()
			all.Wait()
			expect.ErrorIf(t, answered[many] != 20, "got %v answered at the end, want all", answered)
		})
	}
}

// TestWritesTakeNoPlace changes a large asset while every place is held. A write may wait for other services, which
// must not delay readings.
func TestWritesTakeNoPlace(t *testing.T) {
	m := NewMemory(1 << 30)
	s := newServiceWith(t, m)
	large := "/api/2.5/assets/" + s.publish(t, 3*memory.Small)
	expect.Get(m.Places.Acquire(t.Context(), "another", m.Places.Size()))(t)
	s.do(t, exchange{"PATCH", large, identity.Broker, "token", `{"data":{"title":"y"}}`, 200, ""})
}
