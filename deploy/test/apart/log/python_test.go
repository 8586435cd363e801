package log

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// python runs verify.py and returns its output. The error contains the output on stderr.
func python(t testing.TB, arguments ...string) (string, error) {
	t.Helper()
	needtest.Commands(t, "python3", "openssl")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "python3", append([]string{"-W", "error", "verify.py"}, arguments...)...)
	var printed, complaint bytes.Buffer
	command.Stdout, command.Stderr = &printed, &complaint
	if err := command.Run(); err != nil {
		text := strings.TrimSpace(complaint.String())
		if !strings.HasPrefix(text, "verify: ") {
			t.Errorf("got %v and %q, want a reason", err, text)
		}
		return "", fmt.Errorf("%s", text)
	}
	return printed.String(), nil
}

// file writes a file outside the log, and returns its path.
func file(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	expect.OK(t, os.WriteFile(path, data, 0o600))
	return path
}

func TestPythonAgrees(t *testing.T) {
	for _, size := range []int64{0, 1, 256, 257, 66000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			m := newLog(t, size)
			policy := file(t, "policy", []byte(m.policy()))
			for _, c := range []struct {
				arguments []string
				cosigned  int
			}{
				{[]string{"--key", m.key.Public().String(), m.dir}, 0},
				{[]string{"--policy", policy, m.serve(t)}, 3},
			} {
				got, err := python(t, c.arguments...)
				want := fmt.Sprintf("%s: %d leaves, cosigned by %d\n", origin, size, c.cosigned)
				if err != nil || got != want {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			}
		})
	}
}

func TestPythonRemembers(t *testing.T) {
	m := newLog(t, 3000)
	remember := filepath.Join(t.TempDir(), "remembered")
	arguments := []string{"--key", m.key.Public().String(), "--remember", remember, m.dir}
	for _, size := range []int64{3000, 3000, 3001, 5000} {
		m.grow(t, size)
		if _, err := python(t, arguments...); err != nil {
			t.Fatalf("got %v at size %d, want none", err, size)
		}
		if got, err := os.ReadFile(remember); err != nil || !bytes.Equal(got, m.signed(t)) {
			t.Errorf("got %s, %v, want the checkpoint of size %d", got, err, size)
		}
	}
	shorter := newLog(t, 4000)
	fork := newLog(t, 0)
	fork.rewrite(t, 6000, 4999)
	for _, c := range []struct {
		log  *made
		want string
	}{{shorter, "shorter"}, {fork, "at size 5000 the log is not what it was"}} {
		arguments[len(arguments)-1] = c.log.dir
		expect.SaysOf(t, c.want, "")(python(t, arguments...))
	}
}

// rewrite makes the log again up to the given size, with a different leaf at one index, and signs the new log.
func (m *made) rewrite(t testing.TB, size, index int64) {
	t.Helper()
	var leaves [][]byte
	for i := range size {
		leaf := leafAt(t, i)
		if i == index {
			leaf = bytes.Replace(leaf, []byte(`"revision":`), []byte(`"revision":1`), 1)
		}
		leaves = append(leaves, leaf)
	}
	tree, full, err := translog.Tree{}.Append(leaves)
	expect.OK(t, err)
	m.tree = tree
	m.store(t, full)
	m.grow(t, size)
}

func TestPythonVerifiesProofs(t *testing.T) {
	m := newLog(t, 5000)
	policy := file(t, "policy", []byte(m.policy()))
	for _, c := range []struct {
		index int64
		want  string
	}{
		{0, "import of asset " + idOf(0) + ", revision 1, is leaf 0 of 5000, its content is proven\n"},
		{4994, "withdraw of asset " + idOf(4994) + ", revision 4995, is leaf 4994 of 5000, without content\n"},
		{4998, "change of asset " + idOf(4998) + ", revision 4999, is leaf 4998 of 5000, its content is proven\n"},
	} {
		proof := m.proof(t, c.index)
		got, err := python(t, "--policy", policy, "--proof", file(t, "x.tlog-proof", proof.Encode()))
		if err != nil || got != c.want {
			t.Errorf("got %q, %v, want %q", got, err, c.want)
		}
	}
	erased := m.proof(t, 7)
	var err error
	erased.Extra, err = (translog.Evidence{Leaf: leafAt(t, 7)}).Encode()
	expect.OK(t, err)
	got, err := python(t, "--policy", policy, "--proof", file(t, "x.tlog-proof", erased.Encode()))
	if err != nil || !strings.HasSuffix(got, ", its content is erased\n") {
		t.Errorf("got %q, %v, want an erased content", got, err)
	}
}
