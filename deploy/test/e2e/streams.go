package e2e

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// The formats of streams.
const (
	asEvents = "text/event-stream"
	asLines  = "application/x-ndjson"
)

// streamWithin is how long a test waits for a message that must come.
const streamWithin = 40 * time.Second

// stream is an open stream of the feed.
type stream struct {
	format string
	header http.Header
	blocks chan string // each event of an event stream, or each line that is not empty
	close  func()
}

// openStream opens a stream of the feed.
func (a api) openStream(t *testing.T, c call) *stream {
	t.Helper()
	s, resp := a.tryStream(t, c)
	if s == nil {
		t.Fatalf("%s: got %d with Content-Type %q, want 200 with %q", c.path, resp.StatusCode,
			resp.Header.Get("Content-Type"), c.header["Accept"])
	}
	return s
}

// tryStream opens a stream of the feed. If the answer is not a stream, it returns nil and the answer.
func (a api) tryStream(t *testing.T, c call) (*stream, *http.Response) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, cmp.Or(c.method, http.MethodGet), a.base+"/api/"+a.version+c.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.setHeader(req)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", c.path, err)
	}
	s := &stream{format: c.header["Accept"], header: resp.Header, blocks: make(chan string, 10_000)}
	s.close = func() {
		cancel()
		_ = resp.Body.Close() // an error says that the stream was canceled
	}
	t.Cleanup(s.close)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != s.format {
		s.close()
		return nil, resp
	}
	go func() {
		defer close(s.blocks)
		text := bufio.NewScanner(resp.Body)
		text.Buffer(nil, 1<<24)
		block := ""
		for text.Scan() {
			switch line := text.Text(); {
			case s.format == asEvents && line != "":
				block += line + "\n"
			case s.format == asEvents:
				s.blocks <- block
				block = ""
			case line != "":
				s.blocks <- line
			}
		}
	}()
	return s, resp
}

// The method `next` returns the next event or line.
func (s *stream) next(t *testing.T) string {
	t.Helper()
	select {
	case block, open := <-s.blocks:
		if !open {
			t.Fatal("got the end of the stream, want a message")
		}
		return block
	case <-time.After(streamWithin):
		t.Fatalf("got no message within %v, want one", streamWithin)
		return ""
	}
}

// entryOf waits for the entry of an asset, and returns its JSON. It checks that the positions of messages rise.
func (s *stream) entryOf(t *testing.T, id string) string {
	t.Helper()
	for last := ""; ; {
		position, data := s.parse(t, s.next(t))
		if data == "" {
			continue
		}
		var e struct{ ID, DateModified string }
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("got the entry %s: %v", data, err)
		}
		if e.DateModified <= last || s.format == asEvents && e.DateModified != position {
			t.Errorf("got %s after %s with the id %q, want a later one with an equal id", e.DateModified, last, position)
		}
		if last = e.DateModified; e.ID == id {
			return data
		}
	}
}

// parse returns the position of an event or a line, and the JSON of its entry. The JSON is "" if the message has no
// entry.
func (s *stream) parse(t *testing.T, block string) (id, data string) {
	t.Helper()
	if s.format == asLines {
		if strings.HasPrefix(block, `{"bookmark":`) {
			return "", ""
		}
		return "", block
	}
	fields := map[string]string{}
	for line := range strings.Lines(block) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		fields[name] = value
	}
	if fields["event"] == "bookmark" {
		return fields["id"], ""
	}
	return fields["id"], fields["data"]
}

