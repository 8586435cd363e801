package audit_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// sealed is a log with entries that the registry has sealed. It shows only its first entries: their number is `shown`.
type sealed struct {
	memory
	shown int
	grow  int // after each read, the log shows this many entries more

	err    error // error of each call that fails
	works  int   // how many calls succeed before one fails
	once   bool  // only one call fails, and the next ones work again
	failed bool
}

// ring returns a keyring with a secret for each letter.
func ring(letters string) (r keyring.Ring) {
	for _, letter := range letters {
		r = append(r, bytes.Repeat([]byte(string(letter)), keyring.MinLength))
	}
	return r
}

// newSealed returns a log of n entries about the key "k", sealed with the secret of letters "a".
func newSealed(t *testing.T, n int) *sealed {
	t.Helper()
	sealer := newSealer(t, "a")
	log, head := &sealed{shown: n}, adminapi.Head{}
	for i := range n {
		e, err := sealer.Append(head, adminapi.Entry{
			Time: begun.Add(time.Duration(i) * time.Hour), Action: audit.ChangeKey, Subject: audit.OfKey("k"),
			After: []byte(`{}`),
		})
		expect.OK(t, err)
		log.entries, head = append(log.entries, e), adminapi.Head{Seq: e.Seq, Hash: e.Hash}
	}
	return log
}

func (s *sealed) fails() error {
	if s.err != nil && s.works > 0 {
		s.works--
		return nil
	}
	err := s.err
	s.failed = s.failed || err != nil
	if s.once {
		s.err = nil
	}
	return err
}

func (s *sealed) Head(context.Context) (adminapi.Head, error) {
	if s.shown == 0 {
		return adminapi.Head{}, s.fails()
	}
	last := s.entries[s.shown-1]
	return adminapi.Head{Seq: last.Seq, Hash: last.Hash}, s.fails()
}

func (s *sealed) Entries(_ context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	from := min(int(after), s.shown)
	found := slices.Clone(s.entries[from:min(from+limit, s.shown)])
	s.shown = min(s.shown+s.grow, len(s.entries))
	s.read++
	return found, s.fails()
}

func (s *sealed) Reseal(_ context.Context, entries []adminapi.Entry) error {
	err := s.fails()
	for _, e := range entries {
		if err == nil {
			s.entries[e.Seq-1] = e
		}
	}
	return err
}

// records calls the function `visit` with the only stored record: the key that the log is about.
func (s *sealed) records(_ context.Context, visit func(audit.Record) error) error {
	if err := visit(audit.Record{Subject: audit.OfKey("k"), Text: []byte(`{}`)}); err != nil {
		return err
	}
	return s.fails()
}

func (s *sealed) checker(t *testing.T, letters string) *audit.Checker {
	t.Helper()
	return audit.NewChecker(s, s.records, newSealer(t, letters), time.Now)
}

func newSealer(t *testing.T, letters string) *audit.Sealer {
	t.Helper()
	sealer, err := audit.NewSealer(ring(letters))
	expect.OK(t, err)
	return sealer
}

// TestAResealReachesEachEntry replaces the secret of letters "a" by one of letters "b", in logs of several lengths.
// Some lengths are multiples of the number of entries that one call reads. The new secret must seal each entry.
func TestAResealReachesEachEntry(t *testing.T) {
	for _, n := range []int{1, 499, 500, 501, 1000} {
		log := newSealed(t, n)
		if got, err := log.checker(t, "b").Reseal(t.Context()); err == nil || got != 0 {
			t.Errorf("%d entries, without the old secret: got %d resealed, %v; want none and an error", n, got, err)
		}
		head, _ := log.Head(t.Context())
		for _, want := range []int{n, 0} {
			expect.Value(t, want, "%d entries", n)(log.checker(t, "ba").Reseal(t.Context()))
		}
		got, err := log.checker(t, "b").Check(t.Context())
		if err != nil || len(got.Problems) > 0 || got.Entries != int64(n) {
			t.Errorf("%d entries: got %+v, %v; want as many with the new secret", n, got, err)
		}
		if after, _ := log.Head(t.Context()); after != head {
			t.Errorf("%d entries: got the head %v, want %v as before", n, after, head)
		}
		if got, err := log.checker(t, "a").Check(t.Context()); err != nil || len(got.Problems) != n {
			t.Errorf("%d entries: got %d problems, %v; want one each with the old secret", n, len(got.Problems), err)
		}
	}
}

// TestALogWithAProblemIsNotResealed reseals a log that lacks an entry about a key. This must be an error.
func TestALogWithAProblemIsNotResealed(t *testing.T) {
	const want = "no entry describes key k"
	got, err := newSealed(t, 0).checker(t, "ba").Reseal(t.Context())
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %d resealed, %v; want none, and an error with %q", got, err, want)
	}
}

// TestAForgedEntryIsNotResealed adds an entry that the registry has not sealed, after Reseal has checked the
// log. This entry must keep its seal.
func TestAForgedEntryIsNotResealed(t *testing.T) {
	log := newSealed(t, 3)
	log.entries[2].Seal, log.shown = "forged", 2
	checker := audit.NewChecker(log, func(ctx context.Context, visit func(audit.Record) error) error {
		defer func() { log.shown = 3 }()
		return log.records(ctx, visit)
	}, newSealer(t, "ba"), time.Now)
	if got, err := checker.Reseal(t.Context()); err != nil || got != 2 || log.entries[2].Seal != "forged" {
		t.Errorf("got %d resealed, %v and the seal %q; want 2 and the forged one", got, err, log.entries[2].Seal)
	}
}

