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

// way is how a live follower reads the feed (docs/contract.md, "Streams").
type way string

const (
	pages  way = "pages"
	polls  way = "polls"
	events way = "events"
	lines  way = "lines"
)

// ways are all ways, in the order of the report.
var ways = []way{pages, polls, events, lines}

// taste is what a live follower asks for.
type taste struct {
	ways         []way // taken in turn, one for each connection
	mode, fields string
	stay         time.Duration // it leaves a stream before; 0: after a silence or a bookmark of test assets
}

// tastes returns the tastes of live followers: each way alone, and all ways in turn.
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
	silence    = 30 * time.Second // a follower begins again after it
	briefly    = 5 * time.Second
	pollFor    = "2" // seconds
	leastPause = 10 * time.Millisecond
	stepsBack  = 20          // a follower may resume from so many messages before
	catchUp    = time.Minute // from the end of the faults to the last entry
)

// live is a follower that reads from the gateways. It resumes at another one whenever
// its connection ends.
type live struct {
	*history
	taste
	client *http.Client

	at     string // all up to here has come
	from   string // where the connection began
	last   string // the newest position of the connection
	passed []passing
	seen   map[place]sighting
	ended  bool // the last entry has come

	entries, repeats, bookmarks, connections int
}

// passing is when a follower has passed a position.
type passing struct {
	to   string
	tick int64 // of history.ticks
}

// sighting is the first entry of an asset at a position.
type sighting struct {
	description string
	way         way
	at          time.Time
}

// newLive returns a follower with an address of its own: the gateway limits the streams
// of one address.
func newLive(h *history, n int, t taste) *live {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+n/250), byte(1+n%250))}}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 2}
	return &live{history: h, taste: t, client: &http.Client{Transport: transport}, seen: map[place]sighting{}}
}

// follow reads the feed until the last entry or until ctx ends.
func (l *live) follow(ctx context.Context) {
	defer l.client.CloseIdleConnections()
	for ctx.Err() == nil && !l.ended {
		l.resume()
		l.connect(ctx, l.ways[l.connections%len(l.ways)])
		l.connections++
		time.Sleep(leastPause + randtest.N(leastPause))
	}
}

// resume chooses where the next connection begins: after all that has come, or at an
// earlier place, as a client that saves its offset only now and then.
func (l *live) resume() {
	l.from = l.at
	if len(l.passed) > 0 && randtest.IntN(4) == 0 {
		l.from = l.passed[max(0, len(l.passed)-1-randtest.IntN(stepsBack))].to
	}
	l.last = l.from
}

// connect reads the feed in one way until the connection ends.
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
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // for the report
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

// request returns a request to any gateway for what comes after l.from.
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
		if l.from != "" && randtest.IntN(2) == 0 { // it wins over offset
			header.Set("Last-Event-ID", l.from)
			query.Set("offset", l.passed[0].to)
		}
	case lines:
		header.Set("Accept", "application/x-ndjson")
	}
	base := l.services.edges[randtest.IntN(len(l.services.edges))]
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/2.5/assets?"+query.Encode(), nil)
	if err != nil {
		panic(err) // the test is wrong
	}
	req.Header = header
	return req
}

// takePage takes the entries of a page.
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

// take checks the order of a message and remembers it. It returns false if the follower
// leaves the stream.
func (l *live) take(w way, m message) bool {
	if m.Bookmark != "" {
		l.bookmarks++
		if m.Bookmark < l.last {
			l.report.violation(&l.report.outOfOrder, "%s from %q: got the bookmark %s after %s", w, l.from, m.Bookmark, l.last)
		}
		l.pass(m.Bookmark)
		return l.mode != "test" || randtest.IntN(2) == 0 // if it leaves, the next connection begins at the bookmark
	}
	// Positions rise within a connection, so only one that began at an earlier place may
	// repeat entries.
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

// pass notes that all up to a position has come.
func (l *live) pass(to string) {
	l.last = to
	if to > l.at {
		l.at = to
		l.passed = append(l.passed, passing{to, l.ticks.Load()})
	}
}
