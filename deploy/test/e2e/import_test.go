package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goclient "asset-registry.example/client"
	"asset-registry/deploy/registry/bulk"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// importFile writes a file of rows, and a folder with the file that their documents refer to. Each row is the asset
// that validAsset returns, with one document.
func importFile(t *testing.T, prefix string, rows int) (file, folder string) {
	t.Helper()
	folder = t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte("умови"), 0o600))
	var text strings.Builder
	for i := range rows {
		line := expect.Get(json.Marshal(map[string]any{
			"reference": fmt.Sprint(prefix, "-", i), "data": validAsset(),
			"documents": []fields{{"documentType": "notice", "file": "a.txt"}},
		}))(t)
		text.Write(append(line, '\n'))
	}
	file = filepath.Join(t.TempDir(), "rows.jsonl")
	expect.OK(t, os.WriteFile(file, []byte(text.String()), 0o600))
	return file, folder
}

// backwards returns JSON whose members are in the reverse order.
func backwards(t *testing.T, value any) string {
	t.Helper()
	var parts []string
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(v))) {
			parts = append(parts, fmt.Sprintf("%q:%s", name, backwards(t, v[name])))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		for _, element := range v {
			parts = append(parts, backwards(t, element))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return string(expect.Get(json.Marshal(value))(t))
}

// rewrite writes the rows of a file anew, with the members of each object in another order.
func rewrite(t *testing.T, file string) {
	t.Helper()
	content := expect.Get(os.ReadFile(file))(t)
	var text strings.Builder
	for line := range strings.Lines(string(content)) {
		var row any
		expect.OK(t, json.Unmarshal([]byte(line), &row))
		text.WriteString(backwards(t, row) + "\n")
	}
	expect.OK(t, os.WriteFile(file, []byte(text.String()), 0o600))
}

// begun creates the asset of the first row of a file, as the program before this one does, which has lost the answer.
func (a api) begun(t *testing.T, prefix string) {
	t.Helper()
	reference := prefix + "-0"
	type document struct {
		File   string
		Fields fields
	}
	row := expect.Get(json.Marshal([]any{reference, validAsset(), []document{{"a.txt",
		fields{"documentType": "notice"}}}}))(t)
	key := sha256.Sum256(fmt.Appendf(nil, "registryctl assets import\n%s\n%.16x", reference, sha256.Sum256(row)))
	a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(validAsset())}.
		with("Registry-Reference", reference).with("Idempotency-Key", fmt.Sprintf("%x", key))).must(t, 201)
}

// imported compares the rows of an import with the broker's assets whose references begin with a prefix. Each row must
// have one public asset with its document, and the file of tokens must have the asset's token.
func (a api) imported(t *testing.T, prefix, access string, rows int) {
	t.Helper()
	found := map[string]string{} // ids of assets; the keys are references
	for path := "/me/assets?limit=1000&opt_fields=reference,status"; ; {
		got := a.do(t, call{method: "GET", path: path, key: "broker"}).must(t, 200)
		entries := list(got.json["data"])
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			reference := text(at(e, "reference"))
			if !strings.HasPrefix(reference, prefix+"-") {
				continue
			}
			if other := found[reference]; other != "" {
				t.Errorf("%s: got the assets %s and %s, want one", reference, other, text(at(e, "id")))
			}
			found[reference] = text(at(e, "id"))
			equal(t, "state of "+reference, text(at(e, "status")), "pending")
		}
		next := text(at(got.json, "next_page.path"))
		path = next[strings.Index(next, "/me/assets"):]
	}
	equal(t, "assets of rows", len(found), rows)
	tokens := tokensOf(t, access)
	for reference, id := range found {
		documents := list(a.do(t, call{method: "GET", path: "/assets/" + id + "/documents"}).must(t, 200).json["data"])
		equal(t, "documents of "+reference, len(documents), 2)
		a.as(t, "broker", created{id: id, token: tokens[id]}, "PATCH", "/assets/"+id, fields{}).must(t, 200)
	}
}

