package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// secretFile writes a file with a secret of the given number of bytes.
func secretFile(t *testing.T, bytes int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	expect.OK(t, os.WriteFile(file, []byte(strings.Repeat("s", bytes)), 0o600))
	return file
}

func TestRunRefusesWhatCannotWork(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	defer busy.Close()
	good := []string{"--addr", "127.0.0.1:0", "--secret-file", secretFile(t, identity.MinSecret)}
	done, cancel := context.WithCancel(t.Context())
	cancel() // so that a gateway that starts by mistake stops immediately
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"no secret", []string{"--addr", "127.0.0.1:0"}, "secret-file"},
		{"a secret that is too short", append(good, "--secret-file", secretFile(t, identity.MinSecret-1)), "secret"},
		{"an unknown flag", append(good, "--colour", "blue"), "colour"},
		{"a malformed assets-url", append(good, "--assets-url", "assets"), "--assets-url: want"},
		{"a malformed auth-url", append(good, "--auth-url", "auth"), "--auth-url: want"},
		{"a negative limit", append(good, "--limit-key-read=-1"), "0 or more"},
		{"a malformed trusted-proxies", append(good, "--trusted-proxies", "10.0.0.0/99"), "trusted-proxies"},
		{"a port in use", append(good, "--addr", busy.Addr().String()), "in use"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Says(t, run(done, c.args), c.says, "")
		})
	}
}

func TestRunStopsWhenItIsTold(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	t.Setenv("GATEWAY_SECRET_FILE", secretFile(t, identity.MinSecret))
	expect.Try(t, run(ctx, []string{"--addr", "127.0.0.1:0"}))
}

func TestLimitsAreReadFromTheFile(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"a table", "limits:\n  - {name: a, by: key, costs: {read: 1, list: 10}, windows: {1s: 100, 1m: 1000}}\n" +
			"limits-away: closed\n", ""},
		{"a named table", "limits: sandbox\nlimit-key-read: 5\n", ""},
		{"an unknown named table", "limits: staging\n", "staging"},
		{"a malformed row", "limits:\n  - {name: a, by: moon, costs: {read: 1}, windows: {1s: 100}}\n", "moon"},
		{"an unknown limits-away", "limits-away: ajar\n", "ajar"},
		{"a limits-redis of another scheme", "limits-redis: mysql://x\n", "Redis"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "c.yaml")
			expect.OK(t, os.WriteFile(file, []byte(c.text), 0o600))
			done, cancel := context.WithCancel(t.Context())
			cancel() // so that a gateway that starts stops immediately
			secret := secretFile(t, identity.MinSecret)
			err := run(done, []string{"--addr", "127.0.0.1:0", "--secret-file", secret, "--config", file})
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q in it, or no error if that is empty", err, c.says)
			}
		})
	}
}

func TestCheckTellsAllThatIsWrongWithAFile(t *testing.T) {
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "gateway.yaml")
		expect.OK(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	good := "secret-file: " + secretFile(t, identity.MinSecret) +
		"\ndeprecated: {\"2.4\": 2026-01-31}\nlimits: production\n"
	expect.Err(t, run(t.Context(), []string{"check", write(good)}), nil, "a good file")
	bad := "secret-file: nowhere\nassets-url: assets\nlimit-key-read: -1\ntls-cert: alone\nsunset: {\"9\": soon}\n"
	err := run(t.Context(), []string{"check", write(bad)})
	for _, want := range []string{
		"nowhere", "--assets-url", "0 or more", "both the certificate and its key", "no version", "must look like",
	} {
		expect.Says(t, err, want, "")
	}
	for _, c := range []struct{ text, want string }{
		{"colour: blue", "colour"}, {"limits: [", "config file"}, {"timeout: soon\n", "timeout"},
	} {
		err := run(t.Context(), []string{"check", write(c.text)})
		expect.Says(t, err, c.want, "%s", c.text)
	}
}
