package feed

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/logkey"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/porttest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

var (
	changesWanted = flag.Int("changes", 200, "number of changes for each number of services")
	numbersWanted = flag.String("services", "2", "numbers of asset services, separated by commas")
	liveWanted    = flag.Int("followers", 1, "number of live followers of each kind")
	builtBin      = flag.String("bin", "",
		"absolute path of the directory of the programs; by default they are built with the race detector")
)

const (
	lease        = 2 * time.Second
	storeTimeout = 10 * time.Second // long, because the stand-in for MongoDB is slow
)

var secret = []byte(strings.Repeat("feedcheck", 5))

func signer(t *testing.T) *identity.Signer {
	t.Helper()
	return expect.Get(identity.NewSigner(keyring.Ring{secret}, time.Now))(t)
}

// client returns a client whose requests time out after a minute.
func client() *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
}

// bin is the directory of the built programs. TestMain creates it, and build fills it.
var bin string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "registry-bin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	return m.Run()
}

// build builds the programs on its first call.
func build(t *testing.T) string {
	t.Helper()
	if *builtBin != "" {
		return *builtBin
	}
	if _, err := os.Stat(filepath.Join(bin, "gateway")); err == nil {
		return bin
	}
	expect.OK(t, processes.Build(t.Context(), bin))
	return bin
}

// TestFeedUnderFaults checks the feed of several asset services on one MongoDB store, while faults happen. No
// change may be lost, come twice or come out of order. The test runs once for each number of services that the
// flag -services lists.
// Promises: bookmark, feed-no-loss, feed-whole
func TestFeedUnderFaults(t *testing.T) {
	for number := range strings.SplitSeq(*numbersWanted, ",") {
		t.Run(number, func(t *testing.T) {
			var count int
			expect.Get(fmt.Sscan(number, &count))(t)
			check(t, count)
		})
	}
}

// newFleet returns a fleet with a new database in MongoDB, or in the stand-in for MongoDB.
func newFleet(t *testing.T) (*mongotest.Server, *fleet) {
	t.Helper()
	server := mongotest.Start(t)
	store := server.URI(t, fmt.Sprintf("feedcheck%08x", randtest.Uint32()))
	return server, &fleet{bin: build(t), store: store, dir: t.TempDir(), production: server.Real}
}

// check runs the load and the faults on `count` asset services. If the MongoDB server is a real one, the services
// connect to all members of its replica set.
func check(t *testing.T, count int) {
	server, fleet := newFleet(t)
	if server.Real {
		checkOn(t, fleet, count, load{writers: 64, assets: 300}, &network{})
		return
	}
	network := newNetwork(t)
	fleet.store, network.store = mongotest.Through(t, fleet.store, network.listener.Addr().String())
	network.serve()
	// The stand-in runs one command at a time. With more writers, each command would wait longer, and on a busy
	// machine most requests would get no answer in time.
	checkOn(t, fleet, count, load{writers: 16, assets: 100}, network)
}

// onFile is the load for a service whose store is a file.
var onFile = load{writers: 64, assets: 100}

// TestFeedOfOneFileUnderFaults checks the feed of one asset service whose store is a file. The service is
// killed and frozen. No follower may miss a change.
func TestFeedOfOneFileUnderFaults(t *testing.T) {
	dir := t.TempDir()
	checkOn(t, &fleet{bin: build(t), store: "file:" + filepath.Join(dir, "assets.db"), dir: dir}, 1, onFile, &network{})
}

// TestFeedOfMirrorsUnderFaults checks the feed of a mirror and of a mirror of that mirror, together with the
// feed of the gateways. Live followers switch between all of them. All processes are killed and frozen. No
// follower may miss a change.
func TestFeedOfMirrorsUnderFaults(t *testing.T) {
	dir := t.TempDir()
	checkOn(t, &fleet{bin: build(t), store: "file:" + filepath.Join(dir, "assets.db"), dir: dir, mirrors: 2}, 1, onFile,
		&network{})
}

