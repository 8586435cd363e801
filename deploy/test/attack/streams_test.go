package attack

import (
	"asset-registry/shared/testing/expect"
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"
)

// streamAttacks returns the attacks that use streams and long polls. The parameter `end` is an offset at the end of
// the feed.
func streamAttacks(r *Registry, end string) []attack {
	clients := scale(8, 60)
	return []attack{
		{"unread streams of many lists of fields", 10 * time.Second, func(ctx context.Context) *Outcome {
			return r.holdWhileChanging(ctx, Streams{clients, 40, "text/event-stream", func(client, n int) url.Values {
				query := url.Values{"offset": {end}}
				if n%2 == 0 {
					query.Set("opt_fields", fieldList(8*client+n))
				}
				return query
			}})
		}},
		{"unread streams of whole assets", 20 * time.Second, func(ctx context.Context) *Outcome {
			return r.holdWhileChanging(ctx, Streams{clients, 32, "application/x-ndjson", func(_, n int) url.Values {
				query := url.Values{"opt_fields": {"*"}}
				if n%2 == 0 {
					query.Set("offset", end)
				}
				return query
			}})
		}},
		{"long polls that are dropped", 5 * time.Second, func(ctx context.Context) *Outcome {
			return r.DropPolls(ctx, scale(20, 100))
		}},
	}
}

// holdWhileChanging holds streams open while large assets change.
func (r *Registry) holdWhileChanging(ctx context.Context, s Streams) *Outcome {
	changed := make(chan *Outcome, 1)
	go func() { changed <- r.Write(ctx, 4) }()
	o := r.Hold(ctx, s)
	c := <-changed
	o.wrong.Add(c.wrong.Load())
	if c.answered.Load() == 0 {
		o.fail(errors.New("no asset was changed, so the streams had nothing to send"))
	}
	return o
}

// fieldList returns a list of fields. Each n gives a different list.
func fieldList(n int) string {
	names := []string{"title", "status", "assetID", "owner", "items", "decisions", "assetCustodian", "description"}
	var list []string
	for i, name := range names {
		if (n+1)>>i&1 == 1 {
			list = append(list, name)
		}
	}
	return strings.Join(list, ",")
}

const (
	freedWithin     = 30 * time.Second
	spareGoroutines = 300 // number of additional goroutines that may remain, for connections that are kept open
	ownStreams      = 1   // the one stream with which the search service follows the feed
)

// usage is what a process spends on streams.
type usage struct{ streams, goroutines float64 }

func (m member) usage(t *testing.T) (u usage) {
	t.Helper()
	var err error
	if u.streams, err = Metric(t.Context(), m.metrics, "registry_gateway_streams"); err == nil {
		u.goroutines, err = Metric(t.Context(), m.metrics, "go_goroutine_count")
	}
	expect.OK(t, err)
	return u
}

// expectFreed waits until a process has no more streams of clients, and not many more goroutines than before.
func (m member) expectFreed(t *testing.T, before usage) {
	t.Helper()
	var now usage
	for end := time.Now().Add(freedWithin); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		now = m.usage(t)
		if now.streams <= ownStreams && now.goroutines <= before.goroutines+spareGoroutines {
			return
		}
	}
	t.Errorf("%s: got %+v after the attack, want at most one stream and about %v goroutines", m.name, now, before.goroutines)
}
