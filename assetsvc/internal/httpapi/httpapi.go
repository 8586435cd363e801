// Package httpapi is the HTTP side of the asset service: it turns requests into calls of package registry, and
// the results into answers (docs/contract.md).
//
// The gateway calls this API. It has already checked the version, the content type and the API key of a
// request. It has also moved an owner token from the query to the X-Access-Token header. Other headers carry
// the identity of the caller and the public address of the registry.
package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/filesapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
)

// API answers the requests of every version. Each request uses a copy of the API.
type API struct {
	registry *registry.Registry
	zone     *time.Location
	maxBody  int64
	memory   Memory
	pace     httpserver.Pace
	// downloads is the pace at which whole copies are sent.
	downloads httpserver.Pace
	hidden    []asset.Group // fields that only callers with an API key see

	snapshots *snapshots
	webhooks  *webhook.Service // nil: the API has no webhooks

	size  int    // maximum number of bytes of an asset that the request reads
	leave func() // frees the memory that the request works with; it belongs to one request
}

// New returns an API for the registry r. The API prints times in zone, which is a constant offset. It refuses bodies of
// more than maxBody bytes, and holds no more memory than m allows.
func New(r *registry.Registry, zone *time.Location, maxBody int64, m Memory) *API {
	return &API{registry: r, zone: zone, maxBody: maxBody, memory: m,
		pace: httpserver.DefaultPace, downloads: httpserver.DownloadPace, snapshots: newSnapshots(), leave: func() {}}
}

// Hide hides the fields of the given groups from callers without an API key. It must be called before Route.
func (a *API) Hide(hidden []asset.Group) { a.hidden = hidden }

// handler answers a request to one version. If it returns an error, the error becomes the answer.
type handler func(a *API, c *gin.Context, v version) error

// Route adds the routes of every version to engine. A test compares these routes with package routes.
func (a *API) Route(engine *gin.Engine, signer *identity.Signer) {
	for _, v := range publicVersions(a.hidden) {
		r := engine.Group(v.prefix(), httpserver.Identify(signer), caching)
		list := httpserver.Handle(func(c *gin.Context) error { return a.list(c, v) })
		routeRead(r, "/assets", list)
		routeRead(r, routes.OwnAssets, httpserver.Handle(func(c *gin.Context) error { return a.own(c, v) }))
		a.routeSnapshot(r, v)
		routeRead(r, "/assets/:id", a.bounded(v, v.factor(), inTurn((*API).read)))
		routeRead(r, "/assets/:id/revisions", a.bounded(v, copies, inTurn((*API).revisions)))
		r.DELETE("/assets/:id/revisions/:number", a.bounded(v, trees, (*API).erase))
		routeRead(r, "/assets/:id/proof", a.dear(v, inTurn((*API).proof)))
		r.POST("/assets", a.bounded(v, trees, (*API).create))
		r.PATCH("/assets/:id", a.bounded(v, trees, (*API).change))
		r.PUT("/assets/:id", a.bounded(v, trees, (*API).change))
		r.DELETE("/assets/:id", a.bounded(v, trees, (*API).remove))
		for _, p := range asset.Parts() {
			a.routePart(r, v, p)
		}
		a.routeOwnership(r, v)
		if a.webhooks != nil {
			a.routeWebhooks(r, v)
		}
	}
	r := engine.Group("/", httpserver.Identify(signer), caching)
	r.POST(filesapi.CompletePath+":id", httpserver.Handle(a.complete))
	r.GET(adminapi.FindAssetPath, httpserver.Handle(a.find))
	a.routeCopies(r)
}

