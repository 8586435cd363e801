package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

// TestNoSecretIsLoggedOrStored sends right and wrong secrets in every place where a request can carry them. The
// services log at debug level. No secret may be in a log or a store.
// Promises: tokens-once
func TestNoSecretIsLoggedOrStored(t *testing.T) {
	t.Parallel()
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
			secrets := sendSecrets(t, a)
			a.do(t, call{method: "GET", path: "/assets"}.with("X-Request-ID", "the-last-one")).must(t, 200)
			log := await(t, output, "the-last-one")
			if got := strings.Count(log, `"request"`); got < 100 {
				t.Fatalf("got %d requests in the log, want at least 100: %s", got, log)
			}
			stored := readStores(t, dir)
			for _, secret := range secrets {
				if strings.Contains(log, secret) {
					t.Errorf("got the secret %s in the log, want no secret there", secret)
				}
				if strings.Contains(stored, secret) {
					t.Errorf("got the secret %s in a store, want no secret there", secret)
				}
			}
		})
	}
}

// sendSecrets sends secrets in requests of every method, and checks that no answer repeats them. It returns all
// secrets that the registry must neither log nor store.
func sendSecrets(t *testing.T, a api) (secrets []string) {
	const canary = "canary0123456789"
	c := a.publish(t, validAsset())
	keyed := a.do(t, call{method: "POST", path: "/assets", key: "broker", body: data(validAsset())}.
		with("Idempotency-Key", "once")).must(t, 201)
	send := func(method, path, token, authorization string) {
		body := data(fields{"description": "x"})
		body["access"] = fields{"token": token}
		got := a.do(t, call{method: method, path: path + "?acc_token=" + token, token: token, body: body}.
			with("Authorization", authorization))
		if got.status >= 400 && (strings.Contains(got.text, canary) || strings.Contains(got.text, c.token)) {
			t.Errorf("%s %s: got a secret in the answer, want none: %s", method, path, got.text)
		}
	}
	headers := []string{basic("broker:"), basic(canary + ":"), "Bearer " + canary, "Basic " + canary, canary}
	for _, path := range []string{"/assets", "/assets/" + c.id, "/assets/" + strings.Repeat("0", 32),
		"/assets/" + c.id + "/nothing"} {
		for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE"} {
			for _, token := range []string{c.token, canary} {
				for _, authorization := range headers {
					send(method, path, token, authorization)
				}
			}
		}
	}
	return []string{c.token, text(at(keyed.json["access"], "token")), text(at(keyed.json["access"], "transfer")),
		text(at(a.create(t, validAsset()).json["access"], "transfer")), canary, basic(canary), basic(canary + ":")}
}

// readStores returns the bytes of the files in dir that store assets, tokens and files.
func readStores(t *testing.T, dir string) (stored string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil || len(files) != 3 {
		t.Fatalf("got the stores %v, %v, want three", files, err)
	}
	for _, file := range files {
		text := expect.Get(os.ReadFile(file))(t)
		stored += string(text)
	}
	return stored
}
