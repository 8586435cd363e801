// Package site serves the registry to people: a search, a page for each asset, statistics
// and a page about the registry, in Ukrainian and English (docs/site.md).
//
// The server makes the pages, so they need no script. One script checks a record against the public log. Pages
// load nothing from other hosts. The site reads records, their changes and their proofs through the public API,
// so it works behind any gateway or mirror.
package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"time"

	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/fair"
	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
	"asset-registry/shared/routes"
)

// Config configures a site.
type Config struct {
	Searcher search.Searcher

	// Registry is the address of the gateway from which the site reads records.
	Registry  string
	Transport http.RoundTripper // for requests to Registry; nil: the network

	// LogKeys are the public keys of the public log, with which the script checks records. Without a key, pages
	// name the command that checks a record.
	LogKeys []string

	// Answers limits the bytes of the pages that are being sent. Nil: no limit.
	Answers *memory.InFlight

	Names codenames.Lists // names of codes
	Links Links           // templates of links to other sites

	Log *slog.Logger
	Now func() time.Time // nil: time.Now
}

// pageWithin is the longest time for one page.
const pageWithin = 4 * time.Second

// Site serves the pages. It is safe for concurrent use.
type Site struct {
	config   Config
	registry *registry
	views    views
	parts    mapParts
	mux      *http.ServeMux
	failures *failurelog.Log // pages that failed
	lacking  *failurelog.Log // pages that lack a part
}

// New returns a site. It sends no request.
func New(c Config) (*Site, error) {
	if c.Searcher == nil || c.Log == nil {
		return nil, errors.New("a site needs a searcher and a log")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Answers == nil {
		c.Answers = memory.NewInFlight(math.MaxInt64)
	}
	for _, key := range c.LogKeys {
		if !logKey.MatchString(key) {
			return nil, fmt.Errorf("%.200q is no public key of a log", key)
		}
	}
	if err := c.Links.Validate(); err != nil {
		return nil, err
	}
	r, err := newRegistry(c.Registry, c.Transport, c.Searcher)
	if err != nil {
		return nil, err
	}
	s := &Site{config: c, registry: r, mux: http.NewServeMux(),
		failures: failurelog.New(c.Log, "a page failed"),
		lacking:  failurelog.New(c.Log, "a page lacks the changes of a record")}
	s.parts.turn = fair.New(1)
	if s.views, err = parseViews(); err != nil {
		return nil, err
	}
	s.route()
	return s, nil
}

// logKey matches a public key of a log (docs/log.md, "Origin and keys").
var logKey = regexp.MustCompile(`^[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*$`)

// route adds the handlers of all paths. The gateway sends requests for these paths here (routes.Site).
func (s *Site) route() {
	s.mux.Handle("GET /{$}", s.negotiatedTo(s.search))
	for _, l := range Langs() {
		root := "GET /" + string(l)
		s.mux.HandleFunc(root, func(w http.ResponseWriter, r *http.Request) {
			httpserver.Redirect(w, http.StatusMovedPermanently, pathWithQuery(r, "/"+string(l)+"/"))
		})
		s.mux.Handle(root+"/{$}", s.page(l, s.search))
		s.mux.Handle(root+"/assets/{id}", s.page(l, s.asset))
		s.mux.Handle(root+"/assets/{id}/changes", s.page(l, s.changes))
		s.mux.Handle(root+"/assets/{id}/changes/{revision}", s.page(l, s.revision))
		s.mux.Handle(root+"/assets/{id}/feed.atom", s.page(l, s.recordFeed))
		s.mux.Handle(root+statisticsPath, s.page(l, s.statistics))
		for _, ending := range tableEndings {
			s.mux.Handle(root+statisticsPath+"."+ending, s.page(l, func(w http.ResponseWriter, r request) error {
				return s.figuresIn(ending, w, r)
			}))
		}
		s.mux.Handle(root+"/about", s.page(l, s.about))
		s.mux.Handle(root+dataPath, s.page(l, s.data))
		s.mux.Handle(root+"/feed.atom", s.page(l, s.feed))
		s.mux.Handle("/"+string(l)+"/", s.page(l, s.withoutSlash))
	}
	s.mux.Handle("GET /assets/{id}", s.negotiatedTo(anyLanguage))
	s.mux.Handle("GET "+dataPath, s.negotiatedTo(anyData))
	s.mux.Handle("GET /sitemap.xml", s.page(Ukrainian, s.siteMap))
	s.mux.Handle("GET /sitemap/{offset}", s.page(Ukrainian, s.siteMapPart))
	s.mux.Handle("GET /robots.txt", http.HandlerFunc(s.robots))
	s.mux.Handle("GET "+routes.Icon, s.page(Ukrainian, favicon))
	for path, file := range files() {
		s.mux.Handle("GET "+path, file)
	}
	s.mux.Handle("/", s.negotiatedTo(noPage))
}

// ServeHTTP answers a request for a page or a file of the site.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	if clean := path.Clean(r.URL.Path); clean != r.URL.Path && clean+"/" != r.URL.Path {
		r.URL.Path = routes.NoPage // else the mux redirects to the clean path
	}
	from := visitor{r.Header.Get(httpserver.ClientHeader), r.Header.Get(httpserver.CallerHeader)}
	s.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, from)))
}

