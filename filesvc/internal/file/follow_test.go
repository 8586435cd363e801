package file

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/testing/expect"
)

// growing is a feed to which a test adds documents. Each document is one position.
type growing struct{ all []Named }

func (g *growing) After(_ context.Context, position int64) ([]Named, int64, error) {
	return g.all[position:], int64(len(g.all)), nil
}

// TestDocumentsAreCompletedInTime runs a follower, which reads the feed each second. A document must be completed in
// the next round if this process stored the bytes or found the document. It must be completed after more than a
// minute if another process did so. Without such events, the follower asks for documents once in this time.
func TestDocumentsAreCompletedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		b, feed, documents := newBench(), &growing{}, &completions{fail: map[string]error{}}
		ctx, end := context.WithCancel(t.Context())
		asked, failing := 0, ""
		b.memory.step = func(operation string) error {
			if operation == "awaiting" {
				asked++
			}
			if operation == failing {
				return away
			}
			return nil
		}
		f := b.register(t, "content")
		name := func(asset string) { feed.all = append(feed.all, Named{Naming{f.ID, asset}, false, false}) }
		nothing := func() {}
		const done = "ed70 of 7 bytes in "
		stages := []struct {
			what   string
			begin  func()
			rounds int
			err    error    // told in each round
			want   []string // completed in these rounds
			asks   bool     // the follower asks for documents
		}{
			{"no bytes", func() { name("a") }, 2, nil, nil, true},
			{"the bytes", func() { must(t, f, errorOf(b.Upload(t.Context(), broker, f.ID, upload("content")))) }, 1, nil,
				[]string{done + "a"}, true},
			{"another document", func() { name("b") }, 1, nil, []string{done + "b"}, true},
			{"a document of another process", func() { must(t, f, b.memory.Await(t.Context(), Naming{f.ID, "c"})) }, 60, nil,
				nil, false},
			{"more than a minute", nothing, 1, nil, []string{done + "c"}, true},
			{"the feed is away", func() {
				failing = "reading"
				must(t, f, errorOf(b.Add(t.Context(), broker, upload("content"))))
			}, 2, away, nil, false},
			{"an asset is away", func() { failing, documents.fail["d"] = "", away; name("d") }, 2, away, nil, true},
			{"all is back", func() { delete(documents.fail, "d") }, 1, nil, []string{done + "d"}, true},
		}
		at, rounds, before := 0, 0, 0
		stages[0].begin()
		tell := func(err error) {
			if at == len(stages) {
				t.Errorf("got %v told after the end, want nothing", err)
				return
			}
			s := stages[at]
			if rounds++; !errors.Is(err, s.err) {
				t.Errorf("%s: got %v told, want %v", s.what, err, s.err)
			}
			if rounds < s.rounds {
				return
			}
			if !slices.Equal(documents.done, s.want) || (asked > before) != s.asks {
				t.Errorf("%s: got %q completed and %d questions, want %q and questions: %t", s.what, documents.done,
					asked-before, s.want, s.asks)
			}
			at, rounds, before, documents.done = at+1, 0, asked, nil
			if at < len(stages) {
				stages[at].begin()
				return
			}
			b.memory.step = func(string) error { end(); return away } // during the next round
		}
		Follower{Service: b.Service, Feed: feed, Awaited: b.memory, Documents: documents}.Run(ctx, time.Second, tell)
		expect.ErrorIf(t, at != len(stages), "got the end after %d stages, want it after %d", at, len(stages))
	})
}
