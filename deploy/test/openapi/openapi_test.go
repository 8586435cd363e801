package openapi

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

// refurnish is how many requests use the same objects. After that the test creates new ones, because requests put
// some objects into a final state.
const refurnish = 400

var bin = flag.String("bin", "", "absolute path of the directory of the programs; by default they are built")

// uncovered is the status of a proof when the newest checkpoint does not cover the change yet.
const uncovered = http.StatusServiceUnavailable

// built is the directory of the programs, or "" if no test has built them yet.
var built string

func build(t *testing.T) string {
	t.Helper()
	if *bin != "" {
		return *bin
	}
	if built == "" {
		dir := expect.Get(os.MkdirTemp("", "registry-openapi"))(t)
		built = dir
		expect.OK(t, processes.Build(t.Context(), dir))
	}
	return built
}

func TestMain(m *testing.M) {
	flag.Parse()
	status := m.Run()
	if built != "" {
		_ = os.RemoveAll(built) // an error does not matter, because the directory is a temporary one
	}
	os.Exit(status)
}

// serve starts a registry in one process, with search and without rate limits. The parameter `args` has further
// arguments.
func serve(t *testing.T, args ...string) *registry {
	t.Helper()
	dir := build(t)
	addr := expect.Get(porttest.FreeAddr())(t)
	output := &processes.Output{}
	args = append([]string{"--search"}, args...)
	p := expect.Get(processes.Standalone(t.Context(), dir, addr, filepath.Join(t.TempDir(), "data"), output,
		args...))(t)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("the registry: got %v at its end, want exit code 0", err)
		}
	})
	return expect.Get(newRegistry("http://" + addr))(t)
}

// TestRequestsFromTheDocument sends requests that are generated from the document. The flag -rapid.checks sets
// their number.
func TestRequestsFromTheDocument(t *testing.T) {
	r := serve(t)
	awaitSearch(t, r)
	documents := operationsOf(r.documents)
	var places []place
	sent := 0
	statuses := map[int]int{}
	rapid.Check(t, func(rt *rapid.T) {
		if sent%refurnish == 0 {
			fresh, err := r.furnish(t.Context())
			if err != nil {
				rt.Fatal(err)
			}
			places = fresh
		}
		sent++
		o := rapid.SampledFrom(documents).Draw(rt, "operation")
		q := requestOf(rt, o, places)
		got, err := r.send(t.Context(), q)
		if err != nil {
			rt.Fatalf("%s %s\n%v\nsent %.600s\ngot %d %.600s\nerror: %v", q.method, q.path, q.header, q.body, got.status, got.body,
				err)
		}
		if got.status >= http.StatusInternalServerError && !(o.OperationID == "proveAsset" && got.status == uncovered) {
			rt.Fatalf("%s %s %v\nsent %.600s\ngot %d %.600s, want no 5xx", q.method, q.path, q.header, q.body, got.status,
				got.body)
		}
		statuses[got.status]++
	})
	t.Logf("%d requests: %v", sent, statuses)
	for _, status := range []int{200, 201, 400, 401, 403, 404, 412, 415} {
		if sent > 10*refurnish && statuses[status] == 0 {
			t.Errorf("got no %d in %d requests, want some", status, sent)
		}
	}
}

// unseen lists the documented statuses that these tests do not provoke, with the reason. "*" means every operation.
var unseen = map[string]string{
	"* 500":                    "a defect of the registry: none is known",
	"* 503":                    "an outage: the tests of faults and of attacks provoke it",
	"* 421":                    "only a mirror answers so: TestEveryReadingOfAMirrorIsTheOrigins provokes it",
	"readSnapshot 404":         "this registry has a snapshot: the unit tests of package httpapi provoke it",
	"searchAssets 404":         "a registry without search: TestBrowsersGetPagesAndProgramsGetTheWelcome provokes it",
	"suggestSearches 404":      "as searchAssets 404",
	"listDictionaries 404":     "as searchAssets 404",
	"exportCSV 404":            "as searchAssets 404",
	"exportXLSX 404":           "as searchAssets 404",
	"exportGeoJSON 404":        "as searchAssets 404",
	"listOwnAssets 403":        "as readCaller 403",
	"readCaller 403":           "a key that is limited to addresses: the tests of the gateway provoke it",
	"* 507":                    "a full disk: the tests of filesvc provoke it",
	"uploadFile 403":           "a quota: the tests of filesvc provoke it",
	"registerFile 403":         "as uploadFile 403",
	"readArchive 413":          "1 GiB: the tests of filesvc provoke it",
	"uploadFile 413":           "100 MiB: the tests of filesvc provoke it",
	"uploadRegisteredFile 413": "as uploadFile 413",
	"* 409":                    "many changes at the same moment: the unit tests of package registry provoke it",
}

// TestEveryDocumentedStatusOccurs provokes the statuses that generated requests cannot provoke, for example by bad
// framing, rate limits and large bodies.
func TestEveryDocumentedStatusOccurs(t *testing.T) {
	r := serve(t)
	awaitSearch(t, r)
	provoke(t, r)
	limited := serve(t, "--no-limits=false", "--limits", `[
		{"name": "all", "by": "address", "costs": {"list": 1, "own": 1, "read": 1, "write": 1}, "windows": {"1h": 1}},
		{"name": "keys", "by": "key", "costs": {"list": 1, "own": 1, "read": 1, "write": 1}, "windows": {"1h": 1}},
		{"name": "failed", "by": "address", "costs": {"failed": 1}, "windows": {"1h": 1}}]`)
	limited.documents = r.documents // one count of the answers of both registries
	exhaust(t, limited)
	var missing []string
	for _, o := range inCurrent(r.documents) {
		seen := r.documents[o.version].Seen()
		statuses := o.Responses.Keys()
		others, _ := o.Responses.Default().Value.Extensions["x-statuses"].([]any)
		for _, status := range others {
			statuses = append(statuses, fmt.Sprint(status))
		}
		for _, status := range statuses {
			if status == "default" {
				continue
			}
			name := o.OperationID + " " + status
			if seen[name] == 0 && unseen[name] == "" && unseen["* "+status] == "" {
				missing = append(missing, o.version+" "+name)
			}
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("documented, and not seen:\n%s", strings.Join(slices.Compact(missing), "\n"))
	}
}
