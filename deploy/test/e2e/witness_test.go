package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/logclient"
	"asset-registry/shared/logkey"
	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// TestWitnesses starts a registry whose policy requires both of two witnesses, which others wrote. While one of them is
// killed, the registry must publish no checkpoint. When this witness is back, the registry must go on.
func TestWitnesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := expect.Get(logkey.ReadOrCreate(filepath.Join(dir, "log.key"), "registry.example"))(t)
	first, second := newWitness(t, "witness.example/w1", keys[0].Public()), newWitness(t, "witness.example/w2", keys[0].Public())
	file := filepath.Join(dir, "policy")
	text := fmt.Sprintf("log %s\nwitness w1 %s http://%s\nwitness w2 %s http://%s\ngroup both all w1 w2\nquorum both\n",
		keys[0].Public(), first.key, first.addr, second.key, second.addr)
	expect.OK(t, os.WriteFile(file, []byte(text), 0o600))
	policy := expect.Get(logclient.ReadPolicy(file))(t)
	addr, output := freeAddr(t), &processes.Output{}
	standalone(t, addr, filepath.Join(dir, "data"), output,
		"--log-key-file", filepath.Join(dir, "log.key"), "--log-policy", file)
	a := api{"http://" + addr, "2.5"}
	a.publish(t, validAsset())
	signed := a.cosigned(t, policy, 1)
	equal(t, "witnesses of the first checkpoint", len(signed.Cosigners), 2)

	expect.OK(t, second.Kill())
	a.publish(t, validAsset())
	expect.OK(t, output.Await(t.Context(), "witnesses do not cosign the public log"))
	equal(t, "size of the log without a witness", a.checkpoint(t).Size, int64(1))

	second.start(t)
	a.cosigned(t, policy, 2)
}

// litewitness is a witness that others wrote, as a process.
type litewitness struct {
	*processes.Process
	dir, name, addr string
	key             string // its public key
}

// runLitewitness runs litewitness below an agent of SSH that has its secret key. The agent ends after litewitness.
const runLitewitness = `cd "$2" && [ -e key ] || ssh-keygen -q -t ed25519 -N "" -f key
ssh-add -q key && exec "$1" -ssh-agent "$SSH_AUTH_SOCK" -key "$(ssh-keygen -lf key | cut -d " " -f 2)" \
	-db db -name "$3" -listen "$4"`

// addLog lets litewitness know a log, as its program witnessctl does. The arguments are the database, the origin, the
// root of no leaves, and the public key.
const addLog = `import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db:
    db.execute("INSERT INTO log (origin, tree_size, tree_hash) VALUES (?, 0, ?)", sys.argv[2:4])
    db.execute("INSERT INTO key (origin, key) VALUES (?, ?)", (sys.argv[2], sys.argv[4]))
`

// newWitness starts a witness for a log.
func newWitness(t *testing.T, name string, log translog.PublicKey) *litewitness {
	t.Helper()
	w := &litewitness{dir: t.TempDir(), name: name, addr: freeAddr(t)}
	output := w.start(t)
	said, err := exec.Command("python3", "-c", addLog, filepath.Join(w.dir, "db"), log.Name(),
		translog.Tree{}.Root().String(), log.String()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	_, key, _ := strings.Cut(output.String(), " vkey=")
	w.key, _, _ = strings.Cut(key, "\n")
	return w
}

// start starts the witness with what it remembers.
func (w *litewitness) start(t *testing.T) *processes.Output {
	t.Helper()
	output := &processes.Output{}
	w.Process = expect.Get(processes.StartAny(t.Context(), w.addr, output, "ssh-agent", "sh", "-c", runLitewitness, "sh",
		needtest.Tool(t, "litewitness"), w.dir, w.name, w.addr))(t)
	killAtEnd(t, w.Process, output)
	return output
}

// cosigned waits for a checkpoint of the given size, which the policy must accept.
func (a api) cosigned(t *testing.T, policy *translog.Policy, size int64) translog.Signed {
	t.Helper()
	for deadline := time.Now().Add(checkpointWithin); ; time.Sleep(100 * time.Millisecond) {
		if body, _ := a.logFile(t, "checkpoint"); body != nil {
			signed, err := policy.Open(body)
			if err != nil {
				t.Fatalf("got a checkpoint that the policy refuses: %v\n%s", err, body)
			}
			if signed.Size == size {
				return signed
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("got no checkpoint of %d leaves within %s", size, checkpointWithin)
		}
	}
}
