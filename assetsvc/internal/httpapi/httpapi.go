// Package httpapi is the HTTP side of the asset service: it turns requests into
// use cases and what they return into the answers of the interface document.
//
// It stands behind the gateway, which has checked version, content type and
// API key, has moved an owner token from the query to the X-Access-Token
// header, and says in headers who is calling and how the public knows us.
package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
)

// API answers the requests of every version.
type API struct {
	registry *registry.Registry
	zone     *time.Location
	maxBody  int64
	memory   Memory
	pace     httpserver.Pace

	// Of one request:
	leave    func() // the room that it works in
	reserved bool   // its answer has its memory already
}

// New returns an API over r that prints times in zone, a constant offset,
// refuses bodies of more than maxBody bytes, and holds no more than m.
func New(r *registry.Registry, zone *time.Location, maxBody int64, m Memory) *API {
	return &API{registry: r, zone: zone, maxBody: maxBody, memory: m, pace: httpserver.DefaultPace, leave: func() {}}
}

// Route adds the routes of every version to engine. They are those of package
// routes, which a test compares.
func (a *API) Route(engine *gin.Engine, signer *identity.Signer) {
	for _, v := range versions {
		r := engine.Group(routes.Prefix(v.name), httpserver.Identify(signer), caching)
		list := httpserver.Handle(func(c *gin.Context) error { return a.list(c, v) })
		read := a.bounded(v.factor(), func(a *API, c *gin.Context) error { return a.read(c, v) })
		r.GET("/assets", list)
		r.HEAD("/assets", list)
		r.POST("/assets", a.bounded(trees, func(a *API, c *gin.Context) error { return a.create(c, v) }))
		r.GET("/assets/:id", read)
		r.HEAD("/assets/:id", read)
		revisions := a.bounded(trees, func(a *API, c *gin.Context) error { return a.revisions(c, v) })
		r.GET("/assets/:id/revisions", revisions)
		r.HEAD("/assets/:id/revisions", revisions)
		r.PATCH("/assets/:id", a.bounded(trees, func(a *API, c *gin.Context) error { return a.change(c, v, false) }))
		r.PUT("/assets/:id", a.bounded(trees, func(a *API, c *gin.Context) error { return a.change(c, v, true) }))
		for _, p := range asset.Parts() {
			a.routePart(r, v, p)
		}
		a.routeOwnership(r, v)
	}
}

// caching says what others may keep (RFC 9111): a reading, to ask whether it is
// still so; of a write, whose answer may hold tokens, nothing.
func caching(c *gin.Context) {
	if c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead {
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
		return err
	}
	if done, err := unchanged(c, tag(stored.Position, v, o)); done || err != nil {
		return err
	}
	return a.answer(c, v, http.StatusOK, stored, o)
}

func (a *API) create(c *gin.Context, v version) error {
	in, err := a.parse(c, true)
	if err != nil {
		return err
	}
	seeds, err := seedsOf(c)
	if err != nil {
		return err
	}
	sent := registry.Input{Fields: in.data, Hidden: v.hidden}
	if len(seeds) > 0 {
		sent.Seed, sent.Others = seeds[0], seeds[1:]
	}
	created, err := a.registry.Create(c.Request.Context(), httpserver.Caller(c), sent)
	if err != nil {
		return err
	}
	c.Header("ETag", tag(created.Position, v, options{}))
	c.Header("Location", location(c, v, created.ID))
	access := record.Object{{Name: "token", Value: created.Token}}
	if v.transfer {
		access = append(access, record.Member{Name: "transfer", Value: created.Transfer})
	}
	return a.answer(c, v, http.StatusCreated, created.Record, options{pretty: in.pretty, access: access})
}

// location is the address of an asset, or of a part of it, as the public knows it.
func location(c *gin.Context, v version, steps ...string) string {
	return c.GetHeader(httpserver.BaseURLHeader) + routes.Prefix(v.name) + "/assets/" + strings.Join(steps, "/")
}

func (a *API) change(c *gin.Context, v version, whole bool) error {
	ctx, id := c.Request.Context(), c.Param("id")
	in, err := a.parse(c, true)
	if err != nil {
		// An asset that does not exist is the first thing to say of any request (contract, section 7).
		if _, missing := a.registry.Read(ctx, id); missing != nil {
			return missing
		}
		return err
	}
	stored, err := a.registry.Change(ctx, httpserver.Caller(c), id, in.token, registry.Input{Fields: in.data, Hidden: v.hidden, Guard: in.guard}, whole)
	if err != nil {
		return err
	}
	c.Header("ETag", tag(stored.Position, v, options{pretty: c.Query("opt_pretty") != ""}))
	return a.answer(c, v, http.StatusOK, stored, options{pretty: in.pretty})
}

// answer writes an asset in the shape of a version.
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
