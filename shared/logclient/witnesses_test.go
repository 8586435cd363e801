package logclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/testing/cosign"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

func (l *testLog) ReadPart(_ context.Context, tile translog.Tile) ([]byte, error) {
	if data, ok := l.parts[tile.Path()]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// prove proves that the present log begins with its own first `older` entries.
func (l *testLog) prove(ctx context.Context, older int64) ([]tlog.Hash, error) {
	return translog.Consistent(ctx, older, l.checkpoint(), l)
}

// fakeWitness is a witness. It cosigns a checkpoint only if the checkpoint continues the last one that it cosigned.
type fakeWitness struct {
	key translog.Key

	mu       sync.Mutex
	cosigned translog.Checkpoint
	requests int
	fails    func(http.ResponseWriter, *http.Request) bool // true: it has answered instead of the witness
}

func (f *fakeWitness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	body, err := io.ReadAll(r.Body) // the server notices that a client leaves only after it has read the body
	if f.fails != nil && f.fails(w, r) {
		return
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/sub/add-checkpoint" {
		http.Error(w, "not a submission", http.StatusBadRequest)
		return
	}
	s, err := submission(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if s.Old != f.cosigned.Size {
		w.Header().Set("Content-Type", "text/x.tlog.size")
		w.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprintf(w, "%d\n", f.cosigned.Size)
		return
	}
	c, err := translog.Unverified(s.Checkpoint)
	if err == nil {
		err = translog.CheckConsistency(f.cosigned, c, s.Proof)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	line := cosign.Line(s.Checkpoint, f.key.Secret(), time.Unix(1790000000, 0))
	f.cosigned = c
	_, _ = w.Write(line)
}

// submission reads the body of an add-checkpoint request.
func submission(body []byte) (s translog.Submission, err error) {
	head, checkpoint, _ := strings.Cut(string(body), "\n\n")
	lines := strings.Split(head, "\n")
	s.Checkpoint = []byte(checkpoint)
	s.Proof = make([]tlog.Hash, len(lines)-1)
	_, err = fmt.Sscanf(lines[0], "old %d", &s.Old)
	for i, line := range lines[1:] {
		var malformed error
		s.Proof[i], malformed = tlog.ParseHash(line)
		err = errors.Join(err, malformed)
	}
	return s, err
}

// count returns the number of requests.
func (f *fakeWitness) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests
}

// stage is a log with three witnesses, of which two are a quorum.
type stage struct {
	log       *testLog
	fakes     []*fakeWitness
	witnesses *Witnesses
	policy    *translog.Policy
}

func newStage(t *testing.T, within time.Duration) *stage {
	t.Helper()
	s := &stage{log: newTestLog(t, 300)}
	text := "log " + s.log.key.Public().String() + "\n"
	for n := range 3 {
		fake := &fakeWitness{
			key:      key(t, translog.ForWitness, fmt.Sprintf("witness.example/w%d", n), byte(10+n)),
			cosigned: translog.Checkpoint{Origin: origin},
		}
		server := httptest.NewServer(fake)
		t.Cleanup(server.Close)
		s.fakes = append(s.fakes, fake)
		text += fmt.Sprintf("witness w%d %s %s/sub/\n", n, fake.key.Public(), server.URL)
	}
	text += "witness silent " + key(t, translog.ForWitness, "silent", 99).Public().String() + "\n"
	var err error
	s.policy, err = translog.ParsePolicy([]byte(text + "group two 2 w0 w1 w2 silent\nquorum two\n"))
	expect.OK(t, err)
	s.witnesses, err = NewWitnesses(s.policy, nil, within)
	expect.OK(t, err)
	t.Cleanup(s.witnesses.Close)
	s.witnesses.linger = time.Minute
	return s
}

// cosign asks the witnesses to cosign the present checkpoint of the log.
func (s *stage) cosign(ctx context.Context, t *testing.T) Cosigned {
	t.Helper()
	return s.witnesses.Cosign(ctx, s.log.signed(t), s.log.tree.Size(), s.log.prove)
}

func TestAllWitnessesCosignAsTheLogGrows(t *testing.T) {
	s := newStage(t, time.Minute)
	// This witness cosigned a checkpoint before the log restarted, so the log must first ask for its size.
	s.fakes[1].cosigned = s.log.checkpoint()
	for i, size := range []int{300, 300, 301, 5000, 70000} {
		s.log.grow(t, size)
		got := s.cosign(t.Context(), t)
		signed, err := s.policy.Open(got.Checkpoint)
		if err != nil || len(signed.Cosigners) != 3 || !got.Quorum || len(got.Faults) != 0 || signed.Size != int64(size) {
			t.Fatalf("got %+v, %v, %v, want three cosigners of size %d", signed, got.Faults, err, size)
		}
		if a, b := s.fakes[0].count(), s.fakes[1].count(); a != 1+i || b != 2+i {
			t.Errorf("got %d and %d requests, want %d and %d: one more to learn a size", a, b, 1+i, 2+i)
		}
	}
}

func TestAWitnessThatAnsweredIsFree(t *testing.T) {
	s := newStage(t, time.Minute)
	for range 200 {
		if got := s.cosign(t.Context(), t); len(got.Faults) != 0 {
			t.Fatalf("got %v, want none", got.Faults)
		}
	}
}

func TestTheQuorumIsReachedWithoutAWitnessThatFails(t *testing.T) {
	answer := func(kind string, status int, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "/x")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
			return true
		}
	}
	silence := func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	const plain, size = "text/plain", "text/x.tlog.size"
	for _, c := range []struct {
		name  string
		fails func(http.ResponseWriter, *http.Request) bool
		want  error
	}{
		{"an error", answer(plain, 500, ""), ErrRefused},
		{"a redirect", answer(plain, 307, ""), ErrRefused},
		{"another text", answer(plain, 200, "x\n"), translog.ErrCheckpoint},
		{"nothing", answer(plain, 200, ""), translog.ErrSignature},
		{"a fork", answer(plain, 409, "a fork\n"), ErrRefused},
		{"a size that is called a text", answer(plain, 409, "301\n"), ErrRefused},
		{"a greater size", answer(size, 409, "301\n"), ErrAhead},
		{"a negative size", answer(size, 409, "-1\n"), ErrRefused},
		{"another size than it has", answer(size, 409, "7\n"), ErrRefused},
		{"no answer", silence, ErrLate},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, time.Minute)
			s.fakes[2].fails = c.fails
			if errors.Is(c.want, ErrLate) {
				s.witnesses.linger = linger
			}
			got := s.cosign(t.Context(), t)
			signed, err := s.policy.Open(got.Checkpoint)
			if err != nil || !got.Quorum || len(signed.Cosigners) != 2 || !errors.Is(got.Faults["w2"], c.want) {
				t.Errorf("got %+v, %v, %v, want two cosigners and %v", signed, got.Faults, err, c.want)
			}
		})
	}
}

