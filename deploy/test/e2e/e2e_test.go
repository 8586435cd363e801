package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/redistest"
)

// bin is where TestMain has built the programs.
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

// build builds the programs, once.
func build(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(bin, "registry")); err == nil {
		return
	}
	if err := processes.Build(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := processes.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// standalone starts the registry in one process; it is killed when the test ends.
func standalone(t *testing.T, addr, dir string, output *processes.Output, args ...string) *processes.Process {
	t.Helper()
	build(t)
	p, err := processes.Standalone(t.Context(), bin, addr, dir, output, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		checkRaces(t, output)
	})
	return p
}

// await returns all that was printed, once text was.
func await(t *testing.T, output *processes.Output, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := output.Await(ctx, text); err != nil {
		t.Fatalf("%v; there is: %s", err, output)
	}
	return output.String()
}

// checkRaces fails the test if the race detector has found something.
func checkRaces(t *testing.T, output *processes.Output) {
	t.Helper()
	if _, race, found := strings.Cut(output.String(), "WARNING: DATA RACE"); found {
		t.Errorf("a data race: %s", race)
	}
}

// split starts the three services on dir; they are stopped when the test ends.
func split(t *testing.T, dir string, stores processes.Stores, output *processes.Output,
	args ...string) *processes.Split {
	t.Helper()
	build(t)
	s, err := processes.StartSplit(t.Context(), bin, freeAddr(t), dir, stores, output, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		checkRaces(t, output)
	})
	return s
}

// TestAt runs the scenarios against the registry that E2E_BASE_URL names.
func TestAt(t *testing.T) {
	base := os.Getenv("E2E_BASE_URL")
	if base == "" {
		t.Skip("E2E_BASE_URL names no registry")
	}
	Run(t, base)
}

func TestStandalone(t *testing.T) {
	addr := freeAddr(t)
	standalone(t, addr, filepath.Join(t.TempDir(), "data"), &processes.Output{})
	Run(t, "http://"+addr)
	t.Run("bytes on the wire",
		func(t *testing.T) { testOnWire(t, func() (net.Conn, error) { return net.Dial("tcp", addr) }) })
}

func TestSplit(t *testing.T) {
	base := split(t, filepath.Join(t.TempDir(), "data"), processes.Stores{}, &processes.Output{}).URL
	Run(t, base)
	t.Run("bytes on the wire", func(t *testing.T) {
		testOnWire(t, func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(base, "http://")) })
	})
}

func TestSplitOnRedis(t *testing.T) {
	redis := redistest.Start(t)
	base := split(t, filepath.Join(t.TempDir(), "data"), processes.Stores{Tokens: redis.URL()}, &processes.Output{}).URL
	Run(t, base)
	t.Run("without Redis reads go on, and owners wait", func(t *testing.T) {
		a := api{base, "2.5"}
		c := a.publish(t, validAsset())
		redis.Kill(t)
		a.read(t, c.id).must(t, 200)
		a.page(t, "")
		if got := a.patch(t, c, fields{"description": "ні"}).
			fails(t, 503, "url/authorization"); got.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		redis.Restart(t)
		a.patch(t, c, fields{"description": "так"}).must(t, 200)
	})
}

// bePatient lets services that are started from then on wait for the rig, which
// scans all assets for each operation.
func bePatient(t *testing.T, mongo *mongotest.Server) {
	t.Helper()
	if !mongo.Real {
		t.Setenv("ASSETSVC_STORE_TIMEOUT", "50s")
		t.Setenv("ASSETSVC_TIMEOUT", "50s")
		t.Setenv("GATEWAY_TIMEOUT", "55s")
		t.Setenv("GATEWAY_READ_TIMEOUT", "55s")
		t.Setenv("GATEWAY_LIST_TIMEOUT", "55s")
	}
}