// contentSecurityPolicy lets a page load files only from its own origin, and call only this origin. It forbids
// other pages to show the page in a frame.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// negotiatedTo answers in the language that the browser prefers. The gateway sets Vary.
func (s *Site) negotiatedTo(next handler) http.Handler {
	pages := map[Lang]http.Handler{}
	for _, l := range Langs() {
		pages[l] = s.page(l, next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages[negotiate(r.Header.Get("Accept-Language"))].ServeHTTP(w, r)
	})
}

// request is a request for a page.
type request struct {
	*http.Request
	lang Lang
	base string // public address of the registry
	end  func() // ends the turns of the page once the page is made
}

// takeTurn waits for a turn to search, or to make the page. A page that reads from the registry takes it after that.
// So no turn is held while another service works.
func (s *Site) takeTurn(r *request) error {
	end, err := s.config.Searcher.Turn(r.Context(), visitorOf(r.Context()).caller)
	if err == nil {
		before := r.end
		r.end = func() { end(); before() }
	}
	return err
}

// takeReading waits until the page may read from the registry.
func (s *Site) takeReading(r *request) (err error) {
	r.end, err = s.registry.readings.Acquire(r.Context(), visitorOf(r.Context()).caller, 1)
	if err != nil {
		return Busy()
	}
	return nil
}

type handler func(w http.ResponseWriter, r request) error

// page returns a handler that calls the function `next`. If `next` returns an error, the handler shows a page about
// the error.
func (s *Site) page(l Lang, next handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), pageWithin)
		defer cancel()
		to := request{r.WithContext(ctx), l, s.baseURL(r), func() {}}
		if err := next(w, to); err != nil {
			s.fail(w, to, err)
		}
	})
}

// baseURL returns the public address with which links to the registry start. The gateway reports this address.
func (s *Site) baseURL(r *http.Request) string {
	if base := r.Header.Get(httpserver.BaseURLHeader); base != "" {
		return base
	}
	return "http://" + r.Host
}

func noPage(http.ResponseWriter, request) error {
	return fault.New(fault.NotFound, fault.URL, "path", "Not Found")
}

// problem is the body of a page that shows an error.
type problem struct {
	Text   string
	Faults []string
}

// fail shows a page about an error. If the error is not a fault, the log has its text, and the page does not.
func (s *Site) fail(w http.ResponseWriter, r request, err error) {
	switch ended := r.Context().Err(); {
	case errors.Is(ended, context.Canceled): // the client closed the connection
		w.WriteHeader(httpserver.StatusClientGone)
		return
	case errors.Is(ended, context.DeadlineExceeded) && fault.KindOf(err) == fault.Internal:
		err = Busy()
	}
	name := "problem.internal"
	var p problem
	f, ok := errors.AsType[*fault.Error](err)
	switch {
	case errors.Is(err, errLarge):
		name = "problem.large"
	case !ok:
		s.failures.Failed(fmt.Errorf("%s: %w", r.URL.Path, err))
	case f.Kind == fault.NotFound:
		name = "problem.missing"
	case f.Kind == fault.Invalid:
		name = "problem.invalid"
		for _, d := range f.Details {
			p.Faults = append(p.Faults, d.Name+": "+d.Description)
		}
	default:
		name = "problem.busy"
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(max(1, f.RetryAfter.Seconds())))))
	}
	p.Text = texts[name+".text"].in(r.lang)
	w.Header().Set("Cache-Control", "no-store")
	v := s.view(r, texts[name].in(r.lang), p)
	v.NoIndex = true
	status := faulthttp.Status(err)
	if errors.Is(err, errLarge) {
		status = http.StatusOK
	}
	if err := s.show(w, r, status, "problem", v); err != nil {
		s.failures.Failed(fmt.Errorf("%s: %w", r.URL.Path, err))
		w.WriteHeader(http.StatusInternalServerError)
	}
}
