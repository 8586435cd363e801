package storetest

import (
	"context"
	"io"
	"testing"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/identity"
)

// noBytes is a store of bytes that has none.
type noBytes struct{ file.Bytes }

func (noBytes) Names(context.Context, string, int) ([]string, error) { return nil, nil }
func (noBytes) Removals(context.Context) ([]file.File, error)        { return nil, nil }
func (noBytes) Tidy(context.Context, time.Time) error                { return nil }
func (noBytes) NoteRemoval(context.Context, file.File) error         { return nil }
func (noBytes) Remove(context.Context, string) error                 { return nil }
func (noBytes) Put(_ context.Context, _ string, from io.Reader) error {
	_, err := io.Copy(io.Discard, from)
	return err
}

// noAssets is a feed without assets.
type noAssets struct{}

func (noAssets) After(_ context.Context, position int64) ([]file.Named, int64, error) {
	return nil, position, nil
}

// registry is a file service with a clock that the test sets, and one that nobody sets.
type registry struct {
	*file.Service
	steady time.Duration
	ahead  time.Duration // how far the clock is ahead of the right time
	begun  time.Time
}

func newRegistry(s Metadata) *registry {
	r := &registry{begun: at}
	limits := file.Limits{FileBytes: 1 << 20, BrokerBytes: 1 << 30, Waiting: 1 << 20}
	r.Service = file.NewService(s, s, noBytes{}, limits, func() time.Time { return r.begun.Add(r.steady + r.ahead) })
	return r
}

// hour lets an hour pass. Then the feed is read, if `reads` is true, and the collector runs.
func (r *registry) hour(t *testing.T, s Metadata, reads bool) {
	t.Helper()
	r.steady += time.Hour
	if reads {
		must(t, file.Follower{Service: r.Service, Feed: noAssets{}, Awaited: s}.Read(t.Context()))
	}
	_, err := r.Collect(t.Context(), func() time.Duration { return r.steady })
	must(t, err)
}

// testClocks lets the clock of a file service be wrong, in each direction, for a run of the collector at a time. No
// file may go within a day, and no file may stay for ever.
// Promises: unnamed-files
func testClocks(t *testing.T, s Metadata) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	errors := []time.Duration{-10 * year, -day, -time.Minute, time.Minute, day, 10 * year}
	by := identity.Identity{Broker: "clocks", KeyID: "k1", Role: identity.Broker}
	r := newRegistry(s)
	add := func() string {
		f, err := r.Register(t.Context(), by, waiting(1, "").MD5)
		must(t, err)
		return f.ID
	}
	there := func(name, id string, want bool) {
		t.Helper()
		if _, err := r.Get(t.Context(), id); (err == nil) != want {
			t.Errorf("%s: got the file: %t (%v), want %t", name, err == nil, err, want)
		}
	}
	var wrong []string
	claimed := add()
	for _, ahead := range errors {
		r.ahead = ahead
		wrong = append(wrong, add())
		r.hour(t, s, true)
		r.ahead = 0
	}
	right := add()
	for n := range 17 { // less than a day after the first file
		r.ahead = 0
		if n%2 == 0 {
			r.ahead = errors[n/2%len(errors)]
		}
		r.hour(t, s, true)
	}
	r.ahead = 0
	for i, id := range wrong {
		there("touched by a clock that was "+errors[i].String()+" ahead", id, true)
	}
	there("touched by the right clock", right, true)
	_, err := r.Claim(t.Context(), claimed, file.Claim{MD5: waiting(1, "").MD5, Broker: by.Broker})
	must(t, err)
	for range 12 {
		r.hour(t, s, true)
	}
	there("claimed within a day", claimed, true)
	there("touched by the right clock, after more than a day", right, false)
	for _, ahead := range []time.Duration{day, 10 * year} {
		unread := add()
		r.ahead = ahead
		must(t, file.Follower{Service: r.Service, Feed: noAssets{}, Awaited: s}.Read(t.Context()))
		r.ahead = 0
		for range 30 {
			r.hour(t, s, false)
		}
		there("the feed was not read since a clock was "+ahead.String()+" ahead", unread, true)
		r.hour(t, s, true)
		there("the feed was read again", unread, false)
	}
	for i, id := range append(wrong, claimed) {
		there("after more than two days, file "+errors[min(i, len(errors)-1)].String(), id, false)
	}
}
