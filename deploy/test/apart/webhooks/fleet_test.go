package webhooks

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/porttest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

var fleetKills = flag.Int("fleet.kills", 6, "how often one of three asset services is killed")

// assetService is one of the asset services of a fleet.
type assetService struct {
	addr    string
	process *processes.Process
}

// fleet is a registry of several asset services on the stand-in for MongoDB.
type fleet struct {
	*registry
	command  []string // command of an asset service, without its address
	services []*assetService
}

// startFleet starts several asset services behind one gateway, and creates assets.
func startFleet(t *testing.T, services, assets int) *fleet {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	expect.OK(t, os.WriteFile(secret, []byte(strings.Repeat("s", 32)), 0o600))
	f := &fleet{registry: &registry{t: t, changed: map[string]string{}, client: &http.Client{Timeout: time.Minute}}}
	auth := f.free()
	f.program(auth, "authsvc", "--secret-file", secret, "--store", "file:"+filepath.Join(dir, "tokens.db"), "--sandbox")
	f.command = []string{"--secret-file", secret, "--sandbox", "--auth-url", "http://" + auth,
		"--store", mongotest.Start(t).URI(t, fmt.Sprintf("webhooks%08x", randtest.Uint32())),
		"--store-timeout", "50s", "--timeout", "50s", "--webhook-networks", "127.0.0.0/8", "--webhook-http"}
	var urls []string
	for range services {
		s := &assetService{addr: f.free()}
		f.services = append(f.services, s)
		f.restart(s)
		urls = append(urls, "http://"+s.addr)
		t.Cleanup(func() { _ = s.process.Kill() }) // the process may be dead already
	}
	f.addr = f.free()
	f.program(f.addr, "gateway", "--secret-file", secret, "--auth-url", "http://"+auth,
		"--assets-url", strings.Join(urls, ","), "--no-limits", "--timeout", "55s", "--read-timeout", "55s")
	var err error
	f.body, err = os.ReadFile("../../../bench/live/asset.json")
	expect.OK(t, err)
	for range assets {
		expect.OK(t, f.add())
	}
	return f
}

func (f *fleet) free() string {
	f.t.Helper()
	addr, err := porttest.FreeAddr()
	expect.OK(f.t, err)
	return addr
}

// program starts a program, and kills it when the test ends.
func (f *fleet) program(addr, name string, args ...string) *processes.Process {
	f.t.Helper()
	args = append([]string{"--addr", addr, "--log-level", "error"}, args...)
	p, err := processes.Start(context.Background(), addr, &f.output, filepath.Join(*bin, name), args...)
	if err != nil {
		f.t.Fatalf("start %s: %v; it printed: %s", name, err, f.output.String())
	}
	f.t.Cleanup(func() { _ = p.Kill() }) // the process may be dead already
	return p
}

// restart starts an asset service. It is used for the first start, too.
func (f *fleet) restart(s *assetService) { s.process = f.program(s.addr, "assetsvc", f.command...) }

// TestKilledServicesOfAFleetLoseNothing kills each of three asset services in turn, while changes are written. Only
// one service sends at a time, so one of the three kills hits the sender. Each change must arrive, in order. Each
// webhook may get one repeated message for each kill.
func TestKilledServicesOfAFleetLoseNothing(t *testing.T) {
	f := startFleet(t, 3, 10)
	r := newReceivers(t)
	for i := range 8 {
		r.add(f.registry, false, []string{"", "*"}[i%2])
	}
	f.touchAll()
	r.await(f.registry, 3*time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writing sync.WaitGroup
	writing.Go(func() { f.write(ctx, 5) })
	for i := range *fleetKills {
		time.Sleep(500*time.Millisecond + randtest.N(time.Second)) // so that the kill comes at a random moment
		s := f.services[i%len(f.services)]
		expect.OK(t, s.process.Kill())
		r.mu.Lock()
		r.life++
		r.mu.Unlock()
		r.await(f.registry, 2*time.Minute) // another service must send, as this one is down
		f.restart(s)
	}
	stop()
	writing.Wait()
	r.await(f.registry, 2*time.Minute)
	r.check()
}
