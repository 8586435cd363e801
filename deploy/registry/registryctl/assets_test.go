package registryctl

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// publicAPI is a fake registry. It has an answer for each "METHOD PATH?QUERY"; for anything else it answers
// 404. It records each request with its body.
type publicAPI struct {
	flags    []string // flags that make registryctl use this registry
	mu       sync.Mutex
	answers  map[string]string // tests may change them between commands
	requests []string
}

func newPublicAPI(t *testing.T, answers map[string]string) *publicAPI {
	t.Helper()
	api := &publicAPI{answers: answers}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, err := io.ReadAll(r.Body)
		expect.Try(t, err)
		api.mu.Lock()
		defer api.mu.Unlock()
		api.requests = append(api.requests, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+string(body)))
		text, found := api.answers[r.Method+" "+r.URL.String()]
		if !found {
			w.WriteHeader(http.StatusNotFound)
			text = `{"status":"error","errors":[{"location":"querystring","name":"offset","description":"gone"}]}`
		}
		io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	api.flags = []string{"--url", server.URL, "--key", "secret"}
	return api
}

// seen returns the requests that came since the last call.
func (a *publicAPI) seen() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.requests
	a.requests = nil
	return seen
}

func TestGetShowsEveryField(t *testing.T) {
	api := newPublicAPI(t, map[string]string{"GET /api/2.5/assets/a1": `{"data":{"id":"a1","title":"one\ntwo\u001b[31m",
		"items":[{"id":"i1","quantity":12345678901234567890.1000},{"unit":{"code":"MTK"}}],"new":{"list":[1,[],{}]}}}`})
	got, err := run(t, append(api.flags, "assets", "get", "a1")...)
	expect.OK(t, err)
	want := `id: a1
title: one
  two?[31m
items:
  - id: i1
    quantity: 12345678901234567890.1000
  - unit:
      code: MTK
new:
  list:
    - 1
    - -
    - -
tag: 
`
	expect.NoDiff(t, cmp.Diff(want, got), "the output differs")
	got, err = run(t, append(api.flags, "assets", "get", "a1", "-o", "json")...)
	if err != nil || !strings.Contains(got, `"quantity": 12345678901234567890.1000`) ||
		!strings.HasPrefix(got, "{\n  \"data\"") {
		t.Errorf("got %s, %v, want the JSON with every digit", got, err)
	}
}

func TestCreateKeepsTheTokens(t *testing.T) {
	api := newPublicAPI(t, map[string]string{
		"POST /api/2.5/assets": `{"data":{"id":"a1","status":"draft"},"access":{"token":"tok1","transfer":"tra1"}}`})
	dir := t.TempDir()
	asset, access := filepath.Join(dir, "asset.json"), filepath.Join(dir, "access.json")
	expect.OK(t, os.WriteFile(asset, []byte(`{"data":{"title":"x","items":{"quantity":1.10}}}`), 0o600))
	printed, err := run(t, append(api.flags, "assets", "create", "-f", asset)...)
	expect.ErrorIf(t, err != nil || !strings.Contains(printed, "tok1") || !strings.Contains(printed, "tra1"),
		"got %q, %v, want both tokens", printed, err)
	want := []string{`POST /api/2.5/assets {"data":{"items":{"quantity":1.10},"title":"x"}}`}
	expect.NoDiff(t, cmp.Diff(want, api.seen()), "the requests differ")
	printed, err = run(t, append(api.flags, "assets", "create", "-f", asset, "--access", access)...)
	expect.ErrorIf(t, err != nil || strings.Contains(printed, "tok1") || strings.Contains(printed, "tra1"),
		"got %q, %v, want no token", printed, err)
	held, err := readAccess(access, "a1")
	expect.ErrorIf(t, err != nil || held.Access.Token != "tok1" || held.Access.Transfer != "tra1",
		"got %+v, %v, want both tokens in the file", held, err)
	if info, err := os.Stat(access); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file of mode 0600", info, err)
	}
	expect.SaysOf(t, "another asset", "another id")(readAccess(access, "a2"))
	_, err = run(t, append(api.flags, "assets", "publish", "a1", "--access", asset)...)
	expect.Says(t, err, "has no tokens", "a file without tokens")
	api.seen()
	_, err = run(t, append(api.flags, "assets", "create", "-f", asset, "--access", access)...)
	expect.ErrorIf(t, err == nil || len(api.seen()) > 0,
		"an existing file: got %v, want an error before the request", err)
}

