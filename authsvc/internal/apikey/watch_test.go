package apikey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/testing/expect"
)

// record is an audit log in memory that counts its reads.
type record struct {
	mu               sync.Mutex
	entries          []adminapi.Entry
	heads            int
	headErr, listErr error
}

func (r *record) Head(context.Context) (adminapi.Head, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heads++
	if len(r.entries) == 0 || r.headErr != nil {
		return adminapi.Head{}, r.headErr
	}
	last := r.entries[len(r.entries)-1]
	return adminapi.Head{Seq: last.Seq, Hash: last.Hash}, nil
}

func (r *record) Entries(_ context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := slices.IndexFunc(r.entries, func(e adminapi.Entry) bool { return e.Seq > after })
	if from < 0 || r.listErr != nil {
		return nil, r.listErr
	}
	return slices.Clone(r.entries[from:min(from+limit, len(r.entries))]), nil
}

// add appends an entry and returns the head.
func (r *record) add(subject string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := int64(len(r.entries) + 1)
	e := adminapi.Entry{Seq: n, Hash: authapi.Hash(fmt.Sprint(n)), Subject: subject}
	r.entries = append(r.entries, e)
	return adminapi.Head{Seq: n, Hash: e.Hash}.String()
}

// losing is a log that returns only its first entries. The field `left` is their number.
type losing struct {
	*record
	left int
}

func (l losing) Entries(ctx context.Context, after int64, _ int) ([]adminapi.Entry, error) {
	return l.record.Entries(ctx, after, l.left)
}

// TestAWatchTellsEachChangeOrAll asks for the changes since several heads. The answer must name every key that
// may have changed, because a gateway goes on trusting all other keys.
func TestAWatchTellsEachChangeOrAll(t *testing.T) {
	r := &record{}
	first := r.add("key k1")
	second := r.add("broker b1")
	for range 2 {
		r.add("webhook w")
	}
	head := r.add("key k2")
	all := authapi.WatchKeysResponse{At: head, All: true}
	few := authapi.WatchKeysResponse{At: head, Keys: []string{"k2"}, Brokers: []string{"b1"}}
	none := adminapi.Head{}.String()
	w := NewWatch(r)
	for _, c := range []struct {
		name, since string
		want        authapi.WatchKeysResponse
	}{
		{"the first change", first, few},
		{"the second change", second, authapi.WatchKeysResponse{At: head, Keys: []string{"k2"}}},
		{"the beginning", none, authapi.WatchKeysResponse{At: head, Keys: []string{"k1", "k2"}, Brokers: []string{"b1"}}},
		{"no head", "", all},
		{"a malformed head", "x", all},
		{"another log", strings.Replace(first, ":", ":00", 1)[:len(first)], all},
		{"a longer log", adminapi.Head{Seq: 9, Hash: authapi.Hash("9")}.String(), all},
		{"another log of this length", adminapi.Head{Seq: 5, Hash: authapi.Hash("x")}.String(), all},
	} {
		got, err := w.Await(t.Context(), c.since, time.Hour)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("since %s: got error %v; the answer differs (-want +got):\n%s", c.name, err, diff)
		}
	}
	kept := r.entries
	for left := range 2 { // the store loses entries between the read of its head and the read of its entries
		got, err := NewWatch(losing{r, left}).Await(t.Context(), first, time.Hour)
		expect.ErrorIf(t, err != nil || !got.All, "%d entries are left: got %+v, %v; want all", left, got, err)
	}
	for lost := range 3 { // the store lacks these entries, as after a restore of only some data
		r.entries = kept[lost+1:]
		if got, err := w.Await(t.Context(), first, time.Hour); err != nil || !got.All {
			t.Errorf("%d entries are lost: got %+v, %v; want all", lost+1, got, err)
		}
	}
}

// TestAWatchOfManyChangesSaysAll asks for answers that are just within their bounds, or just beyond. Only an
// answer beyond them must say "all".
func TestAWatchOfManyChangesSaysAll(t *testing.T) {
	for _, c := range []struct {
		changes int
		length  int // length of a key's id
		all     bool
	}{{maxChanges - 1, 5, false}, {maxChanges, 5, true}, {400, 100, true}} {
		r := &record{}
		since := r.add("key k")
		for n := range c.changes {
			r.add("key " + strings.Repeat("k", c.length-3) + fmt.Sprintf("%03d", n))
		}
		got, err := NewWatch(r).Await(t.Context(), since, time.Hour)
		if err != nil || got.All != c.all || !c.all && len(got.Keys) != c.changes {
			t.Errorf("%d changes: got all %t and %d keys, %v; want all: %t", c.changes, got.All, len(got.Keys), err, c.all)
		}
	}
}