// find answers which asset an administrator seeks (registry.Sought). Its reading takes a place: the asset may be large,
// and a search by number reads many changes.
func (a *API) find(c *gin.Context) error {
	inside, end, err := a.turn(c)
	if err != nil {
		return err
	}
	defer end()
	found, stored, err := inside.registry.Find(c.Request.Context(), httpserver.Caller(c), registry.Sought{
		ID: c.Query("id"), Number: c.Query("number"), Broker: c.Query("broker"), Reference: c.Query("reference"),
	})
	if err != nil {
		return err
	}
	return httpserver.JSON(c, http.StatusOK, adminapi.Response[adminapi.Asset]{Data: adminapi.Asset{
		ID: found.ID(), Number: found.AssetID(), Title: found.Fields().Text("title"), Status: string(found.Status()),
		Owner: found.Owner(), Mode: found.Fields().Text("mode"), Modified: time.UnixMicro(stored.Position).UTC(),
	}})
}

// complete handles a report of a file service: a file that documents already name has arrived.
func (a *API) complete(c *gin.Context) error {
	var in filesapi.Completion
	if err := json.NewDecoder(http.MaxBytesReader(c.Writer, c.Request.Body, a.maxBody)).Decode(&in); err != nil {
		return fault.New(fault.Invalid, fault.Body, "data", "The body must be a completion in JSON.")
	}
	if err := a.registry.Complete(c.Request.Context(), httpserver.Caller(c), c.Param("id"), in); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// routeRead adds the GET and HEAD routes of a path.
func routeRead(r gin.IRoutes, path string, h gin.HandlerFunc) {
	r.GET(path, h)
	r.HEAD(path, h)
}

// caching sets Cache-Control (RFC 9111). Caches may keep the answer to a read if
// they revalidate it. They must not keep the answer to a write: it may hold
// tokens.
func caching(c *gin.Context) {
	if isReading(c) {
		c.Header("Cache-Control", "no-cache")
		return
	}
	c.Header("Cache-Control", "no-store")
}

func (a *API) read(c *gin.Context, v version) error {
	_, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	stored, err := a.registry.Read(c.Request.Context(), c.Param("id"))
	if err != nil {
		return a.withoutBody(c, v, o, err)
	}
	if done, err := unchanged(c, tag(stored.Position, v, o)); done || err != nil {
		return err
	}
	return a.answer(c, v, http.StatusOK, stored, o)
}

func (a *API) create(c *gin.Context, v version) error {
	in, err := a.parse(c)
	if err != nil {
		return err
	}
	seeds, err := seedsOf(c)
	if err != nil {
		return err
	}
	reference, err := referenceOf(c)
	if err != nil {
		return err
	}
	sent := registry.Input{Fields: in.data, Version: v.name, Reference: reference, Ignored: naming(c)}
	if len(seeds) > 0 {
		sent.Seed, sent.Others = seeds[0], seeds[1:]
	}
	created, err := a.registry.Create(c.Request.Context(), httpserver.Caller(c), sent)
	if err != nil {
		return err
	}
	c.Header("ETag", tag(created.Position, v, options{}))
	c.Header("Location", location(c, v, created.ID))
	if created.Token == "" { // an asset with this reference existed already
		return a.answer(c, v, http.StatusOK, created.Record, options{pretty: in.pretty})
	}
	shown := v.view.Access(access(created.Token, created.Transfer))
	return a.answer(c, v, http.StatusCreated, created.Record, options{pretty: in.pretty, access: shown})
}

// location returns the public URL of an asset, or of a part of it.
func location(c *gin.Context, v version, steps ...string) string {
	return c.GetHeader(httpserver.BaseURLHeader) + v.prefix() + "/assets/" + strings.Join(steps, "/")
}

// change answers a PATCH or PUT of an asset.
func (a *API) change(c *gin.Context, v version) error {
	ctx, id := c.Request.Context(), c.Param("id")
	in, err := a.parse(c)
	if err != nil {
		return a.missingFirst(c, err)
	}
	sent := registry.Input{
		Fields: in.data, Version: v.name, Guard: in.guard, Whole: c.Request.Method == http.MethodPut, Ignored: naming(c),
	}
	stored, err := a.registry.Change(ctx, httpserver.Caller(c), id, in.token, sent)
	if err != nil {
		return err
	}
	return a.answerChange(c, v, stored, in)
}

// remove answers a DELETE of an asset (docs/contract.md, "Removal of drafts").
func (a *API) remove(c *gin.Context, _ version) error {
	in, err := parseBodiless(c)
	if err != nil {
		return a.missingFirst(c, err)
	}
	err = a.registry.Remove(c.Request.Context(), httpserver.Caller(c), c.Param("id"), in.token, in.guard)
	if err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// missingFirst returns a fault if the asset of the request does not exist, and err otherwise. So a missing
// asset is reported before any other fault of the request (docs/contract.md, "Order of checks").
func (a *API) missingFirst(c *gin.Context, err error) error {
	if _, missing := a.registry.Head(c.Request.Context(), c.Param("id")); missing != nil {
		return missing
	}
	return err
}

// answerChange answers with an asset that was changed, and its new tag.
func (a *API) answerChange(c *gin.Context, v version, stored registry.Record, in request) error {
	c.Header("ETag", tag(stored.Position, v, options{pretty: c.Query("opt_pretty") != ""}))
	return a.answer(c, v, http.StatusOK, stored, options{pretty: in.pretty})
}

// answer answers with an asset in the form of a version.
func (a *API) answer(c *gin.Context, v version, status int, stored registry.Record, o options) error {
	body := make([]byte, 0, len(stored.Body)+256)
	body = append(body, '{')
	if o.access != nil {
		body = append(record.Append(append(body, `"access":`...), o.access), ',')
	}
	body, err := v.show(append(body, `"data":`...), stored.Body, stored.Position, a.zone)
	if err != nil {
		return fmt.Errorf("show asset %s: %w", stored.ID, err)
	}
	return a.write(c, status, append(body, '}'), o)
}

// options are the properties of an answer that depend on the request (docs/contract.md, "Requests and
// answers").
type options struct {
	pretty   bool          // the answer is indented by four blanks
	callback string        // the function that a JSONP answer calls; "": the answer is JSON
	access   record.Object // the access block of a creation or a recovery
}

// parseQuery returns the parameters of a read, and the options that they set. An empty parameter counts as
// absent.
func parseQuery(raw string) (url.Values, options, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		const text = "The query string is malformed: a %% needs two hexadecimal digits, and & separates parameters."
		return nil, options{}, queryFault("query", text)
	}
	for name, values := range query {
		if !utf8.ValidString(name) || !utf8.ValidString(values[0]) {
			return nil, options{}, queryFault("query", "could not decode params: the query string is not valid UTF-8")
		}
	}
	o := options{pretty: query.Get("opt_pretty") != "", callback: query.Get("opt_jsonp")}
	return query, o, httpserver.CheckCallback(o.callback)
}

// naming returns a function that lists ignored fields in a header of the answer.
func naming(c *gin.Context) func(names []string) {
	return func(names []string) { c.Header(httpserver.IgnoredHeader, strings.Join(names, ", ")) }
}

func queryFault(name, format string, args ...any) error {
	return fault.New(fault.Invalid, fault.Query, name, format, args...)
}

// answerHead answers a HEAD without making the body, so the answer has no Content-Length.
func (o options) answerHead(c *gin.Context) {
	contentType := "application/json"
	if o.callback != "" {
		contentType, _ = httpserver.Script(o.callback, nil)
	}
	c.Header("Content-Type", contentType)
	c.Status(http.StatusOK)
}

// write sends an answer with a JSON body, printed as the options say.
func (a *API) write(c *gin.Context, status int, body []byte, o options) error {
	if o.pretty {
		var indented bytes.Buffer
		if err := json.Indent(&indented, body, "", "    "); err != nil {
			return fmt.Errorf("indent answer: %w", err)
		}
		indented.WriteByte('\n') // so that the prompt of a terminal begins on a new line
		body = indented.Bytes()
	}
	contentType := "application/json"
	if o.callback != "" {
		contentType, body = httpserver.Script(o.callback, body)
	}
	h := c.Writer.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if c.Request.Method == http.MethodHead {
		c.Status(status)
		return nil
	}
	return a.send(c, status, body)
}
