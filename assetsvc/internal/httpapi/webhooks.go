package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/httpserver"
)

// ServeWebhooks makes the API answer requests for webhooks. It must be called before
// Route.
func (a *API) ServeWebhooks(s *webhook.Service) { a.webhooks = s }

// routeWebhooks adds the routes of webhooks (docs/contract.md, "Webhooks").
func (a *API) routeWebhooks(r gin.IRoutes, v version) {
	handle := func(h handler) gin.HandlerFunc {
		return httpserver.Handle(func(c *gin.Context) error {
			c.Header("Cache-Control", "no-store") // only some callers may read the answer
			return h(a, c, v)
		})
	}
	r.POST("/webhooks", handle((*API).createWebhook))
	routeRead(r, "/webhooks", handle((*API).listWebhooks))
	routeRead(r, "/webhooks/:webhook", handle((*API).readWebhook))
	r.PATCH("/webhooks/:webhook", handle((*API).changeWebhook))
	r.DELETE("/webhooks/:webhook", handle((*API).removeWebhook))
	r.POST("/webhooks/:webhook/replay", handle((*API).replayWebhook))
	r.POST("/webhooks/:webhook/rotate", handle((*API).rotateWebhook))
}

func (a *API) createWebhook(c *gin.Context, v version) error {
	in, err := a.readBody(c)
	if err != nil {
		return err
	}
	seeds, err := seedsOf(c)
	if err != nil {
		return err
	}
	asked := webhook.Creation{Fields: in.data, Version: string(v.name)}
	for _, seed := range seeds {
		asked.Seeds = append(asked.Seeds, seed)
	}
	created, secret, err := a.webhooks.Create(c.Request.Context(), httpserver.Caller(c), asked)
	if err != nil {
		return err
	}
	c.Header("Location", c.GetHeader(httpserver.BaseURLHeader)+v.prefix()+"/webhooks/"+created.ID)
	return a.writeWebhook(c, http.StatusCreated, created, secret, options{pretty: in.pretty || isPretty(c)})
}

func (a *API) listWebhooks(c *gin.Context, v version) error {
	params, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	limit, faulty := limitOf(params, webhook.MaxPage, webhook.MaxPage)
	ctx, by, after := c.Request.Context(), httpserver.Caller(c), params.Get("after")
	found, err := a.webhooks.List(ctx, by, params.Get("broker"), after, limit)
	if err == nil {
		err = faulty
	}
	if err != nil {
		return err
	}
	list := make(record.List, len(found))
	for i, w := range found {
		list[i] = a.webhook(w)
	}
	answer := record.Object{{Name: "data", Value: list}}
	if len(found) == limit {
		answer = append(answer, record.Member{Name: "next_page", Value: nextWebhooks(c, v, params, found[limit-1].ID)})
	}
	return a.write(c, http.StatusOK, record.Append(nil, answer), o)
}

// nextWebhooks returns the link to the page of webhooks after an id.
func nextWebhooks(c *gin.Context, v version, params url.Values, after string) record.Object {
	next := url.Values{"after": {after}}
	for _, name := range []string{"broker", "limit"} {
		if value := params.Get(name); value != "" {
			next.Set(name, value)
		}
	}
	path := v.prefix() + "/webhooks?" + next.Encode()
	return record.Object{
		{Name: "after", Value: after},
		{Name: "path", Value: path},
		{Name: "uri", Value: c.GetHeader(httpserver.BaseURLHeader) + path},
	}
}

func (a *API) readWebhook(c *gin.Context, _ version) error {
	_, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	found, err := a.webhooks.Get(c.Request.Context(), httpserver.Caller(c), c.Param("webhook"))
	if err != nil {
		return err
	}
	return a.writeWebhook(c, http.StatusOK, found, "", o)
}

// webhookChange is a use case that changes a webhook. Its argument `sent` is the body of the client's request.
type webhookChange func(sent record.Object) (changed webhook.Shown, secret string, err error)

// changing answers a request that changes a webhook. If the caller is not allowed to see the webhook, this is reported
// before any fault of the body (docs/contract.md, "Order of checks").
func (a *API) changing(c *gin.Context, change webhookChange) error {
	in, err := a.readBody(c)
	if err != nil {
		_, missing := a.webhooks.Get(c.Request.Context(), httpserver.Caller(c), c.Param("webhook"))
		if missing != nil {
			return missing
		}
		return err
	}
	changed, secret, err := change(in.data)
	if err != nil {
		return err
	}
	var ignored []string
	shown := a.webhook(changed)
	for _, name := range webhook.SetOnce() {
		if sent := in.data.Get(name); sent != nil && !record.Equal(sent, shown.Get(name)) {
			ignored = append(ignored, name)
		}
	}
	naming(c)(ignored)
	return a.writeWebhook(c, http.StatusOK, changed, secret, options{pretty: in.pretty || isPretty(c)})
}

