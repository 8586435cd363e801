package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"asset-registry/shared/randtest"
)

// way is a way in which a live follower reads the feed (docs/contract.md, "Streams").
type way string

const (
	pages  way = "pages"
	polls  way = "polls"
	hooks  way = "hooks" // a webhook: the registry sends messages (hook_test.go)
	events way = "events"
	lines  way = "lines"
)

// ways are all ways in which a follower can read, in the order in which the report lists them.
var ways = []way{pages, polls, events, lines}

// taste says what a live follower asks for, and in which ways.
type taste struct {
	ways         []way // each connection uses the next way in this list
	mode, fields string
	// How long the follower stays in a stream. If 0, it stays until a silence, or until a bookmark of test assets.
	stay time.Duration
}

// tastes returns the tastes of all live followers. Some use one way only, others use all ways in turn.
func tastes(each int) (all []taste) {
	for i := range each {
		for j, w := range ways {
			for k, mode := range []string{"", "_all_"} {
				stay := time.Duration((i+j+k)%2) * briefly
				all = append(all, taste{[]way{w}, mode, "", stay}, taste{[]way{w}, mode, "*", briefly - stay})
			}
		}
		all = append(all, taste{ways, "", "", briefly}, taste{ways, "_all_", "*", briefly},
			taste{[]way{events, lines}, "test", "", 0}, taste{ways, "test", "description", 0})
	}
	return all
}

const (
	silence    = 30 * time.Second // after a silence of this length, the follower begins a new connection
	briefly    = 5 * time.Second
	pollFor    = "2" // how long a long poll waits, in seconds
	leastPause = 10 * time.Millisecond
	stepsBack  = 20          // a follower may resume from a position that it passed at most this many messages ago
	catchUp    = time.Minute // how long the last entry may take to come after the faults have ended
)

// live is a follower that reads from the gateways. Whenever its connection ends, it resumes at a random gateway.
type live struct {
	*history
	taste
	client *http.Client

	at     string // the follower has got everything up to this position
	from   string // the position from which the connection began
	last   string // the newest position that has come on this connection
	passed []passing
	seen   map[place]sighting
	ended  bool // whether the last entry has come

	entries, repeats, bookmarks, connections int
}

// passing records when a follower has passed a position.
type passing struct {
	to   string
	tick int64 // value of history.ticks at that moment
}

// sighting is the first time that a follower got the entry of an asset at a position.
type sighting struct {
	description string
	way         way
	at          time.Time
}

// newLive returns a follower that connects from an IP address of its own, because the gateway limits how many
// streams one address may have.
func newLive(h *history, n int, t taste) *live {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+n/250), byte(1+n%250))}}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 2}
	return &live{history: h, taste: t, client: &http.Client{Transport: h.services.watched(transport)},
		seen: map[place]sighting{}}
}

// follow reads the feed until the last entry has come or ctx is done.
func (l *live) follow(ctx context.Context) {
	defer l.client.CloseIdleConnections()
	if l.ways[0] == hooks {
		l.receive(ctx)
		return
	}
	for ctx.Err() == nil && !l.ended {
		l.resume()
		l.connect(ctx, l.ways[l.connections%len(l.ways)])
		l.connections++
		time.Sleep(leastPause + randtest.N(leastPause+l.load.pause))
	}
}

// resume chooses where the next connection begins: after everything that has come, or sometimes at an earlier
// position, like a client that does not save its offset every time.
func (l *live) resume() {
	l.from = l.at
	if len(l.passed) > 0 && randtest.IntN(4) == 0 {
		l.from = l.passed[max(0, len(l.passed)-1-randtest.IntN(stepsBack))].to
	}
	l.last = l.from
}

// connect reads the feed in one way, until the connection ends.
func (l *live) connect(ctx context.Context, w way) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	within := silence
	if l.stay > 0 {
		within = randtest.N(l.stay)
	}
	timer := time.AfterFunc(within, cancel)
	defer timer.Stop()
	resp, err := l.client.Do(l.request(ctx, w))
	if err != nil {
		return
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		time.Sleep(10 * leastPause)
		return
	default:
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // the beginning of the body is enough for the report
		l.report.violation(&l.report.other, "%s from %q: got %d %s, want 200", w, l.from, resp.StatusCode, text)
		time.Sleep(10 * leastPause)
		return
	}
	if w == pages || w == polls {
		err = l.takePage(w, resp.Body)
	} else {
		err = readStream(resp.Body, w, func() {
			if l.stay == 0 {
				timer.Reset(silence)
			}
		}, func(m message) bool { return l.take(w, m) })
	}
	if errors.Is(err, errMalformed) {
		l.report.violation(&l.report.other, "%s from %q: %v", w, l.from, err)
	}
}

// request returns a request to a random gateway for everything after the position l.from.
func (l *live) request(ctx context.Context, w way) *http.Request {
	query, header := url.Values{}, http.Header{}
	for name, value := range map[string]string{"mode": l.mode, "opt_fields": l.fields, "offset": l.from} {
		if value != "" {
			query.Set(name, value)
		}
	}
	switch w {
	case polls:
		if query.Set("wait", pollFor); randtest.IntN(2) == 0 {
			query.Del("wait")
			header.Set("Prefer", "wait="+pollFor)
		}
	case events:
		header.Set("Accept", "text/event-stream")
		if l.from != "" && randtest.IntN(2) == 0 { // Last-Event-ID takes precedence over offset
			header.Set("Last-Event-ID", l.from)
			query.Set("offset", l.passed[0].to)
		}
	case lines:
		header.Set("Accept", "application/x-ndjson")
	}
	base := l.services.edges[randtest.IntN(len(l.services.edges))]
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/2.5/assets?"+query.Encode(), nil)
	if err != nil {
		panic(err) // the test itself is wrong
	}
	req.Header = header
	return req
}

// takePage passes the entries of a page to the function `take`.
func (l *live) takePage(w way, body io.Reader) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var p struct{ Data []message }
	if err := json.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	for _, m := range p.Data {
		l.take(w, m)
	}
	return nil
}

// take checks the order of a message, and remembers the message. It returns false if the follower leaves the stream
// after this message.
func (l *live) take(w way, m message) bool {
	if m.Bookmark != "" {
		l.bookmarks++
		if m.Bookmark < l.last {
			l.report.violation(&l.report.outOfOrder, "%s from %q: got the bookmark %s after %s", w, l.from, m.Bookmark, l.last)
		}
		l.pass(m.Bookmark)
		return l.mode != "test" || randtest.IntN(2) == 0 // a follower that leaves resumes at the bookmark
	}
	// Positions rise within a connection. Entries may repeat only if the connection began at an earlier position.
	if m.DateModified <= l.last {
		l.report.violation(&l.report.outOfOrder, "%s from %q: got %s at %s after %s, want a later position", w, l.from, m.ID,
			m.DateModified, l.last)
	}
	l.entries++
	at := place{m.ID, m.DateModified}
	if _, again := l.seen[at]; again {
		l.repeats++
	} else {
		l.seen[at] = sighting{m.Description, w, time.Now()}
	}
	if l.fields == "*" && len(m.Items) == 0 {
		l.report.violation(&l.report.other, "%s: got %v without items, want a whole asset", w, at)
	}
	l.pass(m.DateModified)
	l.ended = l.ended || m.ID == l.lastID(l.mode)
	return !l.ended
}

// pass records that the follower has got everything up to a position.
func (l *live) pass(to string) {
	l.last = to
	if to > l.at {
		l.at = to
		l.passed = append(l.passed, passing{to, l.ticks.Load()})
	}
}
