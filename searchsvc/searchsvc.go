// Package searchsvc is the search service. It follows the feed of a registry, keeps an index of the assets, and
// answers searches over HTTP (docs/search.md).
package searchsvc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry.example/client"

	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/searchsvc/internal/site"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/errs"
	"asset-registry/shared/fair"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
	"asset-registry/shared/routes"
	"asset-registry/shared/telemetry"
)

// Config configures a service. A field may be zero only if its comment says so. The tags make fields settings of the
// command searchsvc.
type Config struct {
	Of        string            `default:"http://127.0.0.1:8080" placeholder:"URL" help:"${of}"`
	Transport http.RoundTripper `kong:"-"` // for requests to the registry; nil: http.DefaultTransport

	// Nothing else may use the directory. docs/search.md describes the files of synonyms and names.
	Dir       string `name:"data" default:"./search" help:"Directory of the index; created if it does not exist."`
	Synonyms  string `placeholder:"FILE" help:"File of further words of one meaning; by default none."`
	CodeLists string `placeholder:"DIR" help:"Directory of names of codes: CPV.uk.json and others."`

	Timeout   time.Duration `default:"2s" help:"Longest time for a search."` // 0: DefaultTimeout
	LogKeys   []string      `name:"public-key" sep:"none" placeholder:"KEY" help:"${public_key}"`
	MaxBehind time.Duration `default:"5m" help:"/readyz fails while the index is further behind; 0: never for that."`

	// Answers take at most a quarter of the memory.
	Memory int64 `help:"Bytes that the process may use; 0: GOMEMLIMIT, the control group's or the machine's."`

	Links Links `embed:""` // templates of links from pages to other sites

	Places    *fair.Semaphore      `kong:"-"` // places that the services of this process share; nil: the service's own
	Log       *slog.Logger         `kong:"-"`
	Telemetry *telemetry.Telemetry `kong:"-"` // nil: none
}

// DefaultTimeout is the longest time of a search if the Config names none.
const DefaultTimeout = 2 * time.Second

const (
	userAgent    = "asset-registry-search"
	leastAnswers = 16 << 20 // minimum budget of bytes for answers being sent; the largest answer needs a quarter of it
)

// Server is a running service.
type Server struct {
	config  Config
	keeper  *keeper
	refused atomic.Int64     // searches and pages that got no turn
	answers *memory.InFlight // bytes of answers that are being sent
	timings metric.Float64Histogram
	reads   metric.Int64Counter
	handler http.Handler

	end     context.CancelFunc
	running sync.WaitGroup
	silence func() // unregisters the metrics
}

// New starts a service. It answers 503 until the index has reached the end of the feed for the first time.
func New(ctx context.Context, c Config) (*Server, error) {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	if c.Telemetry == nil {
		c.Telemetry = &telemetry.Telemetry{}
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure search service: %w", err)
	}
	if c.Memory == 0 {
		c.Memory = memory.Limit()
	}
	if c.Places == nil {
		c.Places = fair.New(int64(runtime.GOMAXPROCS(0))) // other services of this machine are processes of their own
	}
	s := &Server{config: c, end: func() {}, answers: memory.NewInFlight(max(c.Memory/4, leastAnswers))}
	var err error
	if s.keeper, err = newKeeper(c); err != nil {
		return nil, err
	}
	s.measure(c.Telemetry.Meter())
	if err := s.route(); err != nil {
		s.silence()
		return nil, err
	}
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.running.Go(func() { s.keeper.run(ctx) })
	return s, nil
}

// Validate returns every fault of the configuration.
func (c Config) Validate() error {
	_, badOf := client.New(client.Config{URL: c.Of})
	_, badNames := codenames.Read(c.CodeLists)
	var badSynonyms error
	if c.Synonyms != "" { // the project's own have no fault, and take long
		_, badSynonyms = readSynonyms(c.Synonyms)
	}
	return errors.Join(errs.In(badOf, "--of"), badSynonyms, errs.In(badNames, "--code-lists"), c.Links.Validate(),
		errs.If(c.Log == nil, "the log is missing"))
}

// measure registers the metrics of the service.
func (s *Server) measure(meter metric.Meter) {
	s.timings = telemetry.Durations(meter, "registry.search.duration",
		"Time of a search in the index, without waiting for others.", .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5)
	s.reads = telemetry.Counter(meter, "registry.search.read", "{search}",
		"First pages of searches for words, by the last second try that was needed.")
	observed := telemetry.Observe(meter)
	behind := observed.Seconds("registry.search.behind", "Time since the index was last as new as the registry.")
	assets := observed.Gauge("registry.search.assets", "{asset}", "Assets that can be found.")
	refused := observed.Counter("registry.search.refused", "{search}", "Searches refused because too many were under way.")
	rebuilt := observed.Counter("registry.search.rebuilt", "{index}", "Indexes that were removed to be built anew.")
	own := observed.Read(func(_ context.Context, o metric.Observer) {
		state := s.State()
		o.ObserveFloat64(behind, state.Behind.Seconds())
		if state.Ready {
			o.ObserveInt64(assets, state.Assets)
		}
		o.ObserveInt64(refused, s.refused.Load())
		o.ObserveInt64(rebuilt, s.keeper.rebuilt.Load())
	})
	answers := memory.Measure(meter, map[string]memory.Limiter{"search": s.answers})
	s.silence = func() { own(); answers() }
}