// tokensOf returns the owner tokens in a file of tokens. The keys are ids of assets.
func tokensOf(t *testing.T, access string) map[string]string {
	t.Helper()
	content := expect.Get(os.ReadFile(access))(t)
	tokens := map[string]string{}
	for line := range strings.Lines(string(content)) {
		var e map[string]any
		expect.Must(t, json.Unmarshal([]byte(line), &e), "the line %q", line)
		if token := text(at(e, "access.token")); token != "" {
			tokens[text(at(e, "data.id"))] = token
		}
	}
	return tokens
}

// stopping is a transport that ends an import at one of its requests. It stops either before it sends the request,
// or after the registry has carried it out, so that the answer is lost.
type stopping struct {
	left  atomic.Int64 // how many more requests the transport lets through
	after bool
	stop  func()
}

var errStopped = errors.New("the process was killed")

func (s *stopping) RoundTrip(r *http.Request) (*http.Response, error) {
	left := s.left.Add(-1)
	if left > 0 {
		return http.DefaultTransport.RoundTrip(r)
	}
	defer s.stop()
	if left == 0 && s.after {
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // the answer does not matter
			resp.Body.Close()
		}
	}
	return nil, errStopped
}

// load runs an import in this process. A file .csv has its mapping beside it.
func (a api) load(t *testing.T, ctx context.Context, file, folder, access string, transport http.RoundTripper) (
	bulk.Counts, error,
) {
	t.Helper()
	return a.planned(t, ctx, file, folder, access, transport, nil)
}

// planned plans an import in this process, if the function `between` is not nil, calls it, and runs the import. With an
// order, a file of the folder, it withdraws the rows that have left.
func (a api) planned(t *testing.T, ctx context.Context, file, folder, access string, transport http.RoundTripper,
	between func(), order ...string,
) (bulk.Counts, error) {
	t.Helper()
	rows := expect.Get(os.Open(file))(t)
	defer rows.Close()
	files := expect.Get(bulk.OpenFolder(folder))(t)
	defer files.Close()
	source := bulk.Source{File: rows}
	if name := strings.TrimSuffix(file, ".csv") + ".yaml"; name != file+".yaml" {
		m, faults := bulk.ReadMapping(bytes.NewReader(expect.Get(os.ReadFile(name))(t)))
		equal(t, "faults of the mapping", len(faults), 0)
		source.Mapping = &m
	}
	checked, ok, err := bulk.Check(source, files, func(f bulk.Finding) { t.Error(f) })
	if err != nil || !ok {
		t.Fatalf("got %t, %v, want a file without faults", ok, err)
	}
	c := expect.Get(goclient.New(goclient.Config{
		URL: a.base, Key: "broker", Transport: transport, Retry: goclient.Retry{Tries: 1},
	}))(t)
	journal := expect.Get(bulk.OpenJournal(access, a.base, "broker"))(t)
	defer journal.Close()
	l := bulk.Load{
		Registry: c, Files: files, Journal: journal, Workers: 1, Tell: func(bulk.Result) {}, Waiting: func(string) {},
	}
	if len(order) > 0 {
		l.Order, l.Paper = files, order[0]
	}
	if between != nil {
		if got, err := l.Plan(ctx, source, checked); err != nil {
			return got, err
		}
		between()
	}
	return l.Run(ctx, source, checked)
}

// TestAnImportThatIsStoppedAtEachStep stops an import at each of its requests, either before or after the request.
// In a third case, it also cuts the last written line in half. When the same import runs again, with the members of its
// rows in another order, it must complete.
// Each row must then have one asset with one document, and its tokens.
func TestAnImportThatIsStoppedAtEachStep(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	standalone(t, addr, dir, &processes.Output{})
	a := api{"http://" + addr, "2.5"}
	// The steps are the requests at which the import ends: create, publish, upload and add for the first row, and the
	// first request for the second row.
	const rows, steps = 2, 5
	for step := range steps {
		for _, c := range []struct {
			name       string
			after, cut bool
		}{{"before", false, false}, {"after", true, false}, {"torn", false, true}} {
			prefix := fmt.Sprint("step-", step, "-", c.name)
			file, folder := importFile(t, prefix, rows)
			access := filepath.Join(t.TempDir(), "access")
			ctx, stop := context.WithCancel(t.Context())
			transport := &stopping{after: c.after, stop: stop}
			transport.left.Store(int64(step + 1))
			if _, err := a.load(t, ctx, file, folder, access, transport); err == nil {
				t.Errorf("%s: got nil, want an error: it was stopped", prefix)
			}
			stop()
			if c.cut {
				tearLastLine(t, access)
			}
			rewrite(t, file)
			got, err := a.load(t, t.Context(), file, folder, access, nil)
			if want := (bulk.Counts{Done: rows}); err != nil || got != want {
				t.Errorf("%s: got %+v, %v, want %+v", prefix, got, err, want)
			}
			a.imported(t, prefix, access, rows)
		}
	}
}