// TestRecoverKeepsTheTokens runs the command recover. It must write the new tokens to a file that only the user may
// read, and must not print them.
func TestRecoverKeepsTheTokens(t *testing.T) {
	const recovery = "POST /api/2.5/assets/a1/recovery"
	api := newPublicAPI(t, nil)
	access := filepath.Join(t.TempDir(), "access.json")
	recover := append(api.flags, "assets", "recover", "a1", "--reason", "lost", "--access", access)
	expect.FailsOf(t, "an unknown asset")(run(t, recover...))
	if _, err := os.Stat(access); !os.IsNotExist(err) {
		t.Errorf("after an error: got %v, want no file", err)
	}
	api.answers = map[string]string{
		recovery: `{"access":{"token":"tok2","transfer":"tra2"},"data":{"id":"a1","owner":"me"}}`,
	}
	api.seen()
	printed, err := run(t, recover...)
	expect.ErrorIf(t, err != nil || !strings.Contains(printed, "me") || strings.Contains(printed, "tok2"),
		"got %q, %v, want the asset without its tokens", printed, err)
	expect.NoDiff(t, cmp.Diff([]string{recovery + ` {"data":{"reason":"lost"}}`}, api.seen()), "the requests differ")
	held, err := readAccess(access, "a1")
	expect.ErrorIf(t, err != nil || held.Access.Token != "tok2" || held.Access.Transfer != "tra2",
		"got %+v, %v, want both tokens in the file", held, err)
	if info, err := os.Stat(access); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file of mode 0600", info, err)
	}
	if _, err := run(t, recover...); err == nil || len(api.seen()) > 0 {
		t.Errorf("an existing file: got %v, want an error before the request", err)
	}
	expect.FailsOf(t, "without a reason")(run(t, append(api.flags, "assets", "recover", "a1", "--access", access)...))
}

func TestAFailedCreationLeavesNoFile(t *testing.T) {
	api := newPublicAPI(t, nil)
	dir := t.TempDir()
	asset, access := filepath.Join(dir, "asset.json"), filepath.Join(dir, "access.json")
	expect.OK(t, os.WriteFile(asset, []byte(`{}`), 0o600))
	expect.FailsOf(t, "")(run(t, append(api.flags, "assets", "create", "-f", asset, "--access", access)...))
	if _, err := os.Stat(access); !os.IsNotExist(err) {
		t.Errorf("got %v, want no file", err)
	}
}

// TestAcceptContinuesAfterAnInterruption lets the second step of accept fail, and runs the same command again.
// The second run must use the transfer that is in the file.
func TestAcceptContinuesAfterAnInterruption(t *testing.T) {
	const transfer, ownership = "POST /api/2.5/transfers", "POST /api/2.5/assets/a1/ownership"
	api := newPublicAPI(t, map[string]string{transfer: `{"data":{"id":"t1"},"access":{"token":"tok2","transfer":"tra2"}}`})
	access := filepath.Join(t.TempDir(), "access.json")
	t.Setenv("REGISTRYCTL_TRANSFER", "tra1")
	accept := append(api.flags, "assets", "accept", "a1", "--access", access)
	if _, err := run(t, accept...); err == nil {
		t.Fatal("got nil, want an error")
	}
	taken := ownership + ` {"data":{"id":"t1","transfer":"tra1"}}`
	expect.NoDiff(t, cmp.Diff([]string{transfer + ` {"data":{}}`, taken}, api.seen()), "first run: the requests differ")
	api.answers[ownership] = `{"data":{"id":"a1","owner":"me"}}`
	printed, err := run(t, accept...)
	expect.ErrorIf(t, err != nil || !strings.Contains(printed, "me") || strings.Contains(printed, "tok2"),
		"got %q, %v, want the asset without its tokens", printed, err)
	expect.NoDiff(t, cmp.Diff([]string{taken}, api.seen()), "second run: the requests differ")
	if held, err := readAccess(access, "a1"); err != nil || held.Access.Token != "tok2" {
		t.Errorf("got %+v, %v, want the new owner token in the file", held, err)
	}
	delete(api.answers, ownership)
	printed, err = run(t, append(api.flags, "assets", "accept", "a1")...)
	expect.ErrorIf(t, err == nil || !strings.Contains(printed, "tok2"),
		"without a file: got %q, %v, want the tokens before the error", printed, err)
}

