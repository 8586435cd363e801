package webhooks

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"asset-registry/shared/testing/expect"
)

// receivers are the receivers of all webhooks, on one server. Each receiver has a path of its own.
type receivers struct {
	t      *testing.T
	server *httptest.Server

	mu     sync.Mutex
	all    []*receiver
	faults []string
	delays []time.Duration // times until a healthy receiver has a change; recorded while r.timing is true
	life   int             // how many sending processes were killed so far
	timing bool
}

// receiver checks the messages of one webhook.
type receiver struct {
	slow     bool
	verifier *standard.Webhook // nil while the secret is not known
	public   ed25519.PublicKey
	newest   string            // offset of the newest message
	begins   string            // position of the first entry of the newest message
	assets   map[string]string // id -> dateModified
	repeats  int
}

type message struct {
	Type string
	Data struct {
		Offset    string
		Challenge string
		Entries   []struct{ ID, DateModified string }
	}
}

func newReceivers(t *testing.T) *receivers {
	r := &receivers{t: t}
	r.server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

// add creates a webhook with a new receiver.
func (r *receivers) add(registry *registry, slow bool, fields string) *receiver {
	r.t.Helper()
	r.mu.Lock()
	to := &receiver{slow: slow, assets: map[string]string{}}
	n := len(r.all)
	r.all = append(r.all, to)
	r.mu.Unlock()
	_, secret, public := registry.hook(r.server.URL+"/"+strconv.Itoa(n), fields)
	verifier, err1 := standard.NewWebhook(secret)
	key, err2 := base64.StdEncoding.DecodeString(strings.TrimPrefix(public, "whpk_"))
	if err1 != nil || err2 != nil {
		r.t.Fatalf("got the keys %q and %q: %v, %v", secret, public, err1, err2)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	to.verifier, to.public = verifier, key
	return to
}

func (r *receivers) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	n, err := strconv.Atoi(strings.TrimPrefix(q.URL.Path, "/"))
	body, err2 := io.ReadAll(q.Body)
	if err != nil || err2 != nil {
		return
	}
	r.mu.Lock()
	to := r.all[n]
	r.mu.Unlock()
	if to.slow {
		select {
		case <-time.After(10 * time.Second):
		case <-q.Context().Done():
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if to.verifier == nil { // the answer with the secret has not arrived yet; the sender will repeat the challenge
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if err := to.verify(q.Header, body); err != nil {
		r.faultf("receiver %d: %v", n, err)
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		r.faultf("receiver %d: got %q: %v", n, body, err)
	}
	if m.Type == "webhook.challenge" {
		fmt.Fprintf(w, `{"challenge":%q}`, m.Data.Challenge)
		return
	}
	r.take(n, to, m)
}

// verify checks both signatures: v1 with the library, and v1a with Ed25519.
func (to *receiver) verify(h http.Header, body []byte) error {
	if err := to.verifier.Verify(body, h); err != nil {
		return fmt.Errorf("the library of Standard Webhooks: %w", err)
	}
	signed := h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "." + string(body)
	for _, s := range strings.Fields(h.Get("webhook-signature")) {
		text, isAsymmetric := strings.CutPrefix(s, "v1a,")
		signature, err := base64.StdEncoding.DecodeString(text)
		if isAsymmetric && err == nil && ed25519.Verify(to.public, []byte(signed), signature) {
			return nil
		}
	}
	return fmt.Errorf("got the signatures %q, want a valid v1a", h.Get("webhook-signature"))
}

// take checks that a message comes in order, and that no more messages are repeated than senders were killed.
func (r *receivers) take(n int, to *receiver, m message) {
	first := m.Data.Entries[0].DateModified
	if first <= to.newest {
		to.repeats++
		if to.repeats > r.life {
			r.faultf("receiver %d: got %d repeats after %d kills", n, to.repeats, r.life)
		}
		if first < to.begins {
			r.faultf("receiver %d: got a repeat from %s, want from %s, the last message", n, first, to.begins)
		}
	}
	before := ""
	for _, e := range m.Data.Entries {
		if e.DateModified <= before {
			r.faultf("receiver %d: got %s after %s in a message", n, e.DateModified, before)
		}
		before = e.DateModified
		if e.DateModified <= to.newest {
			continue
		}
		to.assets[e.ID] = e.DateModified
		if r.timing && !to.slow {
			if at, err := time.Parse(time.RFC3339Nano, e.DateModified); err == nil {
				r.delays = append(r.delays, time.Since(at))
			}
		}
	}
	if m.Data.Offset != before {
		r.faultf("receiver %d: got the offset %s, want %s of the last entry", n, m.Data.Offset, before)
	}
	to.newest, to.begins = max(to.newest, before), first
}

func (r *receivers) faultf(format string, args ...any) {
	if len(r.faults) < 10 {
		r.faults = append(r.faults, fmt.Sprintf(format, args...))
	}
}

// lacking returns how many receivers, except the slow ones, still lack an acknowledged change. A receiver does not lack
// a change if it has a newer change of the same asset.
func (r *receivers) lacking(registry *registry) (n int) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, to := range r.all {
		for id, at := range registry.changed {
			if !to.slow && to.assets[id] < at {
				n++
				break
			}
		}
	}
	return n
}

// await waits until the healthy receivers have got all acknowledged changes.
func (r *receivers) await(registry *registry, within time.Duration) {
	r.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		n := r.lacking(registry)
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("got %d receivers without all changes after %v, want 0; the registry printed: %s",
				n, within, registry.output.String())
		}
	}
}

// check fails the test for each recorded fault.
func (r *receivers) check() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.faults {
		r.t.Error(f)
	}
}

// silent starts a server that accepts connections and never answers, and returns its address.
func silent(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}
