package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
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
	"asset-registry/shared/upstream"
)

// member is one of a fleet's processes, which can be started again.
type member struct {
	name, addr string
	args       []string
	process    *processes.Process
}

// fleet is two of every service, on stores that they share.
type fleet struct {
	members  []*member
	gateways []string // URLs
	output   processes.Output
}

// startFleet starts two of every service. Arguments after the stores go to all.
func startFleet(t *testing.T, stores processes.Stores, args ...string) *fleet {
	t.Helper()
	build(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, bytes.Repeat([]byte("s"), 32), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fleet{}
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

func (f *fleet) start(t *testing.T, m *member) {
	t.Helper()
	p, err := processes.Start(t.Context(), m.addr, &f.output, filepath.Join(bin, m.name), m.args...)
	if err != nil {
		t.Fatal(err)
	}
	m.process = p
	t.Cleanup(func() { p.Kill() })
}

// TestARollingRestartLosesNoRequest restarts every process of a fleet, one after
// the other, while brokers write and the public reads. Whoever stands before
// the gateways looks at /readyz, as balancers do, and repeats nothing that was
// sent.
func TestARollingRestartLosesNoRequest(t *testing.T) {
	redis, mongo := redistest.Start(t), mongotest.Start(t)
	bePatient(t, mongo)
	stores := processes.Stores{Assets: mongo.URI(t, fmt.Sprintf("e2e%016x", rand.Uint64())), Tokens: redis.URL()}
	f := startFleet(t, stores, "--drain-delay", "3s")
	balancer, err := upstream.New(upstream.Config{Name: "gateway", URLs: f.gateways, Log: slog.New(slog.DiscardHandler),
		Meter: new(telemetry.Telemetry).Meter()})
	if err != nil {
		t.Fatal(err)
	}
	defer balancer.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var working sync.WaitGroup
	var done atomic.Int64
	for range 4 {
		working.Go(func() {
			path, token := "", ""
			for i := 0; ctx.Err() == nil; i++ {
				method, to, body, want := "POST", "/api/2.5/assets", clients.Creation, http.StatusCreated
				switch {
				case i%3 == 1:
					method, to, body, want = "GET", path, "", http.StatusOK
				case i%3 == 2:
					method, to, body, want = "PATCH", path+"?acc_token="+token, `{"data":{"title":"y"}}`, http.StatusOK
				}
				status, text, err := through(balancer, method, to, body)
				if err != nil || status != want {
					t.Errorf("%s %s: answered %d %s, %v", method, to, status, text, err)
					return
				}
				done.Add(1)
				if method == "POST" {
					var created struct {
						Access struct{ Token string }
						Data   struct{ ID string }
					}
					if err := json.Unmarshal(text, &created); err != nil {
						t.Error(err)
						return
					}
					path, token = "/api/2.5/assets/"+created.Data.ID, created.Access.Token
				}
				time.Sleep(20 * time.Millisecond) // a load that the rig can bear
			}
		})
	}
	for _, m := range f.members {
		time.Sleep(3 * time.Second) // all see that the one before is back
		before := done.Load()
		if err := m.process.Stop(); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		f.start(t, m)
		if done.Load() == before {
			t.Errorf("nothing was answered while a %s restarted", m.name)
		}
	}
	stop()
	working.Wait()
	t.Logf("%d requests", done.Load())
}

// through sends a broker's request by way of a balancer.
func through(balancer http.RoundTripper, method, path, body string) (status int, text []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	status, _, text, err = clients.Send(ctx, balancer, clients.Call{Method: method, URL: "http://gateway" + path,
		Key: "broker", Body: body})
	return status, text, err
}