func TestFollowKeepsItsPosition(t *testing.T) {
	const first = "GET /api/2.5/assets?limit=1000&opt_fields=status%2Ctitle%2Cowner%2CassetID"
	const second = "GET /api/2.5/assets?limit=1000&offset=1&opt_fields=status%2Ctitle%2Cowner%2CassetID"
	const end = "GET /api/2.5/assets?descending=1&limit=1"
	const a = `{"id":"a","dateModified":"1","status":"pending","owner":"o","title":"x\ty"}`
	api := newPublicAPI(t, map[string]string{
		first:  `{"data":[` + a + `],"next_page":{"offset":"1"}}`,
		second: `{"data":[],"next_page":{"offset":"1"}}`,
		end:    `{"data":[` + a + `],"next_page":{"offset":"1"}}`,
	})
	state := filepath.Join(t.TempDir(), "state")
	follow := append(api.flags, "assets", "follow", "--up-to-date", "--state", state)
	for _, c := range []struct{ name, want string }{
		{"without a position, from the beginning", "1\ta\tpending\to\tx?y\n"},
		{"from the stored position", ""},
	} {
		expect.Value(t, c.want, "%s", c.name)(run(t, follow...))
	}
	expect.NoDiff(t, cmp.Diff([]string{end, first, end, second}, api.seen()), "the requests differ")
	// The position belongs to the data of another server.
	expect.OK(t, os.WriteFile(state, []byte(`{"offset":"9","serverID":"other"}`), 0o600))
	got, err := run(t, append(follow, "-o", "json", "--fields", "status,title,owner,assetID")...)
	lines := strings.SplitAfter(got, "\n")
	if err != nil || len(lines) != 3 || lines[0] != "{\"startOver\":true}\n" ||
		!strings.HasPrefix(lines[1], `{"id":"a",`) {
		t.Errorf("got %q, %v, want a line with startOver and the asset", got, err)
	}
	if text, err := os.ReadFile(state); err != nil || string(text) != "{\"offset\":\"1\"}\n" {
		t.Errorf("got position %s, %v, want 1", text, err)
	}
}

// TestFollowPrintsChangesAsTheyCome breaks a stream off after a bookmark, and interrupts the command during the
// next stream. The command must print the changes of the first stream, ask for the next stream with the offset of the
// bookmark, and report this offset at the end.
func TestFollowPrintsChangesAsTheyCome(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Header.Get("Accept")+" "+r.URL.RawQuery)
		if len(requests) == 2 {
			interrupt()
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "retry: 1\n\nid: 1\ndata: {\"id\":\"a\",\"dateModified\":\"1\"}\n\n")
		io.WriteString(w, "id: 2\ndata: {\"id\":\"b\",\"dateModified\":\"2\"}\n\n")
		io.WriteString(w, "event: bookmark\nid: 7\ndata: {\"offset\":\"7\"}\n\n")
	}))
	var out, errOut strings.Builder
	args := []string{"assets", "follow", "--url", server.URL, "-o", "json", "--offset", "0", "--fields", "*", "--mode", "test"}
	err := Run(ctx, args, strings.NewReader(""), &out, &errOut)
	server.Close()
	want := "{\"id\":\"a\",\"dateModified\":\"1\"}\n{\"id\":\"b\",\"dateModified\":\"2\"}\n"
	if err != nil || out.String() != want || errOut.String() != "Go on with --offset '7'\n" {
		t.Errorf("got %q, %q, %v, want %q and the offset 7", out.String(), errOut.String(), err, want)
	}
	wanted := []string{
		"text/event-stream limit=1000&mode=test&offset=0&opt_fields=%2A",
		"text/event-stream limit=1000&mode=test&offset=7&opt_fields=%2A",
	}
	expect.NoDiff(t, cmp.Diff(wanted, requests), "the requests differ")
}

func TestFollowStartsAtOnePlace(t *testing.T) {
	expect.FailsOf(t, "")(run(t, "assets", "follow", "--offset", "1", "--state", "file"))
}

func TestAWriteTellsWhatWasIgnored(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Registry-Ignored", "documents, owner")
		io.WriteString(w, `{"data":{"id":"a1"},"access":{"token":"t"}}`)
	}))
	t.Cleanup(server.Close)
	for _, args := range [][]string{
		{"assets", "create", "--file", "-"}, {"assets", "patch", "a1", "--file", "-", "--token", "t"},
	} {
		var out, errOut strings.Builder
		err := Run(t.Context(), append(args, "--url", server.URL, "--key", "secret", "--output", "json"),
			strings.NewReader(`{"owner":"x"}`), &out, &errOut)
		const want = "The registry has ignored: documents, owner\n"
		if err != nil || !strings.Contains(errOut.String(), want) || strings.Contains(out.String(), "ignored") {
			t.Errorf("%v: got %q, %q, %v, want %q in the second", args, out.String(), errOut.String(), err, want)
		}
	}
}
