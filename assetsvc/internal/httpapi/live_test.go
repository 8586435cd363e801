package httpapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/live"
	"asset-registry/shared/follow"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
)

// newFeed returns a service whose feed can be followed, and the address of its server.
func newFeed(t *testing.T, hidden ...asset.Group) (service, string) {
	t.Helper()
	s, _ := newFeedEnding(t, nil, hidden...)
	server := httptest.NewServer(s.handler)
	t.Cleanup(server.Close)
	return s, server.URL
}

// newFeedEnding returns a service whose feed can be followed until the channel `ending` is closed, and the watcher of
// the feed.
func newFeedEnding(t *testing.T, ending <-chan struct{}, hidden ...asset.Group) (service, *live.Watcher) {
	t.Helper()
	s, api, engine := newServiceParts(t, NewMemory(1<<30), hidden...)
	w := live.New(api.registry, PrintOffset(api.zone), 1<<20, slog.New(slog.DiscardHandler))
	t.Cleanup(w.Close)
	engine.Use(func(c *gin.Context) {
		c.Header("Is-Live", strconv.FormatBool(IsLive(c))) // for TestALiveFeedLeavesItsPlace
	})
	api.RouteFeed(engine, s.signer, w, ending)
	return s, w
}

// messages reads messages up to the first one at or after a given position. It leaves out positions and offsets,
// which differ in each run.
func messages(t *testing.T, r *follow.Reader, until int64) (texts []string, last int64) {
	t.Helper()
	for {
		m, err := r.Next()
		expect.Must(t, err, "after %q", texts)
		switch m.Kind {
		case follow.EntryKind:
			data := expect.Get(r.Data(1 << 20))(t)
			_, rest, _ := strings.Cut(string(data), `+00:00"`)
			texts = append(texts, "entry "+rest)
		case follow.GapKind:
			texts = append(texts, "gap")
		case follow.BookmarkKind:
			texts = append(texts, "bookmark")
		}
		if m.Position >= until {
			return texts, m.Position
		}
	}
}

