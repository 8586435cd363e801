package clients

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

const (
	python  = "../../../clients/python"
	timeout = 4 * time.Minute // how long one program may run, on a busy machine
)

// lookPath finds a program. For Python, it prefers the program of the system.
func lookPath(name string) (string, error) {
	if name == "python3" {
		if path, err := exec.LookPath("/usr/bin/python3"); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(name)
}

// wanted returns the steps that every scenario must report.
func wanted() []step {
	titles := func(of ...string) any { return toAny(of) }
	return []step{
		{"create", map[string]any{"status": "draft", "quantity": "240.5001", "latitude": "50.4501000", "id": "32945"}},
		{"refuse", titles("body/assetCustodian", "body/description", "body/items.0.quantity", "body/title")},
		{"publish", "pending"},
		{"prove", map[string]any{"revision": 2.0, "kind": "publish", "quantity": "240.5001", "first": 404.0}},
		{"change with a tag", map[string]any{"description": "two entrances", "stale": 412.0}},
		{"parts", map[string]any{"documents": 2.0, "quantity": "7.25"}},
		{"upload", map[string]any{"title": "plan.pdf", "format": "application/pdf", "hash": planHash()}},
		{"hand over", map[string]any{"owner": "broker3", "old token": 403.0, "new token": "three entrances"}},
		{"back to work", map[string]any{"again": true, "tokens": "", "other": 409.0, "named": true, "own": titles("lot-9"),
			"old token": 403.0, "new token": "found", "removed": 404.0, "left": 0.0, "repeat": 410.0}},
		{"webhooks", map[string]any{"state": "disabled", "reason": "paused", "url": "https://receiver.example/new",
			"listed": 1.0, "rotated": true, "replayed": "unverified", "removed": 404.0}},
		{"429", map[string]any{"refusals": []any{429.0, 429.0}, "title": "Asset 1"}},
		{"503", map[string]any{"refusals": []any{503.0, 503.0}, "description": "four entrances"}},
		{"lost answers", map[string]any{"refusals": []any{503.0, 0.0}, "published": titles("Asset 1", "Asset 2")}},
		{"rate limit", map[string]any{"refused": true, "pages": 8.0}},
		{"follow through a restart", map[string]any{"interrupted": true,
			"seen": titles("Asset 1", "Asset 2", "Asset 3", "Asset 4", "Asset 5", "Asset 6")}},
		{"resume", titles("Asset 5", "Asset 6")},
		{"start over", map[string]any{"unheard": 404.0, "heard": 1.0, "first": "Asset 1"}},
	}
}

// planHash is the hash of the file that the clients upload.
func planHash() string {
	sum := md5.Sum(plan)
	return "md5:" + hex.EncodeToString(sum[:])
}

// plan is the file that the clients upload.
var plan = append([]byte("%PDF-1.4\n"), bytes.Repeat([]byte("x"), 1_000_000)...)

// refusedPage is the step "upload" of a web page with another origin, which is not allowed to upload (docs/files.md,
// D9).
var refusedPage = step{"upload", map[string]any{"refused": 403.0}}

// otherData is the step "other data", which only clients that can send cookies report.
var otherData = step{"other data", map[string]any{"unheard": 404.0, "heard": 1.0, "first": "Asset 1",
	"write": "five entrances"}}

func toAny(texts []string) []any {
	var all []any
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

// check compares the reported steps with the expected steps. It also checks that the client repeated requests as
// the contract demands.
func (s *stage) check(want []step) {
	s.t.Helper()
	expect.NoDiff(s.t, cmp.Diff(want, s.reported()), "steps")
	requests := s.proxy.requests()
	refusals := 0
	for i, r := range requests {
		if r.method == http.MethodPost && r.path == "/api/2.5/assets" && r.idempotency == "" {
			s.t.Errorf("request %d creates an asset: got no Idempotency-Key, want one", i)
		}
		if r.refused == 0 || i+1 == len(requests) {
			continue
		}
		refusals++
		next := requests[i+1]
		if next.method != r.method || next.path != r.path || next.idempotency != r.idempotency {
			s.t.Errorf("after a %d of %s %s %q: got %s %s %q, want the same request", r.refused,
				r.method, r.path, r.idempotency, next.method, next.path, next.idempotency)
		}
		if got := next.at.Sub(r.at); got < retryAfter*time.Second {
			s.t.Errorf("after a %d: got the next request after %v, want Retry-After (%d s) to pass", r.refused, got,
				retryAfter)
		}
	}
	expect.Equal(s.t, refusals, 5, "injected refusals and their repetitions")
}

// program runs a program in dir, and fails the test if the program fails. The parameter `env` has additional
// environment variables.
func program(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	path, err := lookPath(name)
	expect.OK(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: got %v, want success; it printed:\n%s", name, strings.Join(args, " "), err, text)
	}
	return string(text)
}

// env returns the environment variables for a program that runs the scenario.
func (s *stage) env() []string {
	return []string{"REGISTRY=" + s.api.URL, "CONTROL=" + s.control.URL, "PYTHONDONTWRITEBYTECODE=1"}
}

// example returns all code blocks in a language from the README in a folder. It replaces the address of the
// registry by the address of the proxy.
func (s *stage) example(folder, language string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "README.md"))
	expect.OK(s.t, err)
	var code []string
	for _, block := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		code = append(code, block[1])
	}
	if len(code) == 0 {
		s.t.Fatalf("got no example in %s of %s, want one", language, folder)
	}
	return strings.ReplaceAll(strings.Join(code, "\n"), "http://127.0.0.1:8080", s.api.URL)
}

// get reads a path of the registry without a client.
func (s *stage) get(path string) string {
	s.t.Helper()
	resp, err := http.Get(s.api.URL + path)
	expect.OK(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: got %d, %v, %s, want an answer", path, resp.StatusCode, err, text)
	}
	return string(bytes.TrimSpace(text))
}

// checkExample checks what an example has done in the registry, and that it printed the quantity.
func (s *stage) checkExample(printed string) {
	s.t.Helper()
	feed := s.get("/api/2.5/assets?opt_fields=description,owner")
	for _, want := range []string{`"description":"Перший поверх, два входи"`, `"owner":"broker3"`} {
		if !strings.Contains(feed, want) {
			s.t.Errorf("got no %s in the feed, want it in: %s", want, feed)
		}
	}
	if !strings.Contains(printed, "240.5") {
		s.t.Errorf("got no quantity, want 240.5 in: %s", printed)
	}
}
