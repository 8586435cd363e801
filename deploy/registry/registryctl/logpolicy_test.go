package registryctl

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/logclient"
	"asset-registry/shared/logkey"
	"asset-registry/shared/translog"
)

// policyArguments returns the command line that makes a policy with two witnesses.
func policyArguments(dir string, addresses ...string) []string {
	arguments := []string{"log", "policy", filepath.Join(dir, "log.policy"), "--log-key", filepath.Join(dir, "log.key"),
		"--owner", strconv.Itoa(os.Getuid())}
	for i, address := range addresses {
		arguments = append(arguments, "--witness", filepath.Join(dir, "w"+strconv.Itoa(i+1))+"="+address)
	}
	return arguments
}

func TestPolicyMakesWitnessesThatCosign(t *testing.T) {
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "log.key")
	if err := logkey.Create(keyFile, "registry.example/log"); err != nil {
		t.Fatal(err)
	}
	one, two := freeAddress(t), freeAddress(t)
	text, err := run(t, policyArguments(dir, "http://"+one, "http://"+two)...)
	if err != nil || strings.Contains(text, "PRIVATE") {
		t.Fatalf("got %q, %v, want a policy", text, err)
	}
	for i, address := range []string{one, two} {
		own := filepath.Join(dir, "w"+strconv.Itoa(i+1))
		startWitness(t, witnessArguments(own, address, filepath.Join(own, "policy"))...)
		waitFor(t, "http://"+address+"/readyz")
	}
	policy, err := logclient.ReadPolicy(filepath.Join(dir, "log.policy"))
	if err != nil {
		t.Fatal(err)
	}
	witnesses, err := logclient.NewWitnesses(policy, nil, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer witnesses.Close()
	keys, err := logkey.Read(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	empty := translog.Checkpoint{Origin: "registry.example/log", Root: translog.Tree{}.Root()}
	signed, err := translog.Sign(empty, keys...)
	if err != nil {
		t.Fatal(err)
	}
	noProof := func(context.Context, int64) ([]tlog.Hash, error) { return nil, nil }
	got := witnesses.Cosign(t.Context(), signed, 0, noProof)
	if !got.Quorum || len(got.Faults) > 0 {
		t.Errorf("got the quorum %t and %v, want two cosignatures", got.Quorum, got.Faults)
	}
}

// startWitness runs a witness until the test ends.
func startWitness(t *testing.T, arguments ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, arguments, strings.NewReader(""), io.Discard, io.Discard) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("got %v of the witness at its end, want none", err)
		}
	})
}

// TestPolicyFollowsTheKeysOfTheLog makes the policy again after the log has a new key. The witnesses must keep
// their keys.
func TestPolicyFollowsTheKeysOfTheLog(t *testing.T) {
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "log.key")
	if err := logkey.Create(keyFile, "registry.example/log"); err != nil {
		t.Fatal(err)
	}
	arguments := policyArguments(dir, "http://w1:8090", "http://w2:8090")
	before, err := run(t, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	if err := logkey.Rotate(keyFile); err != nil {
		t.Fatal(err)
	}
	keys, err := logkey.Read(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	want := "log " + keys[0].Public().String() + "\n" + before
	if _, err := run(t, arguments...); err != nil {
		t.Fatal(err)
	}
	logs := "log " + keys[0].Public().String() + "\nlog " + keys[1].Public().String() + "\nquorum none\n"
	for file, want := range map[string]string{"log.policy": want, "w1/policy": logs, "w2/policy": logs} {
		got, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", file, diff)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "w1/key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v of the key, want mode 0600", info, err)
	}
}

func TestPolicyRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := logkey.Create(filepath.Join(dir, "log.key"), "registry.example/log"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, witness, want string }{
		{"a witness without an address", filepath.Join(dir, "w1"), "DIR=ADDRESS"},
		{"a witness without a directory", "=http://w1", "DIR=ADDRESS"},
		{"a name that a policy cannot have", filepath.Join(dir, "w 1") + "=http://w1", "malformed key"},
		{"an address of two words", filepath.Join(dir, "w1") + "=http://w1 http://w2", "not a line of a policy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := run(t, append(policyArguments(dir), "--witness", c.witness)...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "log.policy")); err == nil {
				t.Error("got a policy, want none")
			}
		})
	}
}

func TestHealth(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	if _, err := run(t, "health", server.URL+"/readyz"); err != nil {
		t.Errorf("got %v of a ready witness, want none", err)
	}
	status = http.StatusServiceUnavailable
	if _, err := run(t, "health", server.URL+"/readyz"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("got %v of one that is not ready, want its status", err)
	}
	server.Close()
	if _, err := run(t, "health", server.URL+"/readyz"); err == nil {
		t.Error("got no error without a server, want one")
	}
}