func (a *API) changeWebhook(c *gin.Context, _ version) error {
	return a.changing(c, func(sent record.Object) (webhook.Shown, string, error) {
		changed, err := a.webhooks.Change(c.Request.Context(), httpserver.Caller(c), c.Param("webhook"), sent)
		return changed, "", err
	})
}

func (a *API) replayWebhook(c *gin.Context, _ version) error {
	return a.changing(c, func(sent record.Object) (webhook.Shown, string, error) {
		changed, err := a.webhooks.Replay(c.Request.Context(), httpserver.Caller(c), c.Param("webhook"), sent)
		return changed, "", err
	})
}

func (a *API) rotateWebhook(c *gin.Context, _ version) error {
	return a.changing(c, func(sent record.Object) (webhook.Shown, string, error) {
		return a.webhooks.Rotate(c.Request.Context(), httpserver.Caller(c), c.Param("webhook"), sent)
	})
}

func (a *API) removeWebhook(c *gin.Context, _ version) error {
	if err := a.webhooks.Remove(c.Request.Context(), httpserver.Caller(c), c.Param("webhook")); err != nil {
		return err
	}
	return a.writeData(c, http.StatusOK, nil, options{pretty: isPretty(c)})
}

func isPretty(c *gin.Context) bool { return c.Query("opt_pretty") != "" }

// writeWebhook writes an answer with a webhook. If the secret is not empty, the answer has the secret too.
func (a *API) writeWebhook(c *gin.Context, status int, w webhook.Shown, secret string, o options) error {
	var answer record.Object
	if secret != "" {
		answer = record.Object{{Name: "access", Value: record.Object{{Name: "secret", Value: secret}}}}
	}
	return a.write(c, status, record.Append(nil, append(answer, record.Member{Name: "data", Value: a.webhook(w)})), o)
}

// webhook returns a webhook with the fields that webhook.Fields lists. Fields without a
// value are left out.
func (a *API) webhook(w webhook.Shown) record.Object {
	shown := record.Object{
		{Name: "id", Value: w.ID},
		{Name: "dateCreated", Value: a.time(w.Created)},
		{Name: "broker", Value: w.Broker},
	}
	if w.ByAdmin {
		shown = append(shown, record.Member{Name: "byAdministrator", Value: true})
	}
	fields := ""
	if w.Whole {
		fields = "*"
	}
	shown = append(shown,
		record.Member{Name: "url", Value: w.URL},
		record.Member{Name: "version", Value: w.Version},
		record.Member{Name: "mode", Value: w.Mode},
		record.Member{Name: "opt_fields", Value: fields})
	if filters := filtersOf(w); len(filters) > 0 {
		shown = append(shown, record.Member{Name: "filters", Value: filters})
	}
	shown = append(shown, record.Member{Name: "state", Value: string(w.State)})
	if w.Reason != "" {
		shown = append(shown, record.Member{Name: "reason", Value: string(w.Reason)})
	}
	shown = append(shown,
		record.Member{Name: "offset", Value: printPosition(w.Position, a.zone)},
		record.Member{Name: "behind", Value: number(int(w.Behind / time.Second))},
		record.Member{Name: "failures", Value: number(w.Failures)})
	if w.LastError != "" {
		shown = append(shown, record.Member{Name: "lastError", Value: w.LastError})
	}
	for _, t := range []struct {
		name string
		at   time.Time
	}{{"next", w.Next}, {"succeeded", w.Succeeded}} {
		if !t.at.IsZero() {
			shown = append(shown, record.Member{Name: t.name, Value: a.time(t.at)})
		}
	}
	if w.PublicKey != "" {
		shown = append(shown, record.Member{Name: "publicKey", Value: w.PublicKey})
	}
	return shown
}

// filtersOf returns the filters of a webhook, in the order in which assetfilter.All lists them. It returns nothing for
// filters that cannot be read.
func filtersOf(w webhook.Shown) (shown record.Object) {
	values, _ := assetfilter.Decode(w.Filters) // with an error, there are no values
	for _, f := range assetfilter.All {
		if list := values[f.Name]; len(list) > 0 {
			var texts record.List
			for _, text := range list {
				texts = append(texts, text)
			}
			shown = append(shown, record.Member{Name: string(f.Name), Value: texts})
		}
	}
	return shown
}

func (a *API) time(t time.Time) string { return printPosition(t.UnixMicro(), a.zone) }

func number(n int) record.Number { return record.Number(strconv.Itoa(n)) }

// Positions implements webhook.Positions for a registry.
type Positions struct{ registry *registry.Registry }

// NewPositions returns Positions that read a registry.
func NewPositions(r *registry.Registry) Positions { return Positions{r} }

func (p Positions) Horizon(ctx context.Context) (int64, error) {
	page, err := p.registry.List(ctx, registry.HorizonQuery())
	return page.Upto, err
}

func (p Positions) Next(ctx context.Context, mode string, after int64) (next int64, err error) {
	page, err := p.registry.List(ctx, registry.Query{Offset: after, Limit: 1, Mode: modeOf(mode)})
	if len(page.Entries) > 0 {
		next = page.Entries[0].Position
	}
	return next, err
}