// testStreams follows the feed in both formats (docs/contract.md, "Streams"). A page of the feed must have the same
// entries.
// Promises: stream
func testStreams(t *testing.T, a api) {
	start := url.QueryEscape(a.now(t))
	before := a.publish(t, validAsset())
	for _, format := range []string{asEvents, asLines} {
		for _, wanted := range []string{"", "*", "status,title"} {
			query := "mode=_all_&opt_fields=" + url.QueryEscape(wanted) + "&offset=" + start
			s := a.openStream(t, call{path: "/assets?" + query, header: map[string]string{"Accept": format}})
			if format == asEvents {
				if first := s.next(t); !strings.HasPrefix(first, "retry: ") {
					t.Errorf("got the first event %q, want retry:", first)
				}
			}
			s.entryOf(t, before.id)
			after := a.publish(t, validAsset())
			got := s.entryOf(t, after.id)
			s.close()
			var want struct{ Data []json.RawMessage }
			page := a.page(t, "?"+query+"&limit=1000")
			if err := json.Unmarshal([]byte(page.text), &want); err != nil {
				t.Fatal(err)
			}
			isWanted := func(e json.RawMessage) bool { return string(e) == got }
			if !slices.ContainsFunc(want.Data, isWanted) {
				t.Errorf("%s of %q: got %s, want an entry of %s", format, wanted, got, page.text)
			}
		}
	}
}