// TestAGatewayReadsTheWholeAnswer makes an answer of exactly maxNames bytes, which gateways can still read, and one
// that is a byte longer. The longer one must say "all". JSON writes each "<" in six bytes.
func TestAGatewayReadsTheWholeAnswer(t *testing.T) {
	for more, all := range []bool{false, true} {
		r := &record{}
		since := r.add("key k")
		for range 300 {
			r.add("key " + strings.Repeat("<", 16) + "kkkk")
		}
		short, err := NewWatch(r).Await(t.Context(), since, time.Hour)
		expect.OK(t, err)
		text, err := json.Marshal(short)
		expect.OK(t, err)
		r.entries[1].Subject += strings.Repeat("k", maxNames-len(text)+more)
		got, err := NewWatch(r).Await(t.Context(), since, time.Hour)
		if err != nil || got.All != all || !all && len(got.Keys) != 300 {
			t.Errorf("%d bytes: got all %t and %d keys, %v; want all: %t", maxNames+more, got.All, len(got.Keys), err, all)
		}
	}
}

// TestAWatchWaits lets callers wait for a change, in virtual time. Each one must read the log a few times only.
func TestAWatchWaits(t *testing.T) {
	const callersAtOnce = 10
	for _, c := range []struct {
		name     string
		within   time.Duration // time until the deadline of the callers
		wait     time.Duration
		change   time.Duration // time until a change comes
		took     time.Duration
		mostRead int
	}{
		{"no change", time.Hour, time.Second, time.Hour, time.Second, 11},
		{"a deadline", time.Second, time.Hour, time.Hour, 800 * time.Millisecond, 9},
		{"a change", time.Hour, time.Minute, 250 * time.Millisecond, 300 * time.Millisecond, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &record{}
				since := r.add("key k1")
				w, begun := NewWatch(r), time.Now()
				var callers sync.WaitGroup
				for range callersAtOnce {
					callers.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), c.within)
						defer cancel()
						got, err := w.Await(ctx, since, c.wait)
						if took := time.Since(begun); err != nil || took != c.took {
							t.Errorf("got an answer after %v, %v; want one after %v", took, err, c.took)
						}
						if changed := c.change < c.took; (got.At != since) != changed || (len(got.Keys) > 0) != changed {
							t.Errorf("got %+v, want a change: %t", got, changed)
						}
					})
				}
				timer := time.AfterFunc(c.change, func() { r.add("key k2") })
				callers.Wait()
				timer.Stop()
				if most := callersAtOnce * c.mostRead; r.heads > most {
					t.Errorf("got %d reads of the log, want at most %d", r.heads, most)
				}
			})
		})
	}
}

// endless hides the deadline of a context.
type endless struct{ context.Context }

func (endless) Deadline() (end time.Time, within bool) { return end, false }

// TestAWatchOutlivesAPause lets the time of a caller end while it waits, as after a pause of the process. The answer
// must be that of the last read, because an error would tell operators of refused requests.
func TestAWatchOutlivesAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		since := r.add("key k1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got, err := NewWatch(r).Await(endless{ctx}, since, time.Hour)
		if diff := cmp.Diff(authapi.WatchKeysResponse{At: since}, got); err != nil || diff != "" {
			t.Errorf("got error %v; the answer differs (-want +got):\n%s", err, diff)
		}
	})
}

// TestAWatchWithoutItsLogIsAnError lets each read of the log fail. Then the watch must not answer, because a
// gateway trusts its keys while answers come.
func TestAWatchWithoutItsLogIsAnError(t *testing.T) {
	down := errors.New("down")
	r := &record{headErr: down}
	first := r.add("key k1")
	expect.ErrOf(t, down, "the first read")(NewWatch(r).Await(t.Context(), first, time.Hour))
	synctest.Test(t, func(t *testing.T) { // the clock stands still, so callers may share a read
		w := NewWatch(&record{headErr: down})
		for range 2 {
			expect.ErrOf(t, down, "one of two callers at once")(w.Await(t.Context(), first, time.Hour))
		}
	})
	r.headErr, r.listErr = nil, down
	r.add("key k2")
	expect.ErrOf(t, down, "the entries")(NewWatch(r).Await(t.Context(), first, time.Hour))
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		since := r.add("key k1")
		time.AfterFunc(time.Second, func() { r.mu.Lock(); defer r.mu.Unlock(); r.headErr = down })
		expect.ErrOf(t, down, "a read while a caller waits")(NewWatch(r).Await(t.Context(), since, time.Hour))
	})
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		since := r.add("key k1")
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		expect.ErrOf(t, context.Canceled, "a caller who leaves")(NewWatch(r).Await(ctx, since, time.Hour))
	})
}