// checkOn starts `count` services of a fleet, and runs the load and the faults on them. The parameter `size` has
// the numbers of writers and assets; checkOn sets its other fields.
func checkOn(t *testing.T, fleet *fleet, count int, size load, network *network) {
	t.Helper()
	services := &services{signer: signer(t), client: client()}
	fleet.start(t, count)
	services.bases, services.edges = urls(fleet.services), urls(fleet.edges)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	faulty, endFaults := context.WithCancel(ctx)
	defer endFaults()
	faultsEnded := make(chan error, 1)
	chaos := chaos{}
	go func() {
		err := fleet.breakServices(faulty, &chaos)
		if err != nil {
			cancel() // without services, the load would never end
		}
		faultsEnded <- err
	}()
	size.followers, size.changes, size.live = 8, *changesWanted, tastes(*liveWanted)
	h := newHistory(services, size)
	r := h.run(ctx, func() {
		endFaults()
		expect.Try(t, <-faultsEnded)
		network.calm.Store(true)
		time.Sleep(2*lease + time.Second) // wait until the batches of killed services are fenced
	})
	chaos.stalls, chaos.breaks = network.stalls.Load(), network.breaks.Load()
	print(fmt.Sprint(count), r, chaos)
	fleet.judge(t, r, *changesWanted)
}

// judge fails the test for each violation, and if less than the argument `changes` was done.
func (f *fleet) judge(t *testing.T, r *report, changes int) {
	t.Helper()
	printLive(r)
	for _, example := range r.examples {
		t.Error(example)
	}
	if text := f.output.String(); strings.Contains(text, "WARNING: DATA RACE") {
		t.Error(text[strings.Index(text, "WARNING: DATA RACE"):])
	}
	if r.walks == 0 {
		t.Error("got no reading of the whole list, want one at least")
	}
	if r.changes < changes || r.pages < 50 || r.checks < r.changes || r.recorded < r.changes {
		t.Errorf("got %d changes, %d pages, %d checks and %d changes in the records, want at least %d, 50, %d and %d",
			r.changes, r.pages, r.checks, r.recorded, changes, r.changes, r.changes)
	}
}

const (
	gateways = 2                         // number of gateways in front of the asset services
	base     = "http://registry.example" // begins the addresses of files
)

// fleet is the asset services, their auth service, the gateways in front of them, and mirrors.
type fleet struct {
	bin, dir, store string
	output          processes.Output
	secretFile      string
	services, edges []*service
	// Number of mirrors; the first copies a gateway, and each further one copies the mirror before it.
	mirrors    int
	production bool // whether the store uses its default times, as in production
	// Address of the store of tokens. With it, the fleet also has a file service, a public log and webhooks.
	tokens string
	files  *service
}

type service struct {
	name, addr string
	args       []string
	process    *processes.Process
}

func urls(services []*service) (all []string) {
	for _, s := range services {
		all = append(all, "http://"+s.addr)
	}
	return all
}

func (f *fleet) start(t *testing.T, count int) {
	t.Helper()
	f.secretFile = filepath.Join(f.dir, "secret")
	expect.OK(t, os.WriteFile(f.secretFile, secret, 0o600))
	tokens := cmp.Or(f.tokens, "file:"+filepath.Join(f.dir, "tokens.db"))
	auth := "http://" + f.add(t, "authsvc", "--sandbox", "--store", tokens).addr
	asset := []string{"--auth-url", auth, "--store", f.store}
	edge := []string{"--auth-url", auth, "--no-limits"}
	if !f.production {
		asset = append(asset, "--store-timeout", storeTimeout.String(), "--store-lease", lease.String())
	}
	files := freeAddr(t)
	if f.tokens != "" {
		logKey := filepath.Join(f.dir, "log.key")
		expect.OK(t, logkey.Create(logKey, "registry.example/log"))
		asset = append(asset, "--files-url", "http://"+files, "--log-key-file", logKey,
			"--webhook-networks", "127.0.0.0/8", "--webhook-http", "--base-url", base)
		edge = append(edge, "--files-url", "http://"+files)
	}
	for range count {
		f.services = append(f.services, f.add(t, "assetsvc", asset...))
	}
	services := strings.Join(urls(f.services), ",")
	if f.tokens != "" {
		f.files = f.addAt(t, files, "filesvc", "--store", f.store, "--data", filepath.Join(f.dir, "files"),
			"--assets-url", services, "--base-url", base)
	}
	for range gateways {
		f.edges = append(f.edges, f.add(t, "gateway", append(edge, "--assets-url", services)...))
	}
	for n := range f.mirrors {
		f.edges = append(f.edges, f.addMirror(t, f.edges[len(f.edges)-1], fmt.Sprint("mirror", n)))
	}
}

