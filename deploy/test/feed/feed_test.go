package feed

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/porttest"
)

var (
	changesWanted = flag.Int("changes", 600, "number of changes for each number of services")
	numbersWanted = flag.String("services", "2", "numbers of asset services, separated by commas")
)

const (
	lease        = 2 * time.Second
	storeTimeout = 10 * time.Second // the stand-in for MongoDB is slow
)

var secret = []byte(strings.Repeat("feedcheck", 5))

func signer(t *testing.T) *identity.Signer {
	t.Helper()
	s, err := identity.NewSigner(keyring.Ring{secret}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func client() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
}

// TestFeedUnderFaults checks the feed of several asset services on one MongoDB store,
// once for each number of services.
func TestFeedUnderFaults(t *testing.T) {
	bin := t.TempDir()
	if err := processes.Build(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	for number := range strings.SplitSeq(*numbersWanted, ",") {
		t.Run(number, func(t *testing.T) {
			var count int
			if _, err := fmt.Sscan(number, &count); err != nil {
				t.Fatal(err)
			}
			check(t, bin, count)
		})
	}
}

// check runs the load and the faults on count asset services.
func check(t *testing.T, bin string, count int) {
	server := mongotest.Start(t)
	uri := server.URI(t, fmt.Sprintf("feedcheck%08x", rand.Uint32()))
	store, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	network := newNetwork(t, store.Host)
	store.Host = network.listener.Addr().String()
	store.RawQuery = "directConnection=true"
	assets := 300
	if !server.Real {
		assets = 100 // the stand-in scans all assets for each change
	}
	checkOn(t, &fleet{bin: bin, store: store.String(), dir: t.TempDir()}, count, assets, network)
}

// TestFeedOfOneFileUnderFaults checks the feed of one asset service on a file, which is
// killed and frozen.
func TestFeedOfOneFileUnderFaults(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	if err := processes.Build(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	checkOn(t, &fleet{bin: bin, store: "file:" + filepath.Join(dir, "assets.db"), dir: dir}, 1, 100, &network{})
}

// checkOn runs the load on count services of a fleet, and the faults.
func checkOn(t *testing.T, fleet *fleet, count, assets int, network *network) {
	t.Helper()
	services := &services{signer: signer(t), client: client()}
	fleet.start(t, count)
	for _, s := range fleet.services {
		services.bases = append(services.bases, "http://"+s.addr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	faulty, endFaults := context.WithCancel(ctx)
	defer endFaults()
	faultsEnded := make(chan error, 1)
	chaos := chaos{}
	go func() { faultsEnded <- fleet.breakServices(faulty, &chaos) }()
	h := newHistory(services, load{writers: 64, followers: 8, changes: *changesWanted, assets: assets})
	r := h.run(ctx, func() {
		endFaults()
		if err := <-faultsEnded; err != nil {
			t.Error(err)
		}
		network.calm.Store(true)
		time.Sleep(2*lease + time.Second) // until the batches of killed services are fenced
	})
	chaos.stalls, chaos.breaks = network.stalls.Load(), network.breaks.Load()
	print(fmt.Sprint(count), r, chaos)
	for _, example := range r.examples {
		t.Error(example)
	}
	if text := fleet.output.String(); strings.Contains(text, "WARNING: DATA RACE") {
		t.Error(text[strings.Index(text, "WARNING: DATA RACE"):])
	}
	if r.changes < *changesWanted || r.pages < 100 || r.checks < r.changes || r.recorded < r.changes {
		t.Errorf("got %d changes, %d pages, %d checks and %d changes in the records, want at least %d, 100, %d and %d",
			r.changes, r.pages, r.checks, r.recorded, *changesWanted, r.changes, r.changes)
	}
}

// fleet is the asset services and their auth service.
type fleet struct {
	bin, dir, store string
	output          processes.Output
	secretFile      string
	auth            string
	services        []*service
}

type service struct {
	addr    string
	process *processes.Process
}

func (f *fleet) start(t *testing.T, count int) {
	t.Helper()
	f.secretFile = filepath.Join(f.dir, "secret")
	if err := os.WriteFile(f.secretFile, secret, 0o600); err != nil {
		t.Fatal(err)
	}
	f.auth = freeAddr(t)
	auth, err := processes.Start(t.Context(), f.auth, &f.output, filepath.Join(f.bin, "authsvc"),
		"--addr", f.auth, "--secret-file", f.secretFile, "--sandbox", "--store",
		"file:"+filepath.Join(f.dir, "tokens.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { auth.Kill() })
	for range count {
		s := &service{addr: freeAddr(t)}
		f.services = append(f.services, s)
		if err := f.launch(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.process.Kill() })
	}
}

func (f *fleet) launch(ctx context.Context, s *service) (err error) {
	s.process, err = processes.Start(ctx, s.addr, &f.output, filepath.Join(f.bin, "assetsvc"),
		"--addr", s.addr, "--secret-file", f.secretFile, "--auth-url", "http://"+f.auth, "--log-level", "warn",
		"--store", f.store, "--store-timeout", storeTimeout.String(), "--store-lease", lease.String())
	return err
}

// chaos counts the faults.
type chaos struct {
	kills, freezes int
	stalls, breaks int64
}

// breakServices kills and freezes services until ctx is done. All of them run when it
// returns.
func (f *fleet) breakServices(ctx context.Context, done *chaos) error {
	for kill := true; ; kill = !kill {
		select {
		case <-time.After(2*time.Second + rand.N(4*time.Second)):
		case <-ctx.Done():
			return nil
		}
		s := f.services[rand.IntN(len(f.services))]
		if kill {
			done.kills++
			if err := s.process.Kill(); err != nil {
				return err
			}
			if err := f.launch(context.WithoutCancel(ctx), s); err != nil {
				return err
			}
			continue
		}
		done.freezes++
		if err := s.process.Freeze(); err != nil {
			return err
		}
		time.Sleep(lease + rand.N(lease))
		if err := s.process.Thaw(); err != nil {
			return err
		}
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := porttest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// print prints a line of the table, and its head once.
func print(services string, r *report, c chaos) {
	if !printed {
		fmt.Println("services  changes  unknown   pages    checks  lost  twice  order  other" +
			"  recorded  missing  extra  reordered  delay p50      p99  longest  kills  freezes  stalls  breaks")
		printed = true
	}
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	fmt.Printf("%8s %8d %8d %7d %9d %5d %6d %6d %6d", services, r.changes, r.unknown, r.pages, r.checks, r.lost,
		r.duplicated, r.outOfOrder, r.other)
	fmt.Printf(" %9d %8d %6d %10d %10v %8v %8v %6d %8d %7d %7d\n", r.recorded, r.missing, r.extra, r.reordered,
		round(r.delay(0.5)), round(r.delay(0.99)), round(r.delay(1)), c.kills, c.freezes, c.stalls, c.breaks)
}

var printed bool // the head of the table
