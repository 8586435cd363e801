package log

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/shared/testing/cosign"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

const (
	origin = "registry.example/log"
	batch  = 997 // leaves for each checkpoint
)

var cosignedAt = time.Unix(1790000000, 0)

// made is a log that the test has made in a directory.
type made struct {
	dir        string
	key        translog.Key
	witnesses  []translog.Key
	tree       translog.Tree
	checkpoint translog.Checkpoint
}

// newLog makes a log with the given number of leaves.
func newLog(t testing.TB, size int64) *made {
	t.Helper()
	m := &made{dir: t.TempDir(), key: newKey(t, translog.ForLog, origin, 1)}
	for n := range 3 {
		m.witnesses = append(m.witnesses, newKey(t, translog.ForWitness, fmt.Sprintf("witness.example/w%d", n), byte(2+n)))
	}
	m.grow(t, size)
	return m
}

func newKey(t testing.TB, use translog.Use, name string, seed byte) translog.Key {
	t.Helper()
	sum := sha256.Sum256([]byte{seed})
	key, err := translog.NewKey(use, name, sum[:])
	expect.OK(t, err)
	return key
}

// grow appends leaves until the log has the given number of leaves, and then signs a checkpoint.
func (m *made) grow(t testing.TB, size int64) {
	t.Helper()
	for m.tree.Size() < size {
		var leaves [][]byte
		for i := m.tree.Size(); i < min(size, m.tree.Size()+batch); i++ {
			leaves = append(leaves, leafAt(t, i))
		}
		tree, full, err := m.tree.Append(leaves)
		expect.OK(t, err)
		m.tree = tree
		m.store(t, full)
	}
	m.store(t, m.tree.Edge())
	m.checkpoint = translog.Checkpoint{Origin: origin, Size: m.tree.Size(), Root: m.tree.Root()}
	m.write(t, "checkpoint", m.signed(t))
}

// signed returns the newest checkpoint with the cosignatures of all witnesses.
func (m *made) signed(t testing.TB) []byte {
	t.Helper()
	checkpoint, err := translog.Sign(m.checkpoint, m.key)
	expect.OK(t, err)
	signed := checkpoint
	for _, key := range m.witnesses {
		line := cosign.Line(checkpoint, key.Secret(), cosignedAt)
		signed = append(signed[:len(signed):len(signed)], line...)
	}
	return signed
}

func (m *made) store(t testing.TB, parts []translog.Part) {
	t.Helper()
	for _, part := range parts {
		m.write(t, part.Tile.Path(), part.Data)
	}
}

func (m *made) write(t testing.TB, name string, data []byte) {
	t.Helper()
	path := filepath.Join(m.dir, filepath.FromSlash(name))
	expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
	expect.OK(t, os.WriteFile(path, data, 0o600))
}

// files returns the paths of all files of the log, in order.
func (m *made) files(t testing.TB) (names []string) {
	t.Helper()
	err := filepath.WalkDir(m.dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path[len(m.dir)+1:])
		}
		return err
	})
	expect.OK(t, err)
	return names
}

// serve serves the log over HTTP, and returns the prefix of its URLs.
func (m *made) serve(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(http.StripPrefix("/log/", http.FileServer(http.Dir(m.dir))))
	t.Cleanup(server.Close)
	return server.URL + "/log/"
}

// policy returns a policy that needs two of the three witnesses.
func (m *made) policy() string {
	text := "log " + m.key.Public().String() + "\n"
	for n, key := range m.witnesses {
		text += fmt.Sprintf("witness w%d %s http://127.0.0.1/w%d/\n", n, key.Public(), n)
	}
	return text + "group two 2 w0 w1 w2\nquorum two\n"
}

// parsed returns the policy, parsed by our code.
func (m *made) parsed(t testing.TB) *translog.Policy {
	t.Helper()
	policy, err := translog.ParsePolicy([]byte(m.policy()))
	expect.OK(t, err)
	return policy
}

func (m *made) ReadPart(_ context.Context, tile translog.Tile) ([]byte, error) {
	return os.ReadFile(filepath.Join(m.dir, filepath.FromSlash(tile.Path())))
}

func (m *made) ReadCheckpoint(context.Context) ([]byte, error) {
	return os.ReadFile(filepath.Join(m.dir, "checkpoint"))
}

// proof returns the proof of a leaf.
func (m *made) proof(t testing.TB, index int64) translog.Proof {
	t.Helper()
	path, err := translog.Include(t.Context(), m.checkpoint, index, m)
	expect.OK(t, err)
	evidence := translog.Evidence{Leaf: leafAt(t, index)}
	if kindOf(index) != translog.Withdraw {
		salt := saltOf(index)
		evidence.Salt, evidence.Asset = &salt, assetAt(index)
	}
	extra, err := evidence.Encode()
	expect.OK(t, err)
	return translog.Proof{Extra: extra, Index: index, Path: path, Checkpoint: m.signed(t)}
}

// The following functions compute the content of a leaf from its index.

func kindOf(i int64) translog.Kind {
	return []translog.Kind{translog.Import, translog.Publish, translog.Change, translog.Change, translog.Withdraw}[i%5]
}

func positionOf(i int64) int64 { return 1790000000000000 + i*1000003 }

func idOf(i int64) string { return fmt.Sprintf("%032x", i%1000) }

func saltOf(i int64) translog.Salt { return sha256.Sum256(fmt.Appendf(nil, "salt %d", i)) }

func assetAt(i int64) []byte {
	zone := time.FixedZone("", int(i%3)*3600)
	return fmt.Appendf(nil, `{"id":%q,"title":"Об'єкт № %d \"А\" \u003c\n","items":[{"quantity":%d.50,"b":1E2,"a":[]}],`+
		`"\ue000":1,"\ud83d\ude00":2,"dateModified":%q}`,
		idOf(i), i, i, time.UnixMicro(positionOf(i)).In(zone).Format("2006-01-02T15:04:05.000000-07:00"))
}

func leafAt(t testing.TB, i int64) []byte {
	t.Helper()
	leaf := translog.Leaf{Position: positionOf(i), Asset: idOf(i), Revision: i + 1, Kind: kindOf(i)}
	if leaf.Kind != translog.Withdraw {
		var err error
		leaf.Commitment, err = translog.Commit(saltOf(i), assetAt(i))
		expect.OK(t, err)
	}
	return leaf.Encode()
}