// get requests a path of the feed, like the gateway does.
func (s service) get(ctx context.Context, t *testing.T, address string) *http.Response {
	t.Helper()
	r := expect.Get(http.NewRequestWithContext(ctx, http.MethodGet, address, nil))(t)
	signed := expect.Get(s.signer.Sign(identity.Identity{}))(t)
	r.Header.Set(identity.Header, signed)
	resp := expect.Get(http.DefaultClient.Do(r))(t)
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// positionAt returns the position of the asset at a path. It reads the position from the asset's tag.
func (s service) positionAt(t *testing.T, at string) int64 {
	t.Helper()
	tag := s.do(t, exchange{"GET", at, "", "", "", 200, ""}).Header().Get("ETag")
	number, _, _ := strings.Cut(strings.Trim(tag, `"`), "-")
	position, err := strconv.ParseInt(number, 10, 64)
	expect.FatalIf(t, err != nil, "got tag %s, want a position first", tag)
	return position
}

func TestAPageOfTheFeedSaysHowFarItIsComplete(t *testing.T) {
	s, address := newFeed(t)
	s.published(t)
	last := s.positionAt(t, s.published(t))
	for _, c := range []struct {
		name, query string
		want        []string
	}{
		{"all", "", []string{"bookmark", "entry }", "entry }", "bookmark"}},
		{"a limit", "?limit=1", []string{"bookmark", "entry }", "bookmark"}},
		{"after the end", "?offset=" + time.Now().Add(50*time.Second).UTC().Format(time.RFC3339),
			[]string{"bookmark", "bookmark"}},
		{"long after the end", "?offset=2099-01-01", []string{"gap", "bookmark"}},
		{"a field", "?limit=1&opt_fields=status", []string{"bookmark", `entry ,"status":"pending"}`, "bookmark"}},
		{"no test assets", "?mode=test", []string{"bookmark", "bookmark"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := s.get(t.Context(), t, address+"/feed/2.5/page"+c.query)
			body, err := io.ReadAll(resp.Body)
			if kind := resp.Header.Get("Content-Type"); err != nil || resp.StatusCode != 200 || kind != follow.ContentType {
				t.Fatalf("got status %d, %v and %s; want 200 and %s", resp.StatusCode, err, kind, follow.ContentType)
			}
			r := follow.NewReader(strings.NewReader(string(body)))
			var got []string
			var upto int64
			for range c.want {
				texts, position := messages(t, r, 0)
				got, upto = append(got, texts...), position
			}
			expect.NoDiff(t, cmp.Diff(c.want, got), "the messages differ")
			if isPart := strings.Contains(c.query, "limit=1"); upto != last && !isPart || upto >= last && isPart {
				t.Errorf("got a page up to %d; the feed ends at %d", upto, last)
			}
			if _, err := r.Next(); err != io.EOF {
				t.Errorf("after the last message: got %v, want the end", err)
			}
		})
	}
	for _, c := range []struct {
		query  string
		status int
	}{{"?offset=yesterday", 404}, {"?limit=0", 400}, {"?%zz", 400}} {
		expect.Equal(t, s.get(t.Context(), t, address+"/feed/2.5/page"+c.query).StatusCode, c.status, "%s, status",
			c.query)
	}
}

func TestALiveFeedSendsChangesAsTheyCome(t *testing.T) {
	s, address := newFeed(t)
	before := s.positionAt(t, s.published(t))
	ctx, leave := context.WithCancel(t.Context())
	resp := s.get(ctx, t, address+"/feed/2.5/live?opt_fields=status")
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != follow.ContentType {
		t.Fatalf("got status %d and %s, want 200 and %s", resp.StatusCode, got, follow.ContentType)
	}
	r := follow.NewReader(resp.Body)
	first, upto := messages(t, r, before)
	if diff := cmp.Diff([]string{"bookmark"}, first); diff != "" || upto != before {
		t.Errorf("got a beginning at %d, want %d; the messages differ (-want +got):\n%s", upto, before, diff)
	}
	after := s.positionAt(t, s.published(t))
	var entries []string
	texts, _ := messages(t, r, after)
	for _, text := range texts { // skip bookmarks: drafts cause them too, because they move the horizon
		if text != "bookmark" {
			entries = append(entries, text)
		}
	}
	expect.NoDiff(t, cmp.Diff([]string{`entry ,"status":"pending"}`}, entries), "the messages differ")
	leave()
}

// TestTheFeedHasNoHiddenFields reads an asset from a page of the feed and from the live feed, in each version.
func TestTheFeedHasNoHiddenFields(t *testing.T) {
	s, address := newFeed(t, asset.Contacts, asset.Addresses, asset.Locations)
	at := s.publishedAs(t, withSecrets)
	for _, version := range routes.Targets() {
		before := s.positionAt(t, at)
		live := follow.NewReader(s.get(t.Context(), t, address+follow.LivePath(version)+"?opt_fields=*").Body)
		messages(t, live, before)
		s.do(t, exchange{"PATCH", at, identity.Broker, "token", `{"data":{"title":"for ` + version + `"}}`, 200, ""})
		after := s.positionAt(t, at)
		page := follow.NewReader(s.get(t.Context(), t, address+follow.PagePath(version)+"?opt_fields=*").Body)
		for name, r := range map[string]*follow.Reader{"the live feed": live, "a page": page} {
			texts, _ := messages(t, r, after)
			if got := strings.Join(texts, "\n"); !strings.Contains(got, "for "+version) || strings.Contains(got, "secret") {
				t.Errorf("%s in %s: got %s, want the asset without hidden fields", name, version, got)
			}
		}
	}
}

func TestALiveFeedNeedsAServicesSignature(t *testing.T) {
	_, address := newFeed(t)
	for _, path := range []string{"/feed/2.5/live", "/feed/2.5/page"} {
		resp := expect.Get(http.Get(address + path))(t)
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: got status %d, want 401", path, resp.StatusCode)
		}
	}
}

