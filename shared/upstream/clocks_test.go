package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// knows lists the machines whose clocks a machine learns: those of the servers that it calls, and of its store.
var knows = map[string][]string{
	"gateway": {"a1", "a2", "a3", "auth", "files"},
	"a1":      {"auth", "files", "primary"},
	"a2":      {"auth", "files", "primary"},
	"a3":      {"auth", "files", "primary"},
	"auth":    {"a1", "a2", "a3", "redis"},
	"files":   {"a1", "a2", "a3", "primary"},
}

// world has a clock for each machine.
type world struct {
	wrong map[string]time.Duration // how far a clock is ahead
	at    map[string]*Clocks
}

func newWorld() *world {
	w := &world{wrong: map[string]time.Duration{}, at: map[string]*Clocks{}}
	for name := range knows {
		w.at[name] = NewClocks(func() time.Time { return w.now(name) }, slog.New(slog.DiscardHandler))
	}
	return w
}

func (w *world) now(name string) time.Time { return time.Now().Add(w.wrong[name]) }

// look lets each machine learn the clocks that it knows, and returns those that left the rotation and those that warn.
// Machines that a caller leaves out have left it too.
func (w *world) look(t *testing.T) (left, warn []string) {
	gone := map[string]bool{}
	for name, others := range knows {
		for _, other := range others {
			w.at[name].Note(other, w.now(other))
		}
		for _, other := range others {
			if w.at[name].wrong(w.now(other)) != nil && knows[other] != nil {
				gone[other] = true
			}
		}
		err := w.at[name].Ready(func(context.Context) error { return nil }, nil)(t.Context())
		if err != nil {
			gone[name] = true
		}
		if len(w.at[name].Warnings(nil)(t.Context())) > 0 {
			warn = append(warn, name)
		}
	}
	slices.Sort(warn)
	return slices.Sorted(maps.Keys(gone)), warn
}

func TestWhoLeavesTheRotation(t *testing.T) {
	for _, c := range []struct{ who, warn []string }{
		{[]string{"gateway"}, nil}, {[]string{"a1"}, nil}, {[]string{"auth"}, nil}, {[]string{"files"}, nil},
		{[]string{"a1", "a2"}, nil}, {[]string{"a1", "files"}, []string{"a1"}}, {[]string{"primary"}, nil},
		{[]string{"redis"}, nil},
	} {
		for _, by := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, 2 * time.Second, 90 * time.Second,
			time.Hour} {
			for _, by := range []time.Duration{by, -by} {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld()
					for _, step := range []time.Duration{0, by, 0, by, -by, 0} { // the clocks are wrong, right, and wrong again
						var want, warn []string
						for _, name := range c.who {
							w.wrong[name] = step
							if step.Abs() > time.Minute && knows[name] != nil {
								want, warn = append(want, name), c.warn
							}
						}
						time.Sleep(time.Second)
						left, warned := w.look(t)
						if !slices.Equal(left, want) || !slices.Equal(warned, warn) {
							t.Errorf("%v %v wrong: got %v out of the rotation and warnings of %v, want %v and %v", c.who, step, left,
								warned, want, warn)
						}
					}
				})
			}
		}
	}
}

// TestWithoutAMajorityNobodyLeaves has two clocks, and four of which two agree.
func TestWithoutAMajorityNobodyLeaves(t *testing.T) {
	for _, others := range [][]time.Duration{{time.Hour}, {-time.Hour}, {0, time.Hour, time.Hour}, {time.Hour, -time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			c := NewClocks(time.Now, slog.New(slog.DiscardHandler))
			for i, by := range others {
				c.Note(fmt.Sprint(i), time.Now().Add(by))
				if err := c.wrong(time.Now().Add(by)); err != nil && i == len(others)-1 {
					t.Errorf("others at %v: got %v about one of them, want no verdict", others, err)
				}
			}
			err := c.Ready(func(context.Context) error { return nil }, nil)(t.Context())
			before := func(context.Context) []string { return []string{"one"} }
			if got := c.Warnings(before)(t.Context()); err != nil || len(got) != 2 || got[0] != "one" {
				t.Errorf("others at %v: got %v and warnings %q, want none and a second warning", others, err, got)
			}
			time.Sleep(shownFor)
			want := time.Now().Add(others[0])
			if got := c.Others(); !slices.ContainsFunc(got, want.Equal) {
				t.Errorf("others at %v: got the clocks %v, want %v among them, which has counted on", others, got, want)
			}
			time.Sleep(time.Second)
			if got := c.Warnings(nil)(t.Context()); len(got) != 0 {
				t.Errorf("others at %v, read long ago: got %q, want no warning", others, got)
			}
		})
	}
}

// clocked is a store with a clock.
type clocked struct{ err error }

func (c clocked) Clock(context.Context) (time.Time, error) { return time.Now().Add(time.Hour), c.err }

// TestAMachineSaysWhyItIsNotReady also has a store that has a clock, and one that does not answer.
func TestAMachineSaysWhyItIsNotReady(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		store any
		check error
		want  string
	}{
		{clocked{}, nil, "The clock of this machine is 1h0m0s behind those of most others. Set it (NTP)."},
		{clocked{failed}, nil, ""}, {"no clock", nil, ""}, {nil, nil, ""}, {clocked{}, failed, "failed"},
	} {
		synctest.Test(t, func(t *testing.T) {
			clocks := NewClocks(time.Now, slog.New(slog.DiscardHandler))
			clocks.Note("peer", time.Now().Add(time.Hour))
			got := ""
			if err := clocks.Ready(func(context.Context) error { return c.check }, c.store)(t.Context()); err != nil {
				got = err.Error()
				if f, ok := errors.AsType[*fault.Error](err); ok {
					got = f.Details[0].Description
				}
			}
			expect.Equal(t, got, c.want, "store %v", c.store)
		})
	}
}

// TestAServerWithAWrongClockIsLeftOut has a server that says that it is ready, with a clock that is wrong.
func TestAServerWithAWrongClockIsLeftOut(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		var urls []string
		for _, ahead := range []time.Duration{0, by, 0} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
			}))
			t.Cleanup(s.Close)
			urls = append(urls, s.URL)
		}
		clocks := NewClocks(time.Now, slog.New(slog.DiscardHandler))
		p, err := New(Config{
			Name: "test", URLs: urls, Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{}, Clocks: clocks,
		})
		expect.OK(t, err)
		t.Cleanup(p.Close)
		for ready := 3; ready != 2 || len(clocks.Others()) != 3; ready, _ = p.Ready() {
			time.Sleep(time.Millisecond)
		}
		for range 9 {
			if s := p.pick(nil); "http://"+s.addr == urls[1] {
				t.Errorf("%v ahead: got the server with the wrong clock, want another", by)
			}
		}
	}
}
