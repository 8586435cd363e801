package registryctl

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry.example/client"
	"asset-registry/shared/command"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/testing/expect"
)

const refusedBody = `{"status":"error","errors":[{"location":"url","name":"NAME","description":"No\u202e\u009b31m"}]}`

// TestExitCodesTellWhoMustAct runs commands that fail for different reasons. The exit code must depend on who has to
// act.
func TestExitCodesTellWhoMustAct(t *testing.T) {
	server := func(status int, name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(status)
			if name != "" {
				w.Write([]byte(strings.Replace(refusedBody, "NAME", name, 1)))
			}
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	admin := func(url string, args ...string) []string {
		return append([]string{"--admin-url", url, "--admin-key", "k"}, args...)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"an unknown flag", []string{"--nope"}, 2, "nope"},
		{"no value", []string{"keys", "get"}, 2, "1 argument"},
		{"an unknown output", []string{"-o", "xml", "me"}, 2, "--output"},
		{"no key", []string{"me"}, 2, "REGISTRYCTL_KEY"},
		{"no key of an operator", []string{"keys", "list"}, 2, "REGISTRYCTL_ADMIN_KEY"},
		{"no change of a broker", admin(gone.URL, "brokers", "change", "b"), 2, "nothing to change"},
		{"no change of a key", admin(gone.URL, "keys", "change", "k"), 2, "nothing to change"},
		{"a limit of another form", admin(gone.URL, "keys", "change", "k", "--limit", "x"), 2, "CLASS:WINDOW"},
		{"revisions in the wrong order", []string{"--url", gone.URL, "--key", "k", "erase", "a", "--revision", "3",
			"--through", "2"}, 2, "want numbers"},
		{"nothing listens", admin(gone.URL, "keys", "list"), 3, "nothing listens there"},
		{"a proxy without the admin API", admin(server(502, ""), "keys", "list"), 3, "in front of the admin API"},
		{"the admin API is down", admin(server(503, "store"), "keys", "list"), 3, "503"},
		{"the public address", admin(server(404, "not_found"), "keys", "list"), 1, "no admin API"},
		{"another server", admin(server(404, ""), "keys", "list"), 1, "is not the admin API"},
		{"another status", admin(server(203, "key"), "keys", "list"), 1, "203"},
		{"no JSON", admin(server(200, ""), "keys", "list"), 1, "is not the admin API's"},
		{"an unknown key", admin(server(404, "key"), "keys", "usage", "nope"), 1, "404"},
		{"an unknown broker", admin(server(404, "broker"), "keys", "list", "--broker", "nope"), 1, "404"},
		{"a refusal", admin(server(403, "permission"), "keys", "list"), 1, "No??31m"},
	} {
		_, err := run(t, c.args...)
		if err == nil || ExitCode(err) != c.code || !strings.Contains(command.Words(err), c.says) {
			t.Errorf("%s: got %v and the code %d, want %q and %d", c.name, err, ExitCode(err), c.says, c.code)
		}
	}
	expect.Equal(t, ExitCode(nil), 0, "no error")
}

// TestNoControlCharactersOfAServerArePrinted puts control characters into answers, for each kind of output. None
// of them may be printed.
func TestNoControlCharactersOfAServerArePrinted(t *testing.T) {
	const bad = "a\u0000\u0007\u001b[31m\u007f\u0085\u009b\u061c\u200e\u202e\u2066\u2028b"
	for _, output := range []string{asTable, asJSON} {
		var out, errOut strings.Builder
		p := &program{out: &out, errOut: &errOut, output: output}
		expect.OK(t, errors.Join(
			p.print(map[string]string{"name": bad}, row{"NAME"}, row{bad}),
			p.printJSON(map[string]string{"name": bad}, ""), p.note("a note: %s", bad), p.say("a line: %s", bad),
			p.printChanges([]client.Asset{{ID: bad, Title: bad, Owner: bad}}),
		))
		for _, text := range []string{out.String(), errOut.String()} {
			if at := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && command.IsControl(r) }); at >= 0 {
				t.Errorf("%s: got the control character %+q, want none, in %+q", output, text[at:at+1], text)
			}
		}
	}
	for _, text := range []string{`{"a":"\u0000` + "\u009b\u202e\u007f" + `"}`, "{\n\t\"a\": \"b\"\n}\n"} {
		var before, after map[string]string
		expect.OK(t, errors.Join(json.Unmarshal([]byte(text), &before), json.Unmarshal(escaped([]byte(text)), &after)))
		if before["a"] != after["a"] {
			t.Errorf("%q: got %q, want the same value", text, after["a"])
		}
	}
}

// TestAnInterruptedCreationGetsItsTokens loses the answer to a creation, and repeats the command. The second run
// must get the tokens.
func TestAnInterruptedCreationGetsItsTokens(t *testing.T) {
	var keys []string
	lost := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if lost {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set(httpserver.RequestIDHeader, "r")
		w.Write([]byte(`{"data":{"id":"a1","status":"draft"},"access":{"token":"tok1","transfer":"tra1"}}`))
	}))
	defer s.Close()
	dir := t.TempDir()
	asset, access := filepath.Join(dir, "asset.json"), filepath.Join(dir, "access.json")
	expect.OK(t, os.WriteFile(asset, []byte(`{}`), 0o600))
	create := []string{"--url", s.URL, "--key", "k", "assets", "create", "-f", asset, "--access", access}
	if _, err := run(t, create...); err == nil || !strings.Contains(err.Error(), "within 24 hours") {
		t.Fatalf("the lost answer: got %v, want what to do", err)
	}
	if _, err := run(t, append(create, "--once", "other")...); err == nil || ExitCode(err) != 2 {
		t.Errorf("another idempotency key: got %v, want an error of the command line", err)
	}
	lost = false
	expect.Get(run(t, create...))(t)
	held, err := readAccess(access, "a1")
	expect.ErrorIf(t, err != nil || held.Access.Token != "tok1", "got %+v, %v, want the tokens in the file", held, err)
	for _, key := range keys {
		expect.ErrorIf(t, key == "" || key != keys[0], "got the idempotency keys %q, want the same each time", keys)
	}
	expect.SaysOf(t, "exists", "a file with tokens")(run(t, create...))
	lost = true
	_, err = run(t, create[:len(create)-2]...)
	expect.ErrorIf(t, err == nil || !strings.Contains(err.Error(), "--once "+keys[len(keys)-1]),
		"without a file: got %v, want the idempotency key to repeat with", err)
}

func TestTheHelpOfSyncShowsTheCommandThatItStandsFor(t *testing.T) {
	got := helpText(t, "sync")
	for _, says := range []string{"<dir>", "--once", "--verify", "sync export"} {
		expect.ErrorIf(t, !strings.Contains(got, says), "got %s, want %q in it", got, says)
	}
}

// helpText returns the text that --help prints for a command.
func helpText(t *testing.T, command string) string {
	t.Helper()
	var c commands
	var out strings.Builder
	parser := expect.Get(newParser(&c, &out))(t)
	parser.Exit = func(int) {}
	_, _ = parser.Parse([]string{command, "--help"}) // Parse continues after the help, because Exit does nothing
	return out.String()
}