// TestSubjectsOfOtherServicesNeedNoRecord checks logs with an entry about a webhook, an asset or a file. Other
// services keep these things, so the check must find no problem.
func TestSubjectsOfOtherServicesNeedNoRecord(t *testing.T) {
	for _, subject := range []string{audit.OfWebhook("w"), audit.OfAsset("a"), audit.OfFile("f")} {
		log := newSealed(t, 1)
		head := adminapi.Head{Seq: 1, Hash: log.entries[0].Hash}
		e, err := newSealer(t, "a").Append(head, adminapi.Entry{Time: begun, Subject: subject})
		expect.OK(t, err)
		log.entries, log.shown = append(log.entries, e), 2
		if got, err := log.checker(t, "a").Check(t.Context()); err != nil || len(got.Problems) > 0 {
			t.Errorf("%s: got %+v, %v; want no problem", subject, got, err)
		}
	}
}

// TestALogThatGrowsIsNoProblem adds entries while the log is checked. The check must find no problem.
func TestALogThatGrowsIsNoProblem(t *testing.T) {
	log := newSealed(t, 10)
	log.shown, log.grow = 1, 1
	got, err := log.checker(t, "a").Check(t.Context())
	if err != nil || len(got.Problems) > 0 || got.Entries != 10 {
		t.Errorf("got %+v, %v; want no problem in 10 entries", got, err)
	}
	log = newSealed(t, 2)
	log.shown = 1
	grows := audit.NewChecker(log, func(ctx context.Context, visit func(audit.Record) error) error {
		log.shown = 2
		return log.records(ctx, visit)
	}, newSealer(t, "a"), time.Now)
	got, err = grows.Check(t.Context())
	if err != nil || len(got.Problems) > 0 || got.Entries != 1 || log.read != 1 {
		t.Errorf("a log that grows later: got %+v, %v after %d readings; want one entry without a problem after 1",
			got, err, log.read)
	}
	log = newSealed(t, 1)
	got, err = log.checker(t, "b").Check(t.Context())
	if err != nil || len(got.Problems) != 1 || log.read != 1 {
		t.Errorf("a problem in a log that does not grow: got %+v, %v after %d readings; want it after 1", got, err, log.read)
	}
	log = newSealed(t, 400)
	log.shown, log.grow = 1, 1
	got, err = log.checker(t, "a").Check(t.Context())
	if err != nil || len(got.Problems) == 0 || log.read > 30 || got.Entries < 15 {
		t.Errorf("a log without an end: got %+v, %v after %d readings; want problems after 21", got, err, log.read)
	}
}

// TestALogThatDoesNotAnswerIsNoResult lets each call of the log fail in turn: only this call, or all calls from
// this one on. The error of the log must be returned.
func TestALogThatDoesNotAnswerIsNoResult(t *testing.T) {
	since := audit.Query{Since: begun.Add(30 * time.Hour)}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, log *sealed) error
	}{
		{"a check", func(t *testing.T, log *sealed) error {
			_, err := log.checker(t, "a").Check(t.Context())
			return err
		}},
		{"a reseal", func(t *testing.T, log *sealed) error {
			_, err := log.checker(t, "ba").Reseal(t.Context())
			return err
		}},
		{"a search", func(t *testing.T, log *sealed) error {
			_, _, err := audit.Search(t.Context(), log, audit.Query{}, 0, 100)
			return err
		}},
		{"a search of a time", func(t *testing.T, log *sealed) error {
			_, _, err := audit.Search(t.Context(), log, since, 0, 100)
			return err
		}},
		{"an export", func(t *testing.T, log *sealed) error {
			return audit.Export(t.Context(), log, since, func(adminapi.Entry) error { return nil })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := 0; ; i++ {
				down, works := errors.New("down"), i/2
				log := newSealed(t, 40)
				log.err, log.works, log.once = down, works, i%2 == 0
				err := c.do(t, log)
				if !log.failed {
					if works < 2 || err != nil {
						t.Errorf("got %v after %d calls, want no error after some", err, works)
					}
					return
				}
				if !errors.Is(err, down) {
					t.Fatalf("call %d fails, once: %v: got %v, want its error", works+1, log.once, err)
				}
			}
		})
	}
}

// TestOneCheckRunsAtATime begins a check while another one is held up. The new check must wait.
func TestOneCheckRunsAtATime(t *testing.T) {
	log := newSealed(t, 3)
	begins, ends := make(chan bool), make(chan bool)
	checker := audit.NewChecker(log, func(ctx context.Context, visit func(audit.Record) error) error {
		begins <- true
		<-ends
		return log.records(ctx, visit)
	}, newSealer(t, "a"), time.Now)
	first := make(chan error, 1)
	check := func() {
		_, err := checker.Check(t.Context())
		first <- err
	}
	go check()
	<-begins
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.ErrOf(t, context.Canceled, "another check, cancelled")(checker.Check(ctx))
	ends <- true
	expect.Try(t, <-first)
	go check()
	<-begins
	ends <- true
	expect.Err(t, <-first, nil, "a check after the first")
}