func TestSplitOnMongoAndRedis(t *testing.T) {
	redis, mongo := redistest.Start(t), mongotest.Start(t)
	bePatient(t, mongo)
	stores := processes.Stores{Assets: mongo.URI(t, fmt.Sprintf("e2e%016x", rand.Uint64())), Tokens: redis.URL()}
	base := split(t, filepath.Join(t.TempDir(), "data"), stores, &processes.Output{}).URL
	Run(t, base)
	t.Run("a Redis that forgets all takes no owner's asset away", func(t *testing.T) {
		a, stop := api{base, "2.5"}, make(chan struct{})
		var working sync.WaitGroup
		for range 6 {
			working.Go(func() {
				for i := range 6 {
					c := a.publish(t, validAsset())
					a.patch(t, c, fields{"description": fmt.Sprint("change ", i)}).must(t, 200)
					c.token = strings.Repeat("0", 32)
					a.patch(t, c, fields{"description": "not by this token"}).fails(t, 403, "body/data")
				}
			})
		}
		forgetting := make(chan struct{})
		go func() {
			defer close(forgetting)
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
					redis.Flush(t)
				}
			}
		}()
		working.Wait()
		close(stop)
		<-forgetting
	})
}

// Secrets are sent by every way there is, right and wrong ones, to services
// that log all they can.
func TestNoSecretIsLoggedOrStored(t *testing.T) {
	for _, try := range []struct {
		name  string
		start func(t *testing.T, dir string, output *processes.Output) string
	}{
		{"standalone", func(t *testing.T, dir string, output *processes.Output) string {
			addr := freeAddr(t)
			standalone(t, addr, dir, output, "--log-level", "debug")
			return "http://" + addr
		}},
		{"split", func(t *testing.T, dir string, output *processes.Output) string {
			return split(t, dir, processes.Stores{}, output, "--log-level", "debug").URL
		}},
	} {
		t.Run(try.name, func(t *testing.T) {
			dir, output := filepath.Join(t.TempDir(), "data"), &processes.Output{}
			a := api{try.start(t, dir, output), "2.5"}
			c := a.publish(t, validAsset())
			const canary = "canary0123456789"
			keyed := a.do(t, call{method: "POST", path: "/assets", key: "broker",
				body: data(validAsset())}.with("Idempotency-Key", "once")).must(t, 201)
			secrets := []string{c.token, text(at(keyed.json["access"], "token")),
				text(at(keyed.json["access"], "transfer")),
				text(at(a.create(t, validAsset()).json["access"], "transfer")), canary, basic(canary),
				basic(canary + ":")}
			for _, path := range []string{"/assets", "/assets/" + c.id, "/assets/" + strings.Repeat("0", 32),
				"/assets/" + c.id + "/nothing"} {
				for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE"} {
					for _, token := range []string{c.token, canary} {
						for _, authorization := range []string{basic("broker:"), basic(canary + ":"),
							"Bearer " + canary, "Basic " + canary, canary} {
							body := data(fields{"description": "x"})
							body["access"] = fields{"token": token}
							got := a.do(t, call{method: method, path: path + "?acc_token=" + token, token: token,
								body: body, header: map[string]string{"Authorization": authorization}})
							if got.status >= 400 && (strings.Contains(got.text, canary) ||
								strings.Contains(got.text, c.token)) {
								t.Errorf("%s %s: the answer tells a secret: %s", method, path, got.text)
							}
						}
					}
				}
			}
			a.do(t, call{method: "GET", path: "/assets", header: map[string]string{"X-Request-ID": "the-last-one"}}).
				must(t, 200)
			log := await(t, output, "the-last-one")
			if strings.Count(log, `"request"`) < 100 {
				t.Fatalf("the log is too short to mean anything: %s", log)
			}
			stored := ""
			files, err := filepath.Glob(filepath.Join(dir, "*.db"))
			if err != nil || len(files) != 2 {
				t.Fatalf("stores: %v, %v", files, err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				stored += string(text)
			}
			for _, secret := range secrets {
				if strings.Contains(log, secret) {
					t.Errorf("the log tells %s", secret)
				}
				if strings.Contains(stored, secret) {
					t.Errorf("%s is stored", secret)
				}
			}
		})
	}
}