// TestALiveFeedLeavesItsPlace follows the feed in as many selections as the watcher allows, and then in more selections,
// one after another. A follower that has left must not keep its place.
func TestALiveFeedLeavesItsPlace(t *testing.T) {
	ended := make(chan struct{})
	close(ended) // each live feed ends at once
	s, w := newFeedEnding(t, ended)
	const path = "/feed/2.5/live"
	s.do(t, exchange{"GET", path + "?%zz", "", "", "", 400, `"name":"query"`})
	s.do(t, exchange{"GET", path + "?limit=0", "", "", "", 400, `"name":"limit"`})
	var places []func()
	for {
		_, leave, err := w.Join(live.Selection{Fields: strconv.Itoa(len(places))}, nil)
		if errors.Is(err, live.ErrTooMany) {
			break
		}
		places = append(places, leave)
	}
	if page := s.do(t, exchange{"GET", "/feed/2.5/page", "", "", "", 200, ""}); page.Header().Get("Is-Live") != "false" {
		t.Errorf("got a live request for a page, want none")
	}
	got := s.do(t, exchange{"GET", path, "", "", "", 503, `"name":"opt_fields"`})
	if got.Header().Get("Retry-After") == "" {
		t.Errorf("got the headers %v with a refusal, want Retry-After", got.Header())
	}
	for _, leave := range places {
		leave()
	}
	for n := range len(places) + 1 {
		got := s.do(t, exchange{"GET", path + "?opt_fields=" + strconv.Itoa(n), "", "", "", 200, ""})
		if h := got.Header(); h.Get("Cache-Control") != "no-store" || h.Get("Is-Live") != "true" {
			t.Fatalf("got the headers %v, want no-store of a live request", h)
		}
	}
}

// TestALiveFeedIsNotMeasured requests a page of the feed and a live feed. Only the duration of the first one says
// something about the service.
func TestALiveFeedIsNotMeasured(t *testing.T) {
	s, api, _ := newServiceParts(t, NewMemory(1<<30))
	w := live.New(api.registry, PrintOffset(api.zone), 1<<20, slog.New(slog.DiscardHandler))
	t.Cleanup(w.Close)
	reader := sdkmetric.NewManualReader()
	engine := httpserver.NewEngine(httpserver.Options{Log: slog.New(slog.DiscardHandler), Timeout: time.Minute,
		Telemetry: telemetry.New(nil, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), 0)})
	api.RouteFeed(engine, s.signer, w, closed) // each live feed ends at once
	s.handler = engine
	paths := []string{follow.LivePath("2.5"), follow.PagePath("2.5")}
	for _, path := range paths {
		s.do(t, exchange{"GET", path, "", "", "", 200, ""})
	}
	var found metricdata.ResourceMetrics
	expect.OK(t, reader.Collect(t.Context(), &found))
	var measured []string
	for _, scope := range found.ScopeMetrics {
		for _, m := range scope.Metrics {
			durations, _ := m.Data.(metricdata.Histogram[float64])
			for _, p := range durations.DataPoints {
				route, _ := p.Attributes.Value("http.route")
				measured = append(measured, route.AsString())
			}
		}
	}
	expect.NoDiff(t, cmp.Diff(paths[1:], measured), "the measured routes differ")
}

// TestAGatewayThatLeavesEndsItsLiveFeed has a connection whose first write fails.
func TestAGatewayThatLeavesEndsItsLiveFeed(t *testing.T) {
	s, _ := newFeedEnding(t, nil)
	w := &disturbed{httptest.NewRecorder(), func() error { return io.ErrClosedPipe }}
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("got the panic %v, want the end of the connection", got)
		}
	}()
	s.answer(t, w, nil, exchange{"GET", "/feed/2.5/live", "", "", "", 0, ""})
}