// route makes the handler of all requests.
func (s *Server) route() error {
	c := s.config
	dictionaries, err := newDictionaries(s.keeper.names)
	if err != nil {
		return err
	}
	engine := httpserver.NewEngine(httpserver.Options{
		Name: "searchsvc", Log: c.Log, LogLevel: slog.LevelDebug, Timeout: 2 * c.Timeout, Telemetry: c.Telemetry,
		Ready: s.ready, Facts: s.facts,
	})
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		engine.Handle(method, Path, httpserver.Handle(s.answer))
		engine.Handle(method, suggestPath, httpserver.Handle(s.suggest))
		engine.Handle(method, dictionariesPath, gin.WrapH(dictionaries))
	}
	s.handler = engine
	pagesForPeople, err := site.New(site.Config{
		Searcher: s, Registry: c.Of, Transport: c.Transport, LogKeys: c.LogKeys, Log: c.Log,
		Answers: s.answers, Names: s.keeper.names, Links: c.Links,
	})
	if err != nil {
		return err
	}
	pages := append(routes.Site(), routes.Route{Method: http.MethodGet, Pattern: "/"},
		routes.Route{Method: http.MethodHead, Pattern: "/"})
	for _, r := range pages {
		engine.Handle(r.Method, r.Pattern, gin.WrapH(pagesForPeople))
	}
	return nil
}

// ready returns a fault if the index is not complete, or too far behind.
func (s *Server) ready(context.Context) error {
	state := s.State()
	switch {
	case !state.Ready:
		return fault.New(fault.Unavailable, fault.URL, "search", "%s", s.keeper.saying())
	case s.config.MaxBehind > 0 && state.Behind > s.config.MaxBehind:
		const says = "The index is %.0f s behind the registry, and may be %.0f s."
		return fault.New(fault.Unavailable, fault.URL, "search", says,
			state.Behind.Seconds(), s.config.MaxBehind.Seconds())
	}
	return nil
}

// facts returns the values that /readyz shows.
func (s *Server) facts() map[string]any {
	state := s.State()
	return map[string]any{
		"origin": s.config.Of, "position": state.Position.Offset, "assets": state.Assets,
		"behindSeconds": math.Round(state.Behind.Seconds()*10) / 10,
	}
}

// Handler returns the handler of requests.
func (s *Server) Handler() http.Handler { return s.handler }

// Close stops following the registry and closes the index. The caller must have stopped serving requests.
func (s *Server) Close() error {
	s.end()
	s.running.Wait()
	s.silence()
	return nil
}

// State implements search.Searcher.
func (s *Server) State() search.State { return s.keeper.state() }

// Turn implements search.Searcher. A turn is one of the places that all dear work of this process has.
func (s *Server) Turn(ctx context.Context, caller string) (end func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	if end, err = s.config.Places.Acquire(ctx, caller, 1); err != nil {
		s.refused.Add(1)
		return nil, site.Busy()
	}
	return end, nil
}

// Search implements search.Searcher.
func (s *Server) Search(ctx context.Context, q search.Query) (search.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	begun := time.Now()
	result, err := s.keeper.search(ctx, q)
	httpserver.CountWork(ctx, result.Work)
	s.timings.Record(ctx, time.Since(begun).Seconds(), metric.WithAttributes(attribute.Bool("ok", err == nil)))
	if err == nil && q.Text != "" && q.After == nil {
		s.reads.Add(ctx, 1, metric.WithAttributes(attribute.String("step", stepOf(result))))
	}
	return result, err
}

// stepOf returns the name of the last step that a search needed (search.Steps). It returns "plain" if the search
// needed none, and "nothing" if nothing was found. The result never contains words of a question.
func stepOf(r search.Result) string {
	switch steps := r.Reading.Steps; {
	case r.Total == 0:
		return "nothing"
	case len(steps) > 0:
		return string(steps[len(steps)-1])
	}
	return "plain"
}

// Parameters has the allowed values and the limits of the parameters of a search (docs/contract.md, "Search").
type Parameters struct {
	Statuses, Sorts, Facets, Steps   []string // allowed values, in the order in which documents list them
	Units                            []string // units of quantities
	MaxText                          int      // characters of q
	MaxLimit, DefaultLimit           int      // assets on a page
	MaxFacets                        int      // facets in one question
	MaxFacetLimit, DefaultFacetLimit int      // values of one facet
}

// Describe returns the parameters of a search.
func Describe() Parameters {
	return Parameters{
		Statuses: search.Texts(assetfilter.Statuses), Sorts: search.Texts(search.Sorts),
		Facets: search.Texts(search.FacetNames()), Steps: search.Texts(search.Steps), Units: search.Texts(search.Units),
		MaxText: search.MaxText, MaxLimit: search.MaxLimit, DefaultLimit: search.DefaultLimit,
		MaxFacets: search.MaxFacets, MaxFacetLimit: search.MaxFacetLimit, DefaultFacetLimit: search.DefaultFacetLimit,
	}
}

// Links are templates for addresses on other sites, to which pages link.
type Links = site.Links
