package registryctl

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

func TestFlagsOverrideTheEnvironmentAndTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	expect.OK(t, os.WriteFile(file, []byte("url: http://file\nkey: file\nadmin-url: http://file\nadmin-key: 0123\n"),
		0o600))
	t.Setenv("REGISTRYCTL_KEY", "environment")
	t.Setenv("REGISTRYCTL_ADMIN_URL", "http://environment")
	var c commands
	parser := expect.Get(newParser(&c, io.Discard))(t)
	expect.Get(parser.Parse([]string{"--config", file, "--admin-url", "http://flag", "keys", "list"}))(t)
	p := &program{}
	expect.OK(t, p.load(c))
	want := settings{URL: "http://file", Key: "environment", AdminURL: "http://flag", AdminKey: "0123"}
	expect.NoDiff(t, cmp.Diff(want, p.settings), "the settings differ")
}

func TestParseLimits(t *testing.T) {
	for _, c := range []struct {
		name  string
		texts []string
		want  map[string]map[string]int64 // nil: parsing fails
	}{
		{"two limits of a class", []string{"write:1s=5", "write:1m=100"},
			map[string]map[string]int64{"write": {"1s": 5, "1m": 100}}},
		{"the word none", []string{"none"}, map[string]map[string]int64{}},
		{"a limit that is not a number", []string{"write:1s=many"}, nil},
		{"a missing window", []string{"write=5"}, nil},
		{"an empty text", []string{""}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseLimits(c.texts)
			expect.ErrorIf(t, (err != nil) != (c.want == nil), "got error %v, want an error: %t", err, c.want == nil)
			expect.NoDiff(t, cmp.Diff(c.want, got), "the limits differ")
		})
	}
}

func TestParseEnd(t *testing.T) {
	want := time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)
	if got, err := parseEnd("2027-01-31T02:00:00+02:00"); err != nil || got != want {
		t.Errorf("a time: got %v, %v, want %v", got, err, want)
	}
	if got, err := parseEnd("never"); got != nil || err != nil {
		t.Errorf("never: got %v, %v, want nil", got, err)
	}
	if got, err := parseEnd("1h"); err != nil || time.Until(got.(time.Time)).Round(time.Minute) != time.Hour {
		t.Errorf("1h: got %v, %v, want an hour from now", got, err)
	}
	if got, err := parseEnd("tomorrow"); err == nil {
		t.Errorf("tomorrow: got %v, want an error", got)
	}
}

func TestPrintReplacesControlCharacters(t *testing.T) {
	var out strings.Builder
	p := &program{out: &out, output: asTable}
	expect.OK(t, p.print(nil, row{"NAME"}, row{"\x1b[31mred\tТОВ\u009b"}, row{""}))
	expect.Equal(t, out.String(), "NAME\n?[31mred?ТОВ?\n-\n", "")
}

// adminAPI starts a server that answers every request with text. It returns the flags that make registryctl use
// this server, and the list of requests that the server receives.
func adminAPI(t *testing.T, text string) (flags []string, requests *[]string) {
	requests = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.Try(t, err)
		*requests = append(*requests, r.Method+" "+r.URL.Path+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return []string{"--admin-url", server.URL, "--admin-key", "secret"}, requests
}

// run runs a command line without a config file.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	var out strings.Builder
	err := Run(context.Background(), args, strings.NewReader(""), &out, io.Discard)
	return out.String(), err
}

func TestAnUnfinishedCommandLinePrintsHelp(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no command", nil, "keys <command>"},
		{"only a group of commands", []string{"keys"}, "keys rotate <id>"},
		{"a group of commands and a flag", []string{"keys", "--url", "http://x"}, "keys rotate <id>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := run(t, c.args...); err != nil || !strings.Contains(got, c.want) {
				t.Errorf("got %q, %v, want help with %q", got, err, c.want)
			}
		})
	}
}

func TestTheErrorOfAWrongCommandLineNamesTheFault(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no argument", []string{"keys", "get"}, "keys get takes 1 argument: ID"},
		{"two arguments", []string{"keys", "get", "a", "b"}, "unexpected argument b"},
		{"an unknown command", []string{"keys", "dance"}, "dance"},
		{"an unknown flag", []string{"keys", "list", "--dance"}, "--dance"},
		{"a flag without a value", []string{"keys", "list", "--search"}, "--search needs a value"},
		{"a short flag without a value", []string{"keys", "list", "-o"}, "-o needs a value"},
		{"an unknown output format", []string{"keys", "list", "-o", "xml"}, "table or json"},
		{"a missing flag", []string{"assets", "create"}, "--file"},
		{"no admin key", []string{"keys", "list"}, "no API key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := run(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, %v, want an error with %q", got, err, c.want)
			}
		})
	}
}

