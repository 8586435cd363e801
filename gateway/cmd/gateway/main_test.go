package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/identity"
)

func secretFile(t *testing.T, bytes int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(strings.Repeat("s", bytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRunRefusesWhatCannotWork(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	good := []string{"--addr", "127.0.0.1:0", "--secret-file", secretFile(t, identity.MinSecret)}
	done, cancel := context.WithCancel(t.Context())
	cancel() // whatever starts all the same stops at once
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"no secret", []string{"--addr", "127.0.0.1:0"}, "secret-file"},
		{"a secret too short", append(good, "--secret-file", secretFile(t, identity.MinSecret-1)), "secret"},
		{"an unknown flag", append(good, "--colour", "blue"), "colour"},
		{"assets at no URL", append(good, "--assets-url", "assets"), "asset service"},
		{"keys at no URL", append(good, "--auth-url", "auth"), "auth service"},
		{"a limit below 0", append(good, "--limit-key-read=-1"), "negative"},
		{"no network", append(good, "--trusted-proxies", "10.0.0.0/99"), "trusted-proxies"},
		{"a port that is busy", append(good, "--addr", busy.Addr().String()), "in use"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := run(done, c.args); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want it to say %q", err, c.says)
			}
		})
	}
}

func TestRunStopsWhenItIsTold(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	t.Setenv("GATEWAY_SECRET_FILE", secretFile(t, identity.MinSecret))
	if err := run(ctx, []string{"--addr", "127.0.0.1:0"}); err != nil {
		t.Error(err)
	}
}

func TestLimitsAreReadFromTheFile(t *testing.T) {
	for _, c := range []struct {
		name       string
		text, says string
	}{
		{"a table", "limits:\n  - {name: a, by: key, costs: {read: 1, list: 10}, windows: {1s: 100, 1m: 1000}}\nlimits-away: closed\n", ""},
		{"a named table", "limits: sandbox\nlimit-key-read: 5\n", ""},
		{"an unknown one", "limits: staging\n", "staging"},
		{"a faulty row", "limits:\n  - {name: a, by: moon, costs: {read: 1}, windows: {1s: 100}}\n", "moon"},
		{"an unknown mode", "limits-away: ajar\n", "ajar"},
		{"no Redis", "limits-redis: mysql://x\n", "Redis"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "c.yaml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			done, cancel := context.WithCancel(t.Context())
			cancel() // what starts stops at once
			err := run(done, []string{"--addr", "127.0.0.1:0", "--secret-file", secretFile(t, identity.MinSecret), "--config", file})
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want it to say %q", err, c.says)
			}
		})
	}
}

func TestCheckTellsAllThatIsWrongWithAFile(t *testing.T) {
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "gateway.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := "secret-file: " + secretFile(t, identity.MinSecret) + "\ndeprecated: {\"2.4\": 2026-01-31}\nlimits: production\n"
	if err := run(t.Context(), []string{"check", write(good)}); err != nil {
		t.Error(err)
	}
	bad := "secret-file: nowhere\nassets-url: assets\nlimit-key-read: -1\ntls-cert: alone\nsunset: {\"9\": soon}\n"
	err := run(t.Context(), []string{"check", write(bad)})
	for _, want := range []string{"nowhere", "asset service", "negative", "both the certificate and its key", "no version", "must look like"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
	for _, c := range []struct {
		text string
		want string
	}{{"colour: blue", "colour"}, {"limits: [", "config file"}, {"timeout: soon\n", "timeout"}} {
		if err := run(t.Context(), []string{"check", write(c.text)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.text, err)
		}
	}
}
