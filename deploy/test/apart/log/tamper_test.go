package log

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

var (
	tamperings = flag.Int("tamperings", 500, "the number of random tamperings of a log")
	leaves     = flag.Int64("leaves", 100000, "the size of the log for the test of memory")
)

// longer describes the tampering that appends a byte.
const longer = "a byte more"

// tampering changes one file of a log.
type tampering struct {
	name string
	data []byte // nil if the file is removed
	what string
}

// tamper returns a random tampering of a log's files.
func tamper(random *rand.Rand, names []string, content map[string][]byte) tampering {
	name := names[random.IntN(len(names))]
	data := bytes.Clone(content[name])
	at := random.IntN(len(data))
	switch random.IntN(6) {
	case 0:
		return tampering{name, data[:at], fmt.Sprintf("cut at byte %d", at)}
	case 1:
		return tampering{name, append(data, byte(random.IntN(256))), longer}
	case 2:
		other := content[names[random.IntN(len(names))]]
		if !bytes.Equal(other, data) {
			return tampering{name, other, "swapped"}
		}
		return tampering{name, nil, "removed"}
	case 3:
		to := min(at+32, len(data))
		if to-at == 32 && at >= 32 && !bytes.Equal(data[at:to], data[at-32:at]) {
			swapped := append(append(bytes.Clone(data[:at-32]), data[at:to]...), data[at-32:at]...)
			return tampering{name, append(swapped, data[to:]...), fmt.Sprintf("two hashes swapped at byte %d", at)}
		}
		return tampering{name, nil, "removed"}
	default:
		data[at] ^= byte(1 + random.IntN(255))
		return tampering{name, data, fmt.Sprintf("byte %d", at)}
	}
}

// apply carries out a tampering, and returns a function that undoes it.
func (m *made) apply(t testing.TB, change tampering) func() {
	t.Helper()
	path := filepath.Join(m.dir, filepath.FromSlash(change.name))
	good, err := os.ReadFile(path)
	expect.OK(t, err)
	if change.data == nil {
		expect.OK(t, os.Remove(path))
	} else {
		m.write(t, change.name, change.data)
	}
	return func() { m.write(t, change.name, good) }
}

// content returns the names and the contents of the log's files.
func (m *made) content(t testing.TB) (names []string, content map[string][]byte) {
	t.Helper()
	content = map[string][]byte{}
	names = m.files(t)
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(m.dir, filepath.FromSlash(name)))
		expect.OK(t, err)
		content[name] = data
	}
	return names, content
}

// TestEachVerifierFindsTamperings applies random tamperings to a log. Our verifier must find all of them. The
// programs verify.py and fsck get only some of the tamperings, and must find these.
// Promises: verify-parts
func TestEachVerifierFindsTamperings(t *testing.T) {
	m := newLog(t, 600)
	prefix := m.serve(t)
	names, content := m.content(t)
	policy := file(t, "policy", []byte(strings.Replace(m.policy(), "group two 2", "group two 3", 1)))
	text, err := os.ReadFile(policy)
	expect.OK(t, err)
	parsed, err := translog.ParsePolicy(text)
	expect.OK(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range *tamperings {
		change := tamper(random, names, content)
		back := m.apply(t, change)
		if _, err := (translog.Verifier{Policy: parsed}).Verify(t.Context(), m); err == nil {
			t.Errorf("got no error of ours for %s: %s", change.name, change.what)
		}
		if n < 25 {
			if _, err := python(t, "--policy", policy, m.dir); err == nil {
				t.Errorf("got no error of verify.py for %s: %s", change.name, change.what)
			}
		}
		// Leave out the tamperings that fsck cannot find: it does not know witnesses, and it accepts stray bits in base64
		// and stray bytes in partial tiles.
		if n < 100 && change.name != "checkpoint" && change.what != longer {
			if err := m.check(t, prefix); err == nil {
				t.Errorf("got no error of fsck for %s: %s", change.name, change.what)
			}
		}
		back()
	}
	if _, err := (translog.Verifier{Policy: parsed}).Verify(t.Context(), m); err != nil {
		t.Errorf("got %v of the log as it was, want none", err)
	}
}

// TestEachVerifierFindsASignedFork keeps a checkpoint of a log, and then rewrites the log and signs it again, as
// the log's owner could. Each verifier must report the fork.
func TestEachVerifierFindsASignedFork(t *testing.T) {
	m := newLog(t, 1000)
	older := m.checkpoint
	remembered := m.signed(t)
	for _, index := range []int64{0, 255, 256, 999} {
		fork := newLog(t, 0)
		fork.rewrite(t, 1300, index)
		v := translog.Verifier{Policy: fork.parsed(t), Remembered: older}
		if _, err := v.Verify(t.Context(), fork); !errors.Is(err, translog.ErrConsistency) {
			t.Errorf("got %v of ours, want %v", err, translog.ErrConsistency)
		}
		path := file(t, "remembered", remembered)
		if _, err := python(t, "--key", m.key.Public().String(), "--remember", path, fork.dir); err == nil {
			t.Errorf("got no error of verify.py with leaf %d changed, want one", index)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, remembered) {
			t.Errorf("got %s, %v, want the checkpoint from before", got, err)
		}
	}
}

func TestEachVerifierFindsTamperedProofs(t *testing.T) {
	m := newLog(t, 5000)
	policy := file(t, "policy", []byte(strings.Replace(m.policy(), "group two 2", "group two 3", 1)))
	good := m.proof(t, 3002).Encode()
	random := rand.New(rand.NewPCG(3, 4))
	for range 25 {
		damaged := bytes.Clone(good)
		at, bit := random.IntN(len(good)), byte(1)<<random.IntN(8)
		damaged[at] ^= bit
		if got, err := python(t, "--policy", policy, "--proof", file(t, "x.tlog-proof", damaged)); err == nil {
			t.Errorf("got %q of verify.py with byte %d changed by %d, want an error", got, at, bit)
		}
	}
}

// TestALargeLogIsVerifiedInLittleMemory measures the heap while a log is verified. The heap must stay below 64 MiB.
func TestALargeLogIsVerifiedInLittleMemory(t *testing.T) {
	const most = 64 << 20
	m := newLog(t, *leaves)
	runtime.GC()
	var peak uint64
	v := translog.Verifier{Policy: m.parsed(t), Ahead: 8, Leaf: func(index int64, _ translog.Leaf) error {
		if index%5000 == 0 {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			peak = max(peak, stats.HeapInuse+stats.StackInuse)
		}
		return nil
	}}
	start := time.Now()
	got, err := v.Verify(t.Context(), m)
	if err != nil || got.Size != *leaves {
		t.Fatalf("got %+v, %v, want %d leaves", got, err, *leaves)
	}
	if peak > most {
		t.Errorf("got %d bytes of memory for %d leaves, want at most %d", peak, *leaves, most)
	}
	t.Logf("%d leaves in %s, at most %d KiB of memory", *leaves, time.Since(start).Round(time.Millisecond), peak>>10)
}
