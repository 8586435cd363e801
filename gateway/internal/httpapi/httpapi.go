// Package httpapi serves the public API of the gateway. It has the routes, and the steps that a request passes
// before the gateway answers or forwards it. The table below defines the order of the steps.
package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/gateway/internal/answers"
	"asset-registry/gateway/internal/apikey"
	"asset-registry/gateway/internal/catalog"
	"asset-registry/gateway/internal/concurrency"
	"asset-registry/gateway/internal/docspage"
	"asset-registry/gateway/internal/limits"
	"asset-registry/gateway/internal/proxy"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/authapi"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/errs"
	"asset-registry/shared/fair"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
	"asset-registry/shared/memory"
	"asset-registry/shared/routes"
	"asset-registry/shared/static"
	"asset-registry/shared/telemetry"
)

// Config has the parts of an API. A field may be zero where its comment says so.
type Config struct {
	Assets   *proxy.Upstream
	Search   *proxy.Upstream // nil: no search service
	Files    *proxy.Upstream // nil: no file service
	Auth     *authapi.Client
	Keys     *apikey.Cache // cache in front of Auth
	Usage    *apikey.Usage
	Limits   *limits.Limits
	Policies ratelimit.Table      // the policies of Limits, for the documentation page
	Current  *concurrency.Limiter // limits the number of concurrent requests
	Bodies   *memory.Budget       // memory of request bodies
	Answers  *answers.Cache       // keeps answers to reads of assets; nil: no answers are kept
	Secrets  keyring.Ring
	Places   *fair.Semaphore // places for work that takes long

	Origin         string             // address of the registry that a mirror copies; "": this is not a mirror
	ServerID       string             // value of the cookie SERVER_ID
	BaseURL        string             // beginning of each link in answers; "": taken from the address of the request
	OwnURL         string             // address of the listener, for examples without BaseURL; may be empty
	TrustedProxies clientaddr.Proxies // networks whose X-Forwarded-Proto and -Host are used if BaseURL is ""
	MaxBody        int64              // maximum number of bytes of a request body
	Memory         int64              // bytes that the process may use; each request gets a part of them
	Timeout        time.Duration      // longest time for a request
	Settings       Settings
	Log            *slog.Logger
	Meter          metric.Meter
}

// API is the public API. It is safe for concurrent use.
type API struct {
	config   Config
	overrun  metric.Int64Counter // counts requests that were refused by Config.Current or health
	health   health
	places   places
	room     *room // room for request bodies
	docs     *docspage.Site
	feeds    feeds
	segments *concurrency.Shares // segments of the snapshot that are being read
	copies   *concurrency.Shares // whole copies that are being read
	uploads  *concurrency.Shares // uploads that are not finished, by broker
	readings *concurrency.Shares // readings of files that are not finished
	exports  *concurrency.Shares // exports that are not finished
	archives *concurrency.Shares // archives of documents that are not finished
	// descriptions describe the files of whole copies. The keys are the paths of the descriptions.
	descriptions map[string]*static.File

	addresses []byte // key of the hashes that stand for addresses (nameOf)

	cookie []string // value of Set-Cookie for clients without the cookie; all answers share it

	unregister func()        // ends the metrics
	ending     chan struct{} // closed by Drain
	drain      func()
}

// New returns the API. The settings must be valid, and defaults must replace their zero values.
func New(c Config) (a *API, err error) {
	a = &API{
		config:   c,
		segments: concurrency.NewShares(c.Settings.ClientSegments, c.Settings.MaxConcurrent),
		copies:   concurrency.NewShares(clientCopies, c.Settings.MaxConcurrent),
		uploads:  concurrency.NewShares(brokerUploads, c.Settings.MaxConcurrent),
		exports:  concurrency.NewShares(1, exportAtOnce),
		archives: concurrency.NewShares(1, exportAtOnce),
		health:   health{current: concurrency.New(maxHealth)},
		places:   newPlaces(c.Current),
		cookie:   []string{serverCookie(c.ServerID)},
		ending:   make(chan struct{}),
	}
	a.room = newRoom(c.Bodies, c.MaxBody, a.places.assets.Limit())
	a.readings = concurrency.NewShares(max(a.places.files.Limit()/readersPart, 1), c.Settings.MaxConcurrent)
	a.drain = sync.OnceFunc(func() { close(a.ending) })
	keys, err := c.Secrets.Derive("names of callers")
	if err != nil {
		return nil, err
	}
	a.addresses = keys[0].Key
	if a.docs, err = docspage.New(a.docsOptions()); err != nil {
		return nil, err
	}
	if a.descriptions, err = catalog.Descriptions(); err != nil {
		return nil, err
	}
	a.overrun = telemetry.Counter(c.Meter, "registry.gateway.crowded", "{request}",
		"Requests refused because too many were under way.")
	a.overrun.Add(context.Background(), 0) // without the 0, rate() misses the first event
	a.openFeeds()
	return a, nil
}

// isMirror reports whether this is the gateway of a mirror, which has no keys and accepts no writes.
func (a *API) isMirror() bool { return a.config.Origin != "" }

// Drain ends the streams and the long polls.
func (a *API) Drain() { a.drain() }