func TestWithoutAQuorumTheDeadlineHolds(t *testing.T) {
	s := newStage(t, time.Minute)
	release := make(chan struct{})
	for _, fake := range s.fakes[1:] {
		fake.fails = func(http.ResponseWriter, *http.Request) bool { <-release; return false }
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	got := s.cosign(ctx, t)
	signed, err := s.policy.Open(got.Checkpoint)
	expect.ErrorIf(t, !errors.Is(err, translog.ErrQuorum) || got.Quorum || !errors.Is(got.Faults["w1"], ErrLate),
		"got %+v, %v, %v, want no quorum", signed, got.Faults, err)
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if got := s.cosign(ctx, t); !errors.Is(got.Faults["w1"], ErrBusy) {
		t.Errorf("got %v, want %v", got.Faults, ErrBusy)
	}
	close(release)
	s.log.grow(t, 400)
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !s.cosign(deadline, t).Quorum {
		expect.FatalIf(t, deadline.Err() != nil, "got no quorum after the witnesses answered again, want one")
	}
}

func TestARequestEndsInTime(t *testing.T) {
	s := newStage(t, 50*time.Millisecond)
	for _, fake := range s.fakes {
		fake.fails = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	}
	got := s.cosign(t.Context(), t)
	for _, name := range []string{"w0", "w1", "w2"} {
		if !errors.Is(got.Faults[name], context.DeadlineExceeded) {
			t.Errorf("got %v of %s, want %v", got.Faults[name], name, context.DeadlineExceeded)
		}
	}
}

func TestAnUnsuitableAddressIsRefused(t *testing.T) {
	vkey := key(t, translog.ForWitness, "w", 1).Public().String()
	p, err := translog.ParsePolicy([]byte("witness w " + vkey + " x\nquorum w\n"))
	expect.OK(t, err)
	expect.FailsOf(t, "")(NewWitnesses(p, nil, time.Second))
}