// TestAnImportOfTheProgramBeforeGoesOn begins an import as the program before this one does. This one must complete it.
func TestAnImportOfTheProgramBeforeGoesOn(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	standalone(t, addr, filepath.Join(t.TempDir(), "data"), &processes.Output{})
	a := api{"http://" + addr, "2.5"}
	file, folder := importFile(t, "former", 1)
	access := filepath.Join(t.TempDir(), "access")
	a.begun(t, "former")
	if got, err := a.load(t, t.Context(), file, folder, access, nil); err != nil || got != (bulk.Counts{Done: 1}) {
		t.Errorf("got %+v, %v, want one row that is done", got, err)
	}
	a.imported(t, "former", access, 1)
}

// tearLastLine removes the second half of the last line of a file.
func tearLastLine(t *testing.T, name string) {
	t.Helper()
	content := expect.Get(os.ReadFile(name))(t)
	whole := strings.TrimSuffix(string(content), "\n")
	begin := strings.LastIndex(whole, "\n") + 1
	expect.OK(t, os.Truncate(name, int64(begin+(len(whole)-begin)/2)))
}

// importing returns the command of an import.
func importing(a api, file, folder, access string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "registryctl"), append([]string{
		"--url", a.base, "--key", "broker", "assets", "import", file, "--folder", folder, "--access", access,
	}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+folder, "GORACE=atexit_sleep_ms=0", "LC_ALL=C")
	return cmd
}

// limited starts a registry with a low limit for writes.
func limited(t *testing.T, addr, dir string) *processes.Process {
	t.Helper()
	build(t)
	output := &processes.Output{}
	p := expect.Get(processes.Start(t.Context(), addr, output, filepath.Join(bin, "registry"),
		"serve", "--sandbox", "--addr", addr, "--data", dir, "--limit-key-write", "10"))(t)
	killAtEnd(t, p, output)
	return p
}

// TestAnImportWaitsForTheLimits imports more rows than the limits of a key allow at one time. The import must go on
// across a restart of the registry. Its output and its report must contain no token.
func TestAnImportWaitsForTheLimits(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	registry := limited(t, addr, dir)
	a := api{"http://" + addr, "2.5"}
	const rows = 8 // an import of these rows needs 32 writes
	file, folder := importFile(t, "limited", rows)
	access, report := filepath.Join(t.TempDir(), "access"), filepath.Join(t.TempDir(), "report")
	cmd := importing(a, file, folder, access, "--report", report)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	expect.OK(t, cmd.Start())
	soon(t, "the import has begun", time.Minute, func() bool {
		kept, err := os.ReadFile(access)
		return err == nil && strings.Count(string(kept), "\n") > 1
	})
	time.Sleep(randtest.N(time.Second)) // so that the crash comes at a random moment
	expect.OK(t, registry.Kill())
	registry = limited(t, addr, dir)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("got %v and %s, want the end of the import", err, out.String())
	}
	expect.OK(t, registry.Kill())
	standalone(t, addr, dir, &processes.Output{}) // start the registry without limits, for the checks
	a.imported(t, "limited", access, rows)
	told, err := os.ReadFile(report)
	if err != nil || strings.Count(string(told), `"state":"done"`) != rows {
		t.Errorf("got the report %s, %v, want a line for each row", told, err)
	}
	for _, token := range tokensOf(t, access) {
		if strings.Contains(out.String()+string(told), token) {
			t.Errorf("got %s and the report %s, want no token", out.String(), told)
		}
	}
}