func TestRestartKeepsEverything(t *testing.T) {
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	first := standalone(t, addr, dir, &processes.Output{})
	c := a.publish(t, validAsset())
	before, feed := a.read(t, c.id), a.page(t, "")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	standalone(t, addr, dir, &processes.Output{})
	t.Logf("answered %v after it was started again", time.Since(started))
	if after := a.read(t, c.id).must(t, 200); after.text != before.text {
		t.Errorf("before %s\nafter  %s", before.text, after.text)
	}
	if after := a.page(t, ""); after.text != feed.text {
		t.Errorf("feed before %s\nafter  %s", feed.text, after.text)
	}
	a.patch(t, c, fields{"description": "після"}).must(t, 200)
	if second := a.create(t, validAsset()); second.data()["assetID"] == c.data()["assetID"] {
		t.Errorf("two assets are called %v", c.data()["assetID"])
	}
}

func TestAStartThatCannotBeIsRefused(t *testing.T) {
	build(t)
	busy, used := freeAddr(t), filepath.Join(t.TempDir(), "used")
	standalone(t, busy, used, &processes.Output{})
	dir := t.TempDir()
	foreign, file, newer := filepath.Join(dir, "foreign"), filepath.Join(dir, "file"), filepath.Join(dir, "newer")
	for _, try := range []struct {
		path string
		text string
	}{{filepath.Join(foreign, "letter.txt"), "dear"}, {file, "text"},
		{filepath.Join(newer, "FORMAT"), "asset-registry data 99"}} {
		if err := os.MkdirAll(filepath.Dir(try.path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(try.path, []byte(try.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fresh := filepath.Join(dir, "fresh")
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"a wrong flag", []string{"--data", fresh, "--colour=blue"}, "--colour"},
		{"a wrong value", []string{"--data", fresh, "--max-body=many"}, "max-body"},
		{"a body limit of nought", []string{"--data", fresh, "--max-body=0"}, "limit"},
		{"a zone with summer time", []string{"--data", fresh, "--zone=Europe/Kyiv"}, "zone"},
		{"a base URL of no address", []string{"--data", fresh, "--base-url=registry"}, "base URL"},
		{"a config file of nothing", []string{"--data", fresh, "--config", filepath.Join(dir, "none.yaml")},
			"none.yaml"},
		{"keys that are not there", []string{"--data", fresh, "--keys-file", filepath.Join(dir, "none.yaml")},
			"none.yaml"},
		{"a busy port", []string{"--data", fresh, "--addr", busy}, "address already in use"},
		{"a port of no number", []string{"--data", fresh, "--addr", "127.0.0.1:many"}, "many"},
		{"a foreign directory", []string{"--data", foreign}, "letter.txt"},
		{"a file as directory", []string{"--data", file}, "not a directory"},
		{"a directory below a file", []string{"--data", filepath.Join(file, "x")}, "not a directory"},
		{"an unwritable directory", []string{"--data", "/proc/registry"}, "/proc"},
		{"a directory in use", []string{"--data", used}, "in use"},
		{"a newer format", []string{"--data", newer}, "99"},
		{"a directory of no name", []string{"--data", ""}, "data"},
		{"no command that there is ", nil, "expected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"serve", "--addr", freeAddr(t)}, c.args...)
			if c.args == nil {
				args = []string{"dance"}
				c.says = "dance"
			}
			cmd := exec.Command(filepath.Join(bin, "registry"), args...)
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			if cmd.ProcessState.ExitCode() != 2 {
				t.Errorf("exit %d, %v", cmd.ProcessState.ExitCode(), err)
			}
			if lines := strings.Count(stderr.String(), "\n"); lines != 1 ||
				!strings.Contains(stderr.String(), c.says) || stdout.Len() != 0 {
				t.Errorf("it says %q, and %q", stderr.String(), stdout.String())
			}
			if _, err := os.Stat(fresh); err == nil {
				t.Error("it has made a data directory")
			}
			if entries, err := os.ReadDir(foreign); err != nil || len(entries) != 1 {
				t.Errorf("it has written into a foreign directory: %v, %v", entries, err)
			}
		})
	}
}

func TestZoneAndAddressComeFromTheConfiguration(t *testing.T) {
	config := filepath.Join(t.TempDir(), "registry.yaml")
	if err := os.WriteFile(config, []byte("zone: \"+02:00\"\nbase-url: https://registry.example/\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REGISTRY_ASSET_TYPES", "bounce,castle")
	addr := freeAddr(t)
	standalone(t, addr, filepath.Join(t.TempDir(), "data"), &processes.Output{}, "--config", config)
	a := api{"http://" + addr, "2.5"}
	first, second := a.publish(t, validAsset()), a.publish(t, validAsset().set("assetType", "castle"))
	for _, path := range []string{"date", "dateModified", "documents.0.datePublished",
		"rectificationPeriod.startDate"} {
		if got := text(at(first.data(), path)); !strings.HasSuffix(got, "+02:00") {
			t.Errorf("%s is %s", path, got)
		}
	}
	if got := text(at(first.data(), "decisions.0.decisionDate")); got != "2026-11-20T12:00:00.000000+02:00" {
		t.Errorf("decisionDate is %s", got)
	}
	p := a.page(t, "?limit=1")
	if p.entries[0].id != first.id || !strings.HasPrefix(text(p.next["uri"]),
		"https://registry.example/api/2.5/assets?") {
		t.Errorf("got %v, next_page %v", p.entries, p.next)
	}
	if p = a.page(t, text(p.next["path"])); len(p.entries) != 1 || p.entries[0].id != second.id {
		t.Errorf("after that %v", p.entries)
	}
}

func TestStartIsQuickAndGreets(t *testing.T) {
	build(t)
	addr, output := freeAddr(t), &processes.Output{}
	started := time.Now()
	standalone(t, addr, filepath.Join(t.TempDir(), "data"), output)
	t.Logf("answered %v after its first start", time.Since(started))
	greeting := await(t, output, "README.md")
	_, command, found := strings.Cut(greeting, "\n\n  curl ")
	command, _, _ = strings.Cut(command, "\n")
	if !found || !strings.Contains(greeting, "http://"+addr) {
		t.Fatalf("the greeting is %q", greeting)
	}
	text, err := exec.Command("sh", "-c", "curl -sS -w '%{http_code}' "+command).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(text), "201") {
		t.Errorf("its first request: %v, %s", err, text)
	}
}

// TestKeysComeAndGo puts a key into the store of a registry that runs, and takes
// it out.
func TestKeysComeAndGo(t *testing.T) {
	redis := redistest.Start(t)
	a := api{split(t, filepath.Join(t.TempDir(), "data"), processes.Stores{Tokens: redis.URL()},
		&processes.Output{}).URL, "2.5"}
	add := []string{"new-key", "--broker", "Акме", "--id", "acme-1", "--store", redis.URL()}
	key := strings.TrimSpace(mustRun(t, add...))
	create := call{method: "POST", path: "/assets", key: key, body: data(validAsset())}
	if got := a.do(t, create).must(t, 201); got.data()["owner"] != "Акме" {
		t.Errorf("the owner is %v", got.data()["owner"])
	}
	mustRefuse(t, "already", add...)
	mustRun(t, "revoke-key", "--id", "acme-1", "--store", redis.URL())
	soon(t, "a key that was taken out is refused", inForce, func() bool { return a.do(t, create).status == 401 })
	mustRefuse(t, "no such key", "revoke-key", "--id", "acme-1", "--store", redis.URL())
}