func TestCommandsSendOnlyTheGivenFlags(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"a new key has defaults", []string{"keys", "create", "--broker", "acme"},
			`POST /admin/v1/keys {"data":{"broker":"acme","levels":"1234","name":"","role":"broker"}}`},
		{"a new operator has no levels", []string{"keys", "create", "--role", "operator", "--name", "-n"},
			`POST /admin/v1/keys {"data":{"broker":"","name":"-n","role":"operator"}}`},
		{"a change of lists", []string{"keys", "change", "k/1", "--limit", "none", "--allow", "any", "--expires",
			"never"},
			`PATCH /admin/v1/keys/k/1 {"data":{"allow":null,"expires":null,"limits":{}}}`},
		{"an empty text and a false flag", []string{"keys", "change", "k", "--name", "", "--test=false"},
			`PATCH /admin/v1/keys/k {"data":{"name":"","test":false}}`},
		{"repeated flags with commas", []string{"keys", "change", "k", "--allow", "a,b", "--allow", "c"},
			`PATCH /admin/v1/keys/k {"data":{"allow":["a,b","c"]}}`},
		{"an unblocked broker", []string{"brokers", "change", "acme", "--blocked=false", "--contact", ""},
			`PATCH /admin/v1/brokers/acme {"data":{"blocked":false,"contact":""}}`},
		{"a rotation", []string{"keys", "rotate", "k", "--grace", "24h"},
			`POST /admin/v1/keys/k/rotate {"data":{"grace":"24h0m0s"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			flags, requests := adminAPI(t, `{"data":{}}`)
			expect.Get(run(t, append(flags, c.args...)...))(t)
			expect.NoDiff(t, cmp.Diff([]string{c.want}, *requests), "the requests differ")
		})
	}
}

func TestCompletionOfBrokers(t *testing.T) {
	flags, _ := adminAPI(t, `{"data":[{"name":"acme","title":"Acme Ltd"},{"name":"Дім","title":""},{"name":"two words"}]}`)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}))
	defer silent.Close()
	for _, c := range []struct {
		name  string
		words []string
		want  string
	}{
		{"the value of a flag", append(flags, "keys", "list", "--broker", ""), "acme\tAcme Ltd\nДім\t\n"},
		{"the broker of a new key", append(flags, "keys", "create", "--role", "broker", "--broker", "a"),
			"acme\tAcme Ltd\n"},
		{"an argument", append(flags, "brokers", "get", "Д"), "Дім\t\n"},
		{"nothing for a new broker", append(flags, "brokers", "create", ""), ""},
		{"nothing without an API key", []string{"keys", "list", "--broker", ""}, ""},
		{"nothing after a second without an answer",
			[]string{"--admin-url", silent.URL, "--admin-key", "k", "keys", "list", "--broker", ""}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := run(t, append([]string{"__complete"}, c.words...)...)
			expect.ErrorIf(t, err != nil || got != c.want, "got %q, %v, want %q", got, err, c.want)
		})
	}
}

func TestComplete(t *testing.T) {
	flags, _ := adminAPI(t, `{"data":[{"id":"key-1","broker":"acme","name":"first"},{"id":"$(rm)"},{"id":"other"}]}`)
	for _, c := range []struct {
		name  string
		words []string
		want  string
	}{
		{"commands", []string{"k"}, "keys\tManage API keys.\n"},
		{"subcommands", []string{"keys", "ro"},
			"rotate\tGive a key a new secret and print it. The secret cannot be shown again.\n"},
		{"flags", []string{"keys", "list", "--st"},
			"--state\tList only active, expired, revoked or blocked keys.\n"},
		{"values of a flag", []string{"-o", ""}, "table\t\njson\t\n"},
		{"key ids that need no quotes", append(flags, "keys", "get", ""), "key-1\tacme first\nother\t \n"},
		{"key ids with the typed beginning", append(flags, "keys", "get", "key"), "key-1\tacme first\n"},
		{"roles", []string{"keys", "create", "--role", "con"}, "concierge\t\n"},
		{"states of keys", []string{"keys", "list", "--state", "e"}, "expired\t\n"},
		{"no second key id", append(flags, "keys", "get", "key-1", ""), ""},
		{"no value of a free flag", []string{"keys", "list", "--search", ""}, ""},
		{"nothing after an unknown command", []string{"dance", ""}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := run(t, append([]string{"__complete"}, c.words...)...)
			expect.ErrorIf(t, err != nil || got != c.want, "got %q, %v, want %q", got, err, c.want)
		})
	}
}
