package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/logtest"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// upstream is one state of a registry: its assets, and the signed log of their publications.
type upstream struct {
	serverID string
	assets   []string          // in the order of the feed
	parts    map[string][]byte // of the log and its checkpoint, by path
}

const layout = "2006-01-02T15:04:05.000000-07:00"

// stampOf returns the dateModified of asset n.
func stampOf(n int) time.Time { return time.Date(1999, 1, 1, 0, 0, n+1, 0, time.UTC) }

// newUpstream returns a registry with this number of assets. Registries with the same key have the same log; the
// log of a smaller registry has only its first leaves.
func newUpstream(t *testing.T, key translog.Key, serverID string, assets int) *upstream {
	t.Helper()
	u := &upstream{serverID: serverID, parts: map[string][]byte{}}
	var leaves [][]byte
	for n := range assets {
		text := fmt.Sprintf(`{"id":%q,"dateModified":%q}`, idOf(n), stampOf(n).Format(layout))
		commitment := expect.Get(translog.Commit(translog.Salt{}, []byte(text)))(t)
		u.assets = append(u.assets, text)
		leaves = append(leaves, translog.Leaf{Kind: translog.Publish, Asset: idOf(n), Position: stampOf(n).UnixMicro(),
			Revision: 1, Commitment: commitment}.Encode())
	}
	tree, full, err := translog.Tree{}.Append(leaves)
	expect.OK(t, err)
	for _, part := range append(full, tree.Edge()...) {
		u.parts["/log/"+part.Tile.Path()] = part.Data
	}
	head := translog.Checkpoint{Origin: key.Public().Name(), Size: tree.Size(), Root: tree.Root()}
	u.parts["/log/checkpoint"], err = translog.Sign(head, key)
	expect.OK(t, err)
	return u
}

// RoundTrip answers a request as the registry does. It has neither snapshots nor a stream.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	http.SetCookie(w, &http.Cookie{Name: "SERVER_ID", Value: u.serverID})
	part, has := u.parts[r.URL.Path]
	switch query := r.URL.Query(); {
	case has:
		_, _ = w.Write(part)
	case r.URL.Path != "/api/2.5/assets":
		w.WriteHeader(http.StatusNotFound)
	case query.Has("descending"):
		u.page(w, u.assets[len(u.assets)-1:], "")
	default:
		var after []string
		for n, text := range u.assets {
			if stampOf(n).Format(layout) > query.Get("offset") {
				after = append(after, text)
			}
		}
		u.page(w, after, query.Get("offset"))
	}
	return w.Result(), nil
}

// page writes a page of the feed. After an empty page, the feed continues at the argument `offset`.
func (u *upstream) page(w http.ResponseWriter, assets []string, offset string) {
	if len(assets) > 0 {
		_, stamp, _ := strings.Cut(assets[len(assets)-1], `"dateModified":"`)
		offset, _, _ = strings.Cut(stamp, `"`)
	}
	fmt.Fprintf(w, `{"data":[%s],"next_page":{"offset":%q}}`, strings.Join(assets, ","), offset)
}

// switched sends requests to the registry that it currently holds.
type switched struct{ to atomic.Pointer[upstream] }

func (s *switched) RoundTrip(r *http.Request) (*http.Response, error) {
	return s.to.Load().RoundTrip(r)
}

// TestAServedCopyIsReplacedOnlyByOneWithTheWholeLog has a registry that suddenly shows another SERVER_ID and its log at
// another size, correctly signed. If the log is shorter than the served one and has the same origin, the mirror must
// keep its copy and say why.
func TestAServedCopyIsReplacedOnlyByOneWithTheWholeLog(t *testing.T) {
	key := expect.Get(translog.GenerateKey(translog.ForLog, "registry.example/log"))(t)
	next := expect.Get(translog.GenerateKey(translog.ForLog, "registry.example/next"))(t)
	const served = 3 // assets of the copy that is served
	for _, c := range []struct {
		name     string
		key      translog.Key // of the log that the registry shows later
		size     int          // leaves of that log
		replaces bool
	}{
		{"an older log", key, served - 1, false},
		{"the same log", key, served, true},
		{"a longer log", key, served + 1, true},
		{"a shorter log with another origin", next, served - 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to, output := &switched{}, &logtest.Log{}
				to.to.Store(newUpstream(t, key, "first", served))
				config := Config{Of: "http://registry.example", Data: t.TempDir(), Timeout: time.Minute,
					PublicKey: []string{key.Public().String(), next.Public().String()}}
				m := expect.Get(newMirror(config, slog.New(slog.NewTextHandler(output, nil)), telemetry.New(nil, nil,
					0)))(t)
				m.transport, m.relay.to = to, to
				ctx, end := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); m.work(ctx) }()
				defer func() { end(); <-ended }()
				answer := func(path string) *httptest.ResponseRecorder {
					w := httptest.NewRecorder()
					m.front.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
					return w
				}
				await := func(what string, is func() bool) {
					t.Helper()
					for began := time.Now(); !is(); time.Sleep(time.Second) { // by the clock of synctest
						expect.FatalIf(t, time.Since(began) > time.Hour, "after an hour: got %s, want %s", output, what)
					}
				}
				ready := func() bool { return answer("/readyz").Code == http.StatusOK }
				await("a mirror that serves", ready)

				to.to.Store(newUpstream(t, c.key, "second", c.size))
				kept := fmt.Sprintf("the new copy has %d leaves, and the old one %d", c.size, served)
				const replaced = "the copy is replaced"
				await("a decision", func() bool { return output.Count(kept) > 0 || output.Count(replaced) > 0 })
				expect.Equal(t, output.Count(replaced) > 0, c.replaces, "that the copy is replaced")
				if c.replaces {
					await("a mirror that serves the new copy", ready)
				} else if got := answer("/readyz"); got.Code != 503 || !strings.Contains(got.Body.String(), "other data") {
					t.Errorf("/readyz: got %d %s, want 503 that names the other data", got.Code, got.Body)
				}
				has := !c.replaces || c.size >= served
				if got := answer("/api/2.5/assets/" + idOf(served-1)); (got.Code == http.StatusOK) != has {
					t.Errorf("the newest asset of the old copy: got %d %s, want 200: %t", got.Code, got.Body, has)
				}
			})
		})
	}
}

// TestRenewalsOfACopyArePaused has a registry that shows other data every few seconds. Each new copy is as good as the
// one before, and replaces it.
func TestRenewalsOfACopyArePaused(t *testing.T) {
	key := expect.Get(translog.GenerateKey(translog.ForLog, "registry.example/log"))(t)
	synctest.Test(t, func(t *testing.T) {
		to, output := &switched{}, &logtest.Log{}
		to.to.Store(newUpstream(t, key, "first", 5))
		config := Config{Of: "http://registry.example", Data: t.TempDir(), Timeout: time.Minute,
			PublicKey: []string{key.Public().String()}}
		m := expect.Get(newMirror(config, slog.New(slog.NewTextHandler(output, nil)), telemetry.New(nil, nil, 0)))(t)
		m.transport, m.relay.to = to, to
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); m.work(ctx) }()
		for n := range 3600 / 20 {
			time.Sleep(20 * time.Second)
			to.to.Store(newUpstream(t, key, fmt.Sprint(n), 5))
		}
		end()
		<-ended
		if got := strings.Count(fmt.Sprint(output), "the copy is replaced"); got < 3 || got > 15 {
			t.Errorf("got %d new copies in an hour, want from 3 to 15", got)
		}
	})
}
