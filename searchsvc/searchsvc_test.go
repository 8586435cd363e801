package searchsvc

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/index"
	"asset-registry/searchsvc/internal/meaning"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/metrictest"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

// unreachable is a transport to a registry that does not answer.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no route")
}

func start(t *testing.T) *Server {
	t.Helper()
	s := expect.Get(New(t.Context(), Config{
		Of: "http://registry.example", Transport: unreachable{}, Dir: t.TempDir(), Timeout: 500 * time.Millisecond,
		Memory: 1,
		Log:    slog.New(slog.DiscardHandler),
	}))(t)
	t.Cleanup(func() {
		expect.Nil(t, s.Close(), "close")
	})
	return s
}

func get(s *Server, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// TestAnswersWithoutAnIndex sends requests to a service that could not read the registry yet. Searches must get
// 503, and faulty parameters must still get 400.
func TestAnswersWithoutAnIndex(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		path   string
		status int
		says   string
	}{
		{Path, 503, `"name":"search"`},
		{Path + "?q=будинок", 503, `"name":"search"`},
		{Path + "?limit=1000", 400, `"name":"limit"`},
		{Path + "?region=%zz", 400, `"name":"region"`},
		{"/readyz", 503, "starts"},
		{"/livez", 200, ""},
		{"/api/2.5/assets", 404, "not_found"},
	} {
		w := get(s, c.path)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: got %d %s, want %d and %q", c.path, w.Code, w.Body, c.status, c.says)
		}
		if c.status == 503 && strings.HasPrefix(c.path, Path) && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got no Retry-After, want one", c.path)
		}
	}
}

// TestTheNumberOfAssetsIsAbsentWithoutAnIndex reads the metrics while an index answers, and without one.
func TestTheNumberOfAssetsIsAbsentWithoutAnIndex(t *testing.T) {
	s, meter := startWith(t, 2), metrictest.New()
	s.silence()
	s.measure(meter)
	expect.Equal(t, meter.Read(t)["registry.search.assets"], 2, "assets in the index")
	s.keeper.serve(nil)
	if got, told := meter.Read(t)["registry.search.assets"]; told {
		t.Errorf("without an index: got %v assets, want no number", got)
	}
}

// TestTooManySearchesAreRefused takes all turns. Another search must be refused after it has waited for its time
// limit.
// Promises: search-turns
func TestTooManySearchesAreRefused(t *testing.T) {
	s := start(t)
	expect.Get(s.config.Places.Acquire(t.Context(), "another", s.config.Places.Size()))(t)
	w := get(s, Path)
	if w.Code != 503 || !strings.Contains(w.Body.String(), "too many searches") || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %s and Retry-After %q, want 503, too many searches, and a time", w.Code, w.Body,
			w.Header().Get("Retry-After"))
	}
}

func TestFaultyConfigurationsAreRefused(t *testing.T) {
	good := Config{Of: "http://registry.example", Dir: "x", Log: slog.New(slog.DiscardHandler)}
	expect.OK(t, good.Validate())
	for name, spoil := range map[string]func(*Config){
		"--of":       func(c *Config) { c.Of = "registry" },
		"--synonyms": func(c *Config) { c.Synonyms = "missing.txt" },
		"log":        func(c *Config) { c.Log = nil },
	} {
		c := good
		spoil(&c)
		expect.Says(t, c.Validate(), name, "")
	}
}

// startWith starts a service whose index has the given number of assets, each with long texts.
func startWith(t *testing.T, assets int) *Server {
	t.Helper()
	s := start(t)
	x := expect.Get(index.Open(t.TempDir(), &meaning.Synonyms{}, codenames.Lists{}))(t)
	change := replica.Change{State: replica.State{Position: client.Position{Offset: "1", ServerID: "one"}, Complete: true}}
	long := strings.Repeat("<", 50_000)
	for n := range assets {
		const text = `{"id":"%032x","status":"active","title":%q,"description":%q,"owner":%q,` +
			`"assetCustodian":{"name":%q,"identifier":{"scheme":"UA-EDR","id":%q}}}`
		change.Entries = append(change.Entries, replica.Entry{
			ID: fmt.Sprintf("%032x", n), Position: int64(n + 1), JSON: fmt.Appendf(nil, text, n, long, long, long, long, long),
		})
	}
	expect.OK(t, x.Apply(change))
	s.keeper.serve(x)
	t.Cleanup(func() {
		s.keeper.serve(nil)
		expect.Nil(t, x.Close(), "close the index")
	})
	return s
}

// TestAnswersAreBounded requests the maximum number of assets, in the forms that need the most bytes. No answer may
// have more than twice the bytes that its hits may have.
func TestAnswersAreBounded(t *testing.T) {
	const assets = 20
	s := startWith(t, assets)
	for _, query := range []string{"", "&opt_pretty=1", "&facets=owner,custodian&facet_limit=100&opt_pretty=1&opt_jsonp=x"} {
		w := get(s, Path+"?limit=100"+query)
		if most := 2 * assets * search.MaxHit; w.Code != 200 || w.Body.Len() > most || w.Body.Len() < 1000*assets {
			t.Errorf("%s: got %d with %d bytes, want at most %d", query, w.Code, w.Body.Len(), most)
		}
	}
	for _, path := range []string{"/uk/", "/en/feed.atom", "/uk/statistics"} {
		w := get(s, path)
		if most := 2 * assets * search.MaxHit; w.Code != 200 || w.Body.Len() > most {
			t.Errorf("%s: got %d with %d bytes, want at most %d", path, w.Code, w.Body.Len(), most)
		}
	}
}