// addMirror starts a mirror, and ends it when the test ends.
func (f *fleet) addMirror(t *testing.T, of *service, dir string) *service {
	t.Helper()
	addr := freeAddr(t)
	return f.begin(t, &service{name: "registry", addr: addr, args: []string{"mirror", "--addr", addr, "--of",
		"http://" + of.addr, "--data", filepath.Join(f.dir, dir), "--no-limits", "--log-level", "warn"}})
}

// add starts a process, and ends it when the test ends.
func (f *fleet) add(t *testing.T, name string, args ...string) *service {
	t.Helper()
	return f.addAt(t, freeAddr(t), name, args...)
}

func (f *fleet) addAt(t *testing.T, addr, name string, args ...string) *service {
	t.Helper()
	return f.begin(t, &service{name: name, addr: addr,
		args: append([]string{"--addr", addr, "--secret-file", f.secretFile, "--log-level", "warn"}, args...)})
}

// begin starts the process of s, and ends it when the test ends.
func (f *fleet) begin(t *testing.T, s *service) *service {
	t.Helper()
	expect.OK(t, f.launch(t.Context(), s))
	t.Cleanup(func() { s.process.Kill() })
	return s
}

func (f *fleet) launch(ctx context.Context, s *service) error {
	p, err := processes.Start(ctx, s.addr, &f.output, filepath.Join(f.bin, s.name), s.args...)
	if err != nil {
		return err
	}
	s.process = p
	return nil
}

// chaos counts the faults that the test has caused.
type chaos struct {
	kills, stops, freezes int
	stalls, breaks        int64
}

// breakServices kills, stops and freezes services and gateways until ctx is done. When it returns, all of them run. If
// the fleet has a file service, this is broken instead of the gateways, and faults are rarer.
func (f *fleet) breakServices(ctx context.Context, done *chaos) error {
	victims, rest := slices.Concat(f.services, f.edges), time.Second
	if f.files != nil {
		victims, rest = append(slices.Clone(f.services), f.files), 4*time.Second
	}
	for n := 0; ; n++ {
		select {
		case <-time.After(rest + randtest.N(3*rest)):
		case <-ctx.Done():
			return nil
		}
		s, err := victims[randtest.IntN(len(victims))], error(nil)
		switch n % 3 {
		case 0:
			done.kills++
			err = f.restart(ctx, s, s.process.Kill)
		case 1:
			done.freezes++
			err = s.freeze(lease + randtest.N(lease))
		case 2:
			done.stops++
			err = f.restart(ctx, s, s.process.Stop)
		}
		if err != nil {
			return fmt.Errorf("%s: %w; the end of the output: %s", s.name, err, f.tail())
		}
	}
}

// tail returns the end of the output of all processes.
func (f *fleet) tail() string {
	text := f.output.String()
	return text[max(0, len(text)-5000):]
}

// launches is how often the method `restart` tries to start a process. On a busy machine, a process may take longer
// to start than processes.Start waits.
const launches = 2

// restart ends a process and starts it again.
func (f *fleet) restart(ctx context.Context, s *service, end func() error) (err error) {
	if err := end(); err != nil {
		return err
	}
	for range launches {
		if err = f.launch(context.WithoutCancel(ctx), s); err == nil {
			return nil
		}
	}
	return err
}

// freeze suspends a process for the given duration.
func (s *service) freeze(within time.Duration) error {
	if err := s.process.Freeze(); err != nil {
		return err
	}
	time.Sleep(within)
	return s.process.Thaw()
}

func freeAddr(t *testing.T) string {
	t.Helper()
	return expect.Get(porttest.FreeAddr())(t)
}

// print prints a line of the table. Its first call also prints the head of the table.
func print(services string, r *report, c chaos) {
	if !printed {
		fmt.Println("services  changes  unknown   pages    checks  lost  twice  order  other  walks  vanished" +
			"  recorded  missing  extra  reordered  delay p50      p99  longest  kills  stops  freezes  stalls  breaks")
		printed = true
	}
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	fmt.Printf("%8s %8d %8d %7d %9d %5d %6d %6d %6d %6d %9d", services, r.changes, r.unknown, r.pages, r.checks, r.lost,
		r.duplicated, r.outOfOrder, r.other, r.walks, r.vanished)
	fmt.Printf(" %9d %8d %6d %10d %10v %8v %8v %6d %6d %8d %7d %7d\n", r.recorded, r.missing, r.extra, r.reordered,
		round(r.delay(0.5)), round(r.delay(0.99)), round(r.delay(1)), c.kills, c.stops, c.freezes, c.stalls, c.breaks)
}

var printed bool // whether the head of the table was printed
