package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/clients"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/upstream"
)

// member is one process of the fleet.
type member struct {
	name, addr string
	args       []string
	process    *processes.Process
}

// fleet is two gateways, two asset services and two auth services, on shared stores.
type fleet struct {
	members  []*member
	gateways []string // URLs
	stores   processes.Stores
	output   processes.Output
}

// startFleet starts two gateways, two asset services and two auth services. Every process gets args, too.
func startFleet(t *testing.T, stores processes.Stores, args ...string) *fleet {
	t.Helper()
	build(t)
	secret := filepath.Join(t.TempDir(), "secret")
	expect.OK(t, os.WriteFile(secret, bytes.Repeat([]byte("s"), 32), 0o600))
	f := &fleet{stores: stores}
	add := func(name string, own ...string) (urls string) {
		var all []string
		for range 2 {
			m := &member{name: name, addr: freeAddr(t), args: append(own, args...)}
			m.args = append([]string{"--addr", m.addr, "--secret-file", secret}, m.args...)
			f.members = append(f.members, m)
			f.start(t, m)
			all = append(all, "http://"+m.addr)
		}
		return strings.Join(all, ",")
	}
	auth := add("authsvc", "--store", stores.Tokens, "--sandbox")
	assets := add("assetsvc", "--store", stores.Assets, "--sandbox", "--auth-url", auth)
	f.gateways = strings.Split(add("gateway", "--auth-url", auth, "--assets-url", assets, "--no-limits"), ",")
	return f
}

// start starts a process, for the first time or again.
func (f *fleet) start(t *testing.T, m *member) {
	t.Helper()
	p := expect.Get(processes.Start(t.Context(), m.addr, &f.output, "env",
		f.stores.Command(filepath.Join(bin, m.name), m.args...)...))(t)
	m.process = p
	t.Cleanup(func() { p.Kill() })
}

// TestARollingRestartLosesNoRequest restarts every process of a fleet, one after another, while clients write and read.
// Every answer must be right. The load balancer checks /readyz, and does not repeat a request that it has sent.
func TestARollingRestartLosesNoRequest(t *testing.T) {
	redis, mongo := redistest.Start(t), mongotest.Start(t)
	f := startFleet(t, newStores(t, mongo, redis), "--drain-delay", "3s")
	balancer := expect.Get(upstream.New(upstream.Config{Name: "gateway", URLs: f.gateways, Log: slog.New(slog.DiscardHandler),
		Meter: new(telemetry.Telemetry).Meter()}))(t)
	defer balancer.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var working sync.WaitGroup
	var done atomic.Int64
	for range 4 {
		working.Go(func() {
			for ctx.Err() == nil && createReadChange(ctx, t, balancer, &done) {
			}
		})
	}
	for _, m := range f.members {
		time.Sleep(3 * time.Second) // wait until every process has noticed that the restarted one is back
		before := done.Load()
		expect.Nil(t, m.process.Stop(), "%s", m.name)
		f.start(t, m)
		if done.Load() == before {
			t.Errorf("got no answer while a %s restarted, want some", m.name)
		}
	}
	stop()
	working.Wait()
	t.Logf("%d requests", done.Load())
}

// createReadChange creates, reads and changes one asset, and counts the answers. It reports whether all answers
// were right.
func createReadChange(ctx context.Context, t *testing.T, balancer http.RoundTripper, done *atomic.Int64) bool {
	send := func(method, path, body string, want int) (text []byte, ok bool) {
		if ctx.Err() != nil {
			return nil, false
		}
		status, text, err := through(balancer, method, path, body)
		if err != nil || status != want {
			t.Errorf("%s %s: got %d %s, %v, want %d", method, path, status, text, err, want)
			return nil, false
		}
		done.Add(1)
		time.Sleep(20 * time.Millisecond) // the stand-in for MongoDB cannot bear more requests
		return text, true
	}
	text, ok := send("POST", "/api/2.5/assets", clients.Creation, http.StatusCreated)
	if !ok {
		return false
	}
	var created struct {
		Access struct{ Token string }
		Data   struct{ ID string }
	}
	if err := json.Unmarshal(text, &created); err != nil {
		t.Error(err)
		return false
	}
	path := "/api/2.5/assets/" + created.Data.ID
	if _, ok := send("GET", path, "", http.StatusOK); !ok {
		return false
	}
	_, ok = send("PATCH", path+"?acc_token="+created.Access.Token, `{"data":{"title":"y"}}`, http.StatusOK)
	return ok
}

// The function `through` sends a request with the key "broker" through a balancer.
func through(balancer http.RoundTripper, method, path, body string) (status int, text []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	status, _, text, err = clients.Send(ctx, balancer, clients.Call{Method: method, URL: "http://gateway" + path,
		Key: "broker", Body: body})
	return status, text, err
}