// testResumption resumes a stream after a position. The stream must have only later entries, and the headers of a
// stream. A malformed or foreign position must be refused.
func testResumption(t *testing.T, a api) {
	start := a.now(t)
	first, second := a.publish(t, validAsset()), a.publish(t, validAsset())
	modified := text(first.data()["dateModified"])
	accept := map[string]string{"Accept": asEvents}
	path := "/assets?offset=" + url.QueryEscape(start)
	resumed := a.openStream(t, call{path: path, header: map[string]string{"Accept": asEvents, "Last-Event-ID": modified}})
	resumed.next(t) // the first message sets the retry time
	for {
		position, _ := resumed.parse(t, resumed.next(t))
		if position <= modified {
			t.Errorf("got an entry at %s, want all after the Last-Event-ID %s", position, modified)
		}
		if position == text(second.data()["dateModified"]) {
			break
		}
	}
	for _, s := range []*stream{resumed, a.openStream(t, call{method: http.MethodHead, path: path, header: accept})} {
		for name, want := range map[string]string{"Cache-Control": "no-store", "ETag": "", "Content-Encoding": "",
			"X-Content-Type-Options": "nosniff"} {
			if got := s.header.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		if !slices.Contains(s.header.Values("Vary"), "Accept") {
			t.Errorf("got Vary %q, want Accept in it", s.header.Values("Vary"))
		}
	}
	for _, format := range []string{asEvents, asLines} {
		bad := call{method: "GET", path: "/assets?offset=never", header: map[string]string{"Accept": format}}
		a.do(t, bad).fails(t, 404, "querystring/offset")
		bad = call{method: "GET", path: "/assets", header: map[string]string{"Accept": format, "Last-Event-ID": "never"}}
		a.do(t, bad).fails(t, 404, "querystring/offset")
		foreign := call{method: "GET", path: path, header: map[string]string{"Accept": format, "Cookie": "SERVER_ID=gone"}}
		if got := a.do(t, foreign).fails(t, 404, "querystring/offset"); got.header.Get("Set-Cookie") == "" {
			t.Error("got no Set-Cookie with the refusal of an offset of other data, want one")
		}
	}
	both := call{method: "GET", path: path, header: map[string]string{"Accept": "application/json, " + asEvents}}
	if got := a.do(t, both).must(t, 200); got.json["next_page"] == nil {
		t.Errorf("got %s for a client that accepts JSON too, want a page", got.text)
	}
}

// testLongPolls requests pages of the feed, and asks the registry to wait for changes. The answer must come when an
// asset changes.
func testLongPolls(t *testing.T, a api) {
	for _, c := range []call{
		{method: "GET", path: "/assets?mode=_all_&wait=60&offset="},
		{method: "GET", path: "/assets?mode=_all_&offset=", header: map[string]string{"Prefer": "respond-async, wait=60"}},
	} {
		c.path += url.QueryEscape(a.now(t))
		polled := make(chan answer, 1)
		go func() { polled <- a.do(t, c) }()
		time.Sleep(200 * time.Millisecond) // usually the poll waits by then; if not, the answer is still right
		changed := a.publish(t, validAsset())
		// Other clients may have changed an asset before this test did.
		got := <-polled
		if entries := list(got.must(t, 200).json["data"]); len(entries) == 0 {
			t.Errorf("got the empty page %s while %s was published, want an entry", got.text, changed.id)
		}
	}
	never := "&offset=" + url.QueryEscape(time.Now().Add(50*time.Second).UTC().Format(time.RFC3339))
	for _, wait := range []string{"1", "0", "x", "-5", "60&descending=1"} {
		got := a.do(t, call{method: "GET", path: "/assets?wait=" + wait + never}).must(t, 200)
		if !strings.Contains(wait, "descending") && len(list(got.json["data"])) != 0 {
			t.Errorf("wait=%s: got %s after the end of the feed, want an empty page", wait, got.text)
		}
	}
}

// clientStreams is how many streams and long polls one key may have open at the same time.
const clientStreams = 32

// maxGateways is the largest number of gateways that a registry under test has. Each gateway applies the limit
// separately.
const maxGateways = 4

// testStreamLimit opens as many streams as one key may have, and more. Only the additional streams must be refused.
func testStreamLimit(t *testing.T, a api) {
	const key = "broker4t" // no other scenario follows the feed with this key
	path := "/assets?offset=" + url.QueryEscape(a.now(t))
	open := call{method: "GET", path: path, key: key, header: map[string]string{"Accept": asLines}}
	var all []*stream
	for refusals := 0; refusals < 20; { // 20 refusals in a row show that every gateway refuses
		s, resp := a.tryStream(t, open)
		switch {
		case s != nil && len(all) < maxGateways*clientStreams:
			all, refusals = append(all, s), 0
		case s == nil && resp.StatusCode == http.StatusTooManyRequests:
			refusals++
		default:
			t.Fatalf("with %d streams open: got %d to one more, want 429", len(all), resp.StatusCode)
		}
	}
	if len(all) == 0 || len(all)%clientStreams != 0 {
		t.Errorf("got %d streams of one client, want %d at each gateway", len(all), clientStreams)
	}
	refused := a.do(t, open).fails(t, 429, "header/X-RateLimit-Limit")
	if refused.header.Get("Retry-After") == "" {
		t.Error("got no Retry-After with the refusal, want one")
	}
	a.do(t, call{method: "GET", path: path + "&wait=1", key: key}).fails(t, 429, "header/X-RateLimit-Limit")
	a.do(t, call{method: "GET", path: path, key: key}).must(t, 200) // without "wait", the limit does not apply
	// This check needs a single gateway without a proxy. Behind a proxy, a gateway notices only at its next
	// heartbeat that a client has left.
	if len(all) == clientStreams {
		all[0].close()
		soon(t, "a closed stream makes room", streamWithin, func() bool {
			return a.do(t, call{method: "GET", path: path + "&wait=1", key: key}).status == http.StatusOK
		})
	}
	for _, s := range all {
		s.close()
	}
}

// awaitBookmark follows the test assets while other scenarios change real assets. The returned function waits for a
// bookmark whose position is later than the position of a real asset. A client that resumes from such a bookmark
// does not read past the real assets again.
func (a api) awaitBookmark(t *testing.T) (check func(*testing.T)) {
	t.Helper()
	start := a.now(t)
	path := "/assets?mode=test&offset=" + url.QueryEscape(start)
	s := a.openStream(t, call{path: path, header: map[string]string{"Accept": asEvents}})
	passed := text(a.publish(t, validAsset()).data()["dateModified"])
	return func(t *testing.T) {
		for {
			position, data := s.parse(t, s.next(t))
			if position > passed && data == "" {
				passed = position
				break
			}
		}
		s.close()
		a.page(t, "?mode=test&offset="+url.QueryEscape(passed))
		after := a.publish(t, validAsset().set("mode", "test"))
		resumed := a.openStream(t, call{path: "/assets?mode=test", header: map[string]string{"Accept": asLines,
			"Last-Event-ID": passed}})
		resumed.entryOf(t, after.id)
	}
}
