package logclient

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

const origin = "registry.example/log"

func key(t testing.TB, use translog.Use, name string, seed byte) translog.Key {
	t.Helper()
	k, err := translog.NewKey(use, name, bytes.Repeat([]byte{seed}, 32))
	expect.OK(t, err)
	return k
}

// testLog is a log in memory.
type testLog struct {
	key   translog.Key
	tree  translog.Tree
	parts map[string][]byte
}

func newTestLog(t testing.TB, size int) *testLog {
	t.Helper()
	l := &testLog{key: key(t, translog.ForLog, origin, 1), parts: map[string][]byte{}}
	l.grow(t, size)
	return l
}

func (l *testLog) grow(t testing.TB, size int) {
	t.Helper()
	var leaves [][]byte
	for i := l.tree.Size(); i < int64(size); i++ {
		leaves = append(leaves, translog.Leaf{
			Position: 1790000000000000 + i, Asset: strings.Repeat("0", 32), Revision: i + 1, Kind: translog.Withdraw,
		}.Encode())
	}
	tree, full, err := l.tree.Append(leaves)
	expect.OK(t, err)
	l.tree = tree
	for _, part := range append(full, tree.Edge()...) {
		l.parts[part.Tile.Path()] = part.Data
	}
}

func (l *testLog) checkpoint() translog.Checkpoint {
	return translog.Checkpoint{Origin: origin, Size: l.tree.Size(), Root: l.tree.Root()}
}

func (l *testLog) signed(t testing.TB) []byte {
	t.Helper()
	signed, err := translog.Sign(l.checkpoint(), l.key)
	expect.OK(t, err)
	return signed
}

// serve serves the log. Every third answer reports a temporary failure.
func (l *testLog) serve(t testing.TB) string {
	t.Helper()
	var count atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/log/")
		data, ok := l.parts[path]
		switch n := count.Add(1); {
		case n%6 == 3:
			http.Error(w, "later", http.StatusServiceUnavailable)
		case n%6 == 0:
			panic(http.ErrAbortHandler)
		case path == "checkpoint":
			_, _ = w.Write(l.signed(t))
		case !ok:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(data)
			_ = z.Close()
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/log"
}

func TestALogIsVerifiedOverHTTPWithPassingFailures(t *testing.T) {
	l := newTestLog(t, 1000)
	for _, slash := range []string{"", "/"} {
		source, err := NewSource(l.serve(t)+slash, nil)
		expect.OK(t, err)
		policy, err := translog.LogPolicy(l.key.Public())
		expect.OK(t, err)
		got, err := translog.Verifier{Policy: policy, Ahead: 4}.Verify(t.Context(), source)
		if err != nil || got.Checkpoint != l.checkpoint() {
			t.Errorf("got %+v, %v, want %+v", got, err, l.checkpoint())
		}
	}
}

func TestWhatCannotBeReadIsNotRepeated(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter)
		want   string
	}{
		{"not found", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, fs.ErrNotExist.Error()},
		{"forbidden", func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, "status 403"},
		{"too long", func(w http.ResponseWriter) { _, _ = w.Write(make([]byte, translog.MaxBundle+1)) }, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var count atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				count.Add(1)
				c.answer(w)
			}))
			defer server.Close()
			source, err := NewSource(server.URL, nil)
			expect.OK(t, err)
			_, err = source.ReadPart(t.Context(), translog.Tile{Width: 1})
			if err == nil || !strings.Contains(err.Error(), c.want) || count.Load() != 1 {
				t.Errorf("got %v after %d requests, want %q after 1", err, count.Load(), c.want)
			}
			if isMissing := errors.Is(err, fs.ErrNotExist); isMissing != (c.name == "not found") {
				t.Errorf("got %v, a missing part: %v", err, isMissing)
			}
		})
	}
}

func TestOnlyAddressesOfTheWebAreTaken(t *testing.T) {
	for _, text := range []string{"", "registry.example/log", "ftp://registry.example/log", "file:///log", "http://"} {
		if _, err := NewSource(text, nil); err == nil {
			t.Errorf("got no error for %q, want one", text)
		}
	}
}