// TestARepeatTellsTheTruthAboutTokens repeats imports whose tokens were replaced, with the file of tokens and without
// it, or whose asset was withdrawn or is another broker's. No token may count as good that is none.
func TestARepeatTellsTheTruthAboutTokens(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	standalone(t, addr, dir, &processes.Output{})
	a := api{"http://" + addr, "2.5"}
	file, folder := importFile(t, "truth", 4)
	access := filepath.Join(t.TempDir(), "access")
	if out, err := importing(a, file, folder, access).CombinedOutput(); err != nil {
		t.Fatalf("got %v and %s, want an import", err, out)
	}
	content := expect.Get(os.ReadFile(access))(t)
	ids := map[string]string{}
	for line := range strings.Lines(string(content)) {
		var e map[string]any
		expect.OK(t, json.Unmarshal([]byte(line), &e))
		if id := text(at(e, "data.id")); id != "" {
			ids[text(e["reference"])] = id
		}
	}
	tokens := tokensOf(t, access)
	a.do(t, call{method: "POST", path: "/assets/" + ids["truth-0"] + "/recovery", key: "administrator",
		body: data(fields{"reason": "lost"})}).must(t, 200)
	withdrawn := created{id: ids["truth-1"], token: tokens[ids["truth-1"]]}
	a.as(t, "broker", withdrawn, "POST", "/assets/"+withdrawn.id+"/documents",
		fields{"documentType": "cancellationDetails", "title": "наказ", "url": "https://a.example/b", "hash": "md5:" + strings.Repeat("0", 32),
			"format": "text/plain"}).must(t, 201)
	a.as(t, "broker", withdrawn, "PATCH", "/assets/"+withdrawn.id, fields{"status": "deleted"}).must(t, 200)
	for _, c := range []struct{ name, access string }{
		{"with the file of tokens", access}, {"again", access}, {"without it", filepath.Join(t.TempDir(), "other")},
	} {
		out, err := importing(a, file, folder, c.access).CombinedOutput()
		for _, says := range []string{"2 of 4 rows are done", "2 have no tokens", "row 1, ", "row 2, the asset was deleted"} {
			if err == nil || !strings.Contains(string(out), says) {
				t.Errorf("%s: got %v and %s, want an error and %q", c.name, err, out, says)
			}
		}
		lines := strings.Split(strings.TrimSpace(string(expect.Get(os.ReadFile(c.access))(t))), "\n")
		isTold := slices.ContainsFunc(lines, func(l string) bool {
			return strings.Contains(l, ids["truth-0"]) && strings.Contains(l, `"token":""`)
		})
		if !isTold {
			t.Errorf("%s: got %q, want a line that takes the tokens away", c.name, lines)
		}
	}
}

// TestAnImportNamesRowsThatTheRegistryDoesNotAdmit imports rows of types that the registry lacks, and rows that the API
// key must not create. All of them are named, and nothing is sent.
func TestAnImportNamesRowsThatTheRegistryDoesNotAdmit(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	standalone(t, addr, dir, &processes.Output{}, "--search")
	a := api{"http://" + addr, "2.5"}
	file, folder := importFile(t, "kind", 4)
	lines := strings.SplitAfter(string(expect.Get(os.ReadFile(file))(t)), "\n")
	for _, i := range []int{1, 3} {
		lines[i] = strings.Replace(lines[i], `"assetType":"bounce"`, `"assetType":"barge"`, 1)
	}
	expect.OK(t, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600))
	for _, c := range []struct{ key, says string }{
		{"broker", `this registry takes the types bounce, got "barge"`},
		{"broker1", "the API key lacks the level 3"}, {"broker3t", "in test mode only"},
	} {
		for _, args := range [][]string{{"--key", c.key}, {"--key", c.key, "--check"}} {
			out, err := importing(a, file, folder, filepath.Join(t.TempDir(), "access"), args...).CombinedOutput()
			if n := strings.Count(string(out), c.says); err == nil || n != 2 || !strings.Contains(string(out), "nothing was sent") {
				t.Errorf("%v: got %v and %s, want 2 times %q", args, err, out, c.says)
			}
		}
		own := a.do(t, call{method: "GET", path: "/me/assets", key: c.key}).must(t, 200).json["data"]
		equal(t, c.key+": assets", len(list(own)), 0)
	}
}