// Close ends the hubs and the metrics. The caller must have stopped serving requests.
func (a *API) Close() {
	a.drain()
	a.feeds.hubs.Close()
	a.unregister()
}

// handler answers a request, or returns an error that says why it does not.
type handler func(*gin.Context) error

// step returns a handler that checks or prepares a request. This handler then refuses the request, or passes it on to
// the argument `next`.
type step func(next handler) handler

// route says which steps the requests of a route pass. A field that is zero adds no step.
type route struct {
	version routes.Version // the version in the path of the route
	class   routes.Class   // cost and importance of a request; "": the route's handler has its own limits
	key     bool           // a request needs an API key
	body    bool           // requests have a body
	live    bool           // a request may ask for a stream, or wait for a change
	stored  bool           // answers are stored bytes, which take little work to send
	form    bool           // a request may be a form, which pages of other origins can send
	share   step           // limits the long-lasting work that one client may have at the same time
	answer  handler

	places *concurrency.Limiter // the places of the back end that answers; nil: the gateway answers by itself
}

// pipeline returns the handler of a route. A request passes the steps from first to last. If several steps
// would refuse a request, the first one decides (docs/contract.md, "Order of checks"). Overload comes before
// the limits, so a request that is refused for overload costs its client nothing.
func (a *API) pipeline(r route) gin.HandlerFunc {
	versioned, counted := r.version.Name != "", r.class != ""
	steps := []struct {
		passed bool
		step   step
	}{
		{versioned, a.lifecycle(r.version)},
		{versioned, check(a.checkCookie)},
		{r.form, check(a.refuseForeign)},
		{counted, a.identify(r.key)},
		{counted, a.bound(r)},
		{counted && r.key, a.lockout(r.class)},
		{r.body, a.reserveBody},
		{counted, a.limit(r.class)},
		{r.live, a.follow(r)},
		{counted, a.charge(r)},
		{r.share != nil, r.share},
		{r.body, a.require(needJSON)},
		{r.key, a.require(needKey)},
		{r.body, check(a.readBody)},
	}
	answer := r.answer
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].passed {
			answer = steps[i].step(answer)
		}
	}
	return httpserver.Handle(answer)
}

// check makes a step from a function that returns a refusal, or nil to let the request pass.
func check(refusal func(*gin.Context) error) step {
	return func(next handler) handler {
		return func(c *gin.Context) error {
			if err := refusal(c); err != nil {
				return err
			}
			return next(c)
		}
	}
}

// Settings are the settings of the API and of the edge. With the tags, the fields are flags of a command. A
// time limit of 0 stands for Config.Timeout.
type Settings struct {
	MaxConcurrent  int               `default:"4000" help:"${max_concurrent}"`
	ReadTimeout    time.Duration     `default:"5s" help:"Longest time for reading one asset, or a part of it."`
	ListTimeout    time.Duration     `default:"10s" help:"Longest time for a page of the feed."`
	ClientStreams  int               `default:"32" help:"${client_streams}"`
	ClientSegments int               `default:"16" help:"${client_segments}"`
	CORSOrigins    []string          `name:"cors-origins" default:"*" help:"${cors_origins}"`
	Deprecated     map[string]string `placeholder:"VERSION=DATE" help:"${deprecated}"`
	Sunset         map[string]string `placeholder:"VERSION=DATE" help:"${sunset}"`
	HSTS           time.Duration     `name:"hsts" help:"${hsts}"`
	Data           catalog.Settings  `embed:""`
}

func (Settings) HelpTexts() map[string]string {
	return map[string]string{
		"max_concurrent": "The most requests at once. Anonymous reads are refused from 70 % of it on, " +
			"reads with an API key from 85 %.",
		"client_streams": "The most streams and long polls of the feed that one API key has open at once, " +
			"or one address without a key.",
		"client_segments": "The most segments of the snapshot that one API key reads at once, " +
			"or one address without a key.",
		"cors_origins": "Origins whose web pages may use the API, with commas between them; * for all.",
		"hsts": "How long browsers use HTTPS only for this host (Strict-Transport-Security); 0: they are not told to. " +
			"They apply it to every port of the host, the console's too.",
		"deprecated": "Versions of the API that are deprecated since a date, such as 2.4=2027-01-31. " +
			"Their answers say so in the header Deprecation (RFC 9745).",
		"sunset": "Versions of the API that end on a date, such as 2.4=2027-12-31. " +
			"Their answers say so in the header Sunset (RFC 8594).",
	}
}

// Validate returns every fault of the settings.
func (s Settings) Validate() error {
	faults := []error{errs.If(s.HSTS%time.Second != 0, "--hsts must be whole seconds")}
	for i, dates := range []map[string]string{s.Deprecated, s.Sunset} {
		setting := []string{"--deprecated", "--sunset"}[i]
		for _, name := range slices.Sorted(maps.Keys(dates)) {
			_, known := routes.FindVersion(name)
			_, err := time.Parse(time.DateOnly, dates[name])
			faults = append(faults, errs.If(!known, "%s: there is no version %q", setting, name),
				errs.If(err != nil, "%s: the date of version %s must look like 2027-01-31", setting, name))
		}
	}
	return errors.Join(append(faults, s.Data.Validate())...)
}
