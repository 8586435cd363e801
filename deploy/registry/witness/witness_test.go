package witness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/translog"
)

const origin = "registry.example/log"

var now = time.Unix(1790000000, 0)

func newKey(t testing.TB, use translog.Use, name string, seed byte) translog.Key {
	t.Helper()
	k, err := translog.NewKey(use, name, bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func witnessKey(t testing.TB) translog.Key {
	t.Helper()
	return newKey(t, translog.ForWitness, "witness.example/w", 1)
}

// testLog is a log with all trees that it ever had. A fork is a log with different leaves.
type testLog struct {
	key   translog.Key
	parts map[string][]byte
	trees []translog.Tree // trees by size
}

func newTestLog(t testing.TB, size int, leaf string) *testLog {
	t.Helper()
	l := &testLog{key: newKey(t, translog.ForLog, origin, 2), parts: map[string][]byte{}, trees: make([]translog.Tree, 1)}
	for i := range size {
		tree, full, err := l.trees[i].Append([][]byte{fmt.Appendf(nil, "%s %d", leaf, i)})
		if err != nil {
			t.Fatal(err)
		}
		l.trees = append(l.trees, tree)
		for _, part := range full {
			l.parts[part.Tile.Path()] = part.Data
		}
	}
	return l
}

func (l *testLog) checkpoint(size int64) translog.Checkpoint {
	return translog.Checkpoint{Origin: origin, Size: size, Root: l.trees[size].Root()}
}

func (l *testLog) signed(t testing.TB, size int64, keys ...translog.Key) []byte {
	t.Helper()
	signed, err := translog.Sign(l.checkpoint(size), append(keys, l.key)...)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// submission returns a submission that continues the log from an older size.
func (l *testLog) submission(t testing.TB, older, size int64) translog.Submission {
	t.Helper()
	proof, err := translog.Consistent(t.Context(), older, l.checkpoint(size), reader{l, size})
	if err != nil {
		t.Fatal(err)
	}
	return translog.Submission{Old: older, Proof: proof, Checkpoint: l.signed(t, size)}
}

// newWitness returns a witness that has its state in the directory `dir`. It knows one log, whose name is the
// constant `origin`.
func newWitness(t testing.TB, dir string) *Witness {
	t.Helper()
	w, err := New(Config{
		Key: witnessKey(t), Logs: []translog.PublicKey{newKey(t, translog.ForLog, origin, 2).Public()}, State: dir,
		Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() }) // fails if a test has closed it already, which does no harm
	return w
}

func TestAWitnessCosignsALogThatGrows(t *testing.T) {
	dir := t.TempDir()
	l := newTestLog(t, 600, "leaf")
	older := int64(0)
	for _, size := range []int64{0, 0, 1, 1, 255, 256, 600} {
		w := newWitness(t, dir) // each new witness must remember the last size of the log
		s := l.submission(t, older, size)
		line, err := w.Cosign(s)
		if err != nil {
			t.Fatalf("got %v from %d to %d, want a cosignature", err, older, size)
		}
		got, at, err := translog.Cosignature(s.Checkpoint, line, witnessKey(t).Public())
		if err != nil || !bytes.Equal(got, line) || !at.Equal(now) {
			t.Errorf("got %s at %v, %v, want a cosignature at %v", line, at, err, now)
		}
		older = size
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAWitnessRefuses(t *testing.T) {
	l, fork := newTestLog(t, 600, "leaf"), newTestLog(t, 600, "other")
	good := l.submission(t, 300, 500)
	other := newKey(t, translog.ForLog, "other.example/log", 2)
	unknown, err := translog.Sign(translog.Checkpoint{Origin: "other.example/log"}, other)
	if err != nil {
		t.Fatal(err)
	}
	bySomebody, err := translog.Sign(l.checkpoint(500), newKey(t, translog.ForLog, origin, 3))
	if err != nil {
		t.Fatal(err)
	}
	changed := l.submission(t, 300, 500)
	changed.Proof[0][0]++
	longer := l.submission(t, 300, 300)
	longer.Proof = good.Proof
	change := func(old, new string) []byte { return bytes.Replace(good.Encode(), []byte(old), []byte(new), 1) }
	for _, c := range []struct {
		name   string
		body   []byte
		status int
		kind   string
		answer string
	}{
		{"a smaller old size", l.submission(t, 299, 500).Encode(), 409, "text/x.tlog.size", "300\n"},
		{"a greater old size", l.submission(t, 301, 500).Encode(), 409, "text/x.tlog.size", "300\n"},
		{"the old size 0", l.submission(t, 0, 500).Encode(), 409, "text/x.tlog.size", "300\n"},
		{"an older checkpoint", translog.Submission{Old: 300, Checkpoint: l.signed(t, 200)}.Encode(), 400, "text/plain", ""},
		{"a fork", fork.submission(t, 300, 500).Encode(), 422, "text/plain", ""},
		{"a fork of the same size", fork.submission(t, 300, 300).Encode(), 409, "text/plain", ""},
		{"a changed proof", changed.Encode(), 422, "text/plain", ""},
		{"no proof", translog.Submission{Old: 300, Checkpoint: good.Checkpoint}.Encode(), 422, "text/plain", ""},
		{"a proof of the same size", longer.Encode(), 422, "text/plain", ""},
		{"an unknown log", translog.Submission{Checkpoint: unknown}.Encode(), 404, "text/plain", ""},
		{"an unknown key", translog.Submission{Old: 300, Proof: good.Proof, Checkpoint: bySomebody}.Encode(), 403,
			"text/plain", ""},
		{"no signature", change("— registry", "— degistry"), 403, "text/plain", ""},
		{"a malformed checkpoint", change("\n500\n", "\n0500\n"), 400, "text/plain", ""},
		{"a malformed body", []byte("old\n"), 400, "text/plain", ""},
		{"a long body", make([]byte, translog.MaxSubmission+1), 413, "text/plain", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWitness(t, t.TempDir())
			if _, err := w.Cosign(l.submission(t, 0, 300)); err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(w.Handler())
			defer server.Close()
			status, kind, answer := post(t, server.URL, c.body)
			if status != c.status || !strings.HasPrefix(kind, c.kind) || c.answer != "" && answer != c.answer {
				t.Errorf("got %d, %s, %q, want %d, %s, %q", status, kind, answer, c.status, c.kind, c.answer)
			}
			if status, _, answer := post(t, server.URL, good.Encode()); status != http.StatusOK {
				t.Errorf("got %d, %q of the right submission afterwards, want 200", status, answer)
			}
		})
	}
}

// post sends a body to the witness.
func post(t testing.TB, address string, body []byte) (status int, kind, answer string) {
	t.Helper()
	r, err := http.Post(address+"/add-checkpoint", "text/plain", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, r.Header.Get("Content-Type"), string(text)
}

func TestOtherRequests(t *testing.T) {
	server := httptest.NewServer(newWitness(t, t.TempDir()).Handler())
	defer server.Close()
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/add-checkpoint": 405, "/": 404} {
		r, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Body.Close(); err != nil || r.StatusCode != want {
			t.Errorf("got %d of GET %s, %v, want %d", r.StatusCode, path, err, want)
		}
	}
}

// TestARequestUnderWayIsAnsweredAtTheEnd stops a witness while it reads a request. The request must still be
// answered.
func TestARequestUnderWayIsAnsweredAtTheEnd(t *testing.T) {
	w := newWitness(t, t.TempDir())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Serve(ctx, listener) }()
	body := newTestLog(t, 5, "leaf").submission(t, 0, 5).Encode()
	connection, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	head := "POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nExpect: 100-continue\r\n"
	head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
	if _, err := io.WriteString(connection, head); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(connection)
	// The server answers 100 when the handler starts to read the body.
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
		t.Fatalf("got %q, %v, want 100", line, err)
	}
	cancel()
	for {
		probe, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			break // the witness accepts no more connections
		}
		if err := probe.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := connection.Write(body); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answers)
	if err != nil || !strings.Contains(string(text), "\n— witness.example/w ") {
		t.Errorf("got %q, %v, want a cosignature", text, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("got %v at the end, want none", err)
	}
}

func TestARotatedKeyOfALogIsKnown(t *testing.T) {
	l := newTestLog(t, 10, "leaf")
	next := newKey(t, translog.ForLog, origin, 9)
	logs := []translog.PublicKey{l.key.Public(), next.Public()}
	w, err := New(Config{Key: witnessKey(t), Logs: logs, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	s := l.submission(t, 0, 5)
	if _, err := w.Cosign(s); err != nil {
		t.Fatal(err)
	}
	s = l.submission(t, 5, 9)
	if s.Checkpoint, err = translog.Sign(l.checkpoint(9), next); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Cosign(s); err != nil {
		t.Errorf("got %v of the new key, want a cosignature", err)
	}
}

// TestOfManySubmissionsOneTreeIsCosigned submits two forks at the same time. Only one of them may get a
// cosignature.
func TestOfManySubmissionsOneTreeIsCosigned(t *testing.T) {
	w := newWitness(t, t.TempDir())
	forks := []*testLog{newTestLog(t, 40, "leaf"), newTestLog(t, 40, "other")}
	var submissions []translog.Submission
	for i := range int64(80) {
		submissions = append(submissions, forks[i%2].submission(t, 0, 1+i/2))
	}
	var mu sync.Mutex
	var cosigned []int
	var group sync.WaitGroup
	for i, s := range submissions {
		group.Go(func() {
			if _, err := w.Cosign(s); err == nil {
				mu.Lock()
				defer mu.Unlock()
				cosigned = append(cosigned, i)
			}
		})
	}
	group.Wait()
	if len(cosigned) != 1 {
		t.Errorf("got cosignatures of the submissions %v, want one", cosigned)
	}
}

func TestADamagedStateIsRefused(t *testing.T) {
	dir := t.TempDir()
	w := newWitness(t, dir)
	if _, err := w.Cosign(newTestLog(t, 10, "leaf").submission(t, 0, 10)); err != nil {
		t.Fatal(err)
	}
	file := w.state.file(origin)
	log := newKey(t, translog.ForLog, origin, 2).Public()
	config := Config{Key: witnessKey(t), Logs: []translog.PublicKey{log}, State: dir}
	if _, err := New(config); err == nil || !strings.Contains(err.Error(), "another witness") {
		t.Errorf("got %v of a second witness, want an error", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		damaged := bytes.Clone(good)
		damaged[i] ^= 1
		for _, data := range [][]byte{damaged, good[:i]} {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if w, err := New(config); err == nil {
				t.Errorf("got a witness with byte %d changed, want an error", i)
				_ = w.Close()
			}
		}
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	newWitness(t, dir)
}

// TestTheStateOfAnotherLogIsRefused gives a witness the stored state of one log as the state of a different log.
func TestTheStateOfAnotherLogIsRefused(t *testing.T) {
	dir, other := t.TempDir(), newKey(t, translog.ForLog, "other.example/log", 3).Public()
	w := newWitness(t, dir)
	if _, err := w.Cosign(newTestLog(t, 10, "leaf").submission(t, 0, 10)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(w.state.file(origin), w.state.file(other.Name())), w.Close()); err != nil {
		t.Fatal(err)
	}
	config := Config{Key: witnessKey(t), Logs: []translog.PublicKey{other}, State: dir}
	if _, err := New(config); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("got %v, want the error that the state is damaged", err)
	}
}

// TestAWitnessNeedsTheKeyOfAWitness tries to make a witness with the key of a log: its cosignatures would be worthless.
func TestAWitnessNeedsTheKeyOfAWitness(t *testing.T) {
	log := newKey(t, translog.ForLog, origin, 2)
	config := Config{Key: log, Logs: []translog.PublicKey{log.Public()}, State: t.TempDir()}
	if _, err := New(config); err == nil || !strings.Contains(err.Error(), "not the key of a witness") {
		t.Errorf("got %v, want the error that this is not the key of a witness", err)
	}
}

// TestManyRequestsAtOnceAreBounded sends 64 requests whose bodies do not end. The next request must be refused. After
// the others have ended, a request must be answered.
func TestManyRequestsAtOnceAreBounded(t *testing.T) {
	handler := newWitness(t, t.TempDir()).Handler()
	add := func(body io.Reader) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("POST", "/add-checkpoint", body))
		return w
	}
	var open sync.WaitGroup
	var ends []*io.PipeWriter
	for range most {
		body, end := io.Pipe()
		ends = append(ends, end)
		open.Go(func() { add(body) })
		_, _ = end.Write([]byte("o")) // returns once the handler reads the body
	}
	if got := add(strings.NewReader("")); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
		t.Errorf("beside %d requests: got %d %v, want 503 with Retry-After", most, got.Code, got.Header())
	}
	for _, end := range ends {
		_ = end.Close()
	}
	open.Wait()
	if got := add(strings.NewReader("")); got.Code != http.StatusBadRequest {
		t.Errorf("after them: got %d, want 400", got.Code)
	}
}

func TestWhatCannotBeRememberedIsNotCosigned(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	w := newWitness(t, dir)
	l := newTestLog(t, 10, "leaf")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.Handler())
	defer server.Close()
	status, _, answer := post(t, server.URL, l.submission(t, 0, 10).Encode())
	if status != http.StatusInternalServerError || strings.Contains(answer, dir) {
		t.Errorf("got %d, %q, want 500 without the path", status, answer)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := post(t, server.URL, l.submission(t, 0, 9).Encode()); status != http.StatusOK {
		t.Errorf("got %d after the directory came back, want 200", status)
	}
}

func TestTheKeyIsMadeOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if _, err := ReadKey(file, ""); err == nil {
		t.Error("got a key of no name, want an error")
	}
	first, err := ReadKey(file, "witness.example/w")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "witness.example/w"} {
		if again, err := ReadKey(file, name); err != nil || again.Secret() != first.Secret() {
			t.Errorf("got %v, want the same key", err)
		}
	}
	if _, err := ReadKey(file, "witness.example/x"); err == nil {
		t.Error("got the key under another name, want an error")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got the mode %v, %v, want 0600", info.Mode(), err)
	}
	if err := os.WriteFile(file, []byte(newKey(t, translog.ForLog, origin, 2).Secret()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(file, ""); err == nil || strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("got %v of the key of a log, want an error without the key", err)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Errorf("got %v, %v, want the key alone", left, err)
	}
}