// dear has the paths of answers that need a turn.
var dear = []string{Path, suggestPath + "?q=a", "/uk/", "/en/feed.atom", "/uk/statistics"}

// watching is a client that calls the function `look` whenever a part of an answer arrives.
type watching struct {
	*httptest.ResponseRecorder
	look func()
}

func (w watching) Write(p []byte) (int, error) {
	w.look()
	return w.ResponseRecorder.Write(p)
}

// TestAnswersThatAreSentHoldBytesAndNoTurn checks that an answer that is being sent holds bytes of the budget,
// but no turn.
func TestAnswersThatAreSentHoldBytesAndNoTurn(t *testing.T) {
	s := startWith(t, 2)
	for _, path := range dear {
		looks := 0
		w := watching{httptest.NewRecorder(), func() {
			looks++
			if turns, bytes := s.config.Places.Used(), s.answers.Used(); turns != 0 || bytes == 0 {
				t.Errorf("%s: got %d turns and %d bytes held while it is sent, want no turn and some bytes", path, turns, bytes)
			}
		}}
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if looks == 0 || w.Code != 200 || s.answers.Used() != 0 {
			t.Errorf("%s: got %d in %d writes, and then %d bytes held; want 200 and none", path, w.Code, looks, s.answers.Used())
		}
	}
}

// TestAnswersBeyondTheBudgetAreRefused sends requests while other answers hold the whole budget of bytes. Each
// request must get 503, and must give its turn back.
func TestAnswersBeyondTheBudgetAreRefused(t *testing.T) {
	s := startWith(t, 1)
	for s.answers.Hold(1 << 10) {
	}
	for _, path := range dear {
		if w := get(s, path); w.Code != 503 || w.Header().Get("Retry-After") == "" || w.Header().Get("ETag") != "" {
			t.Errorf("%s: got %d and %v, want 503, Retry-After and no ETag", path, w.Code, w.Header())
		}
	}
	expect.Equal(t, s.config.Places.Used(), 0, "turns held")
}

// TestATurnLastsUntilTheAnswerIsEncoded requests answers while all turns are taken. Each request must get 503,
// because the encoding of an answer needs a turn too.
// Promises: search-turns
func TestATurnLastsUntilTheAnswerIsEncoded(t *testing.T) {
	s := startWith(t, 1)
	expect.Get(s.config.Places.Acquire(t.Context(), "another", s.config.Places.Size()))(t)
	for _, path := range dear {
		if w := get(s, path); w.Code != 503 {
			t.Errorf("%s: got %d without a turn, want 503", path, w.Code)
		}
	}
	expect.Equal(t, int(s.refused.Load()), len(dear), "refusals counted")
}

// TestASearchTellsItsWork searches 90 assets for a word, with facets, and for words that are compared with all terms.
// The answer must tell the gateway of dear work, and a plain search must tell of little.
func TestASearchTellsItsWork(t *testing.T) {
	s := startWith(t, 90)
	rare := url.QueryEscape(strings.Repeat("щґфцх", 8) + " " + strings.Repeat("кґфцх", 8))
	for _, c := range []struct {
		path        string
		least, most int64
	}{
		{Path + "?limit=1", 0, 1000},
		{Path + "?q=" + rare, 10 << 20, 10<<20 + 1000},
		{"/uk/?q=" + rare, 10 << 20, 30 << 20},
		{Path + "?exact=1&q=" + rare, 0, 1000},
	} {
		told, _ := strconv.ParseInt(get(s, c.path).Header().Get(httpserver.WorkHeader), 10, 64)
		if told < c.least || told > c.most {
			t.Errorf("%.40s: got work of %d bytes, want %d to %d", c.path, told, c.least, c.most)
		}
	}
}

// TestSuggestionsTakeTheFiltersOfASearch sends filters to searches and to suggestions. Both must name the same faults.
// Promises: suggestions
func TestSuggestionsTakeTheFiltersOfASearch(t *testing.T) {
	s := startWith(t, 1)
	for query, want := range map[string]int{
		"status=active&region=Київ&quantity_from=1&quantity_unit=m2&published_from=2026-11-01": 200, "": 200,
		"quantity_from=x": 400, "quantity_unit=acre&published_from=x": 400, "published_from=2026-11-02&published_to=2026-11-01": 400,
		"colour=red": 400, "q=б": 400, "classification=x&custodian=" + strings.Repeat("x", 300): 400,
	} {
		query = "?q=а&" + query
		w, like := get(s, suggestPath+query), get(s, Path+query)
		if w.Code != want || want != 200 && w.Body.String() != like.Body.String() {
			t.Errorf("%s: got %d with %s, want %d, and the faults of a search: %s", query, w.Code, w.Body, want, like.Body)
		}
	}
	if w := get(s, suggestPath+"?q=а&limit=5"); w.Code != 400 {
		t.Errorf("got %d for a limit, want 400: it is no filter", w.Code)
	}
}

// TestReadyzSaysHowFarTheIndexIsBehind sets the time at which the index was last as new as the registry.
func TestReadyzSaysHowFarTheIndexIsBehind(t *testing.T) {
	s := startWith(t, 1)
	s.keeper.fresh.Restart(time.Now().Add(-time.Hour))
	var got struct{ BehindSeconds float64 }
	answer := get(s, "/readyz").Body.Bytes()
	if err := json.Unmarshal(answer, &got); err != nil || got.BehindSeconds < 3600 || got.BehindSeconds > 3660 {
		t.Errorf("got %s, %v; want behindSeconds of an hour", answer, err)
	}
}
