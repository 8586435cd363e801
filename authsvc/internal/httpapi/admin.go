package httpapi

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/openapi"
	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/static"
)

// Admin serves the admin API, on a separate listener.
type Admin struct {
	service   *admin.Service
	log       *audit.Checker
	operators *admin.Authenticator
}

// NewAdmin returns the admin API of a service and its audit log. The argument `operators` identifies the callers.
func NewAdmin(service *admin.Service, log *audit.Checker, operators *admin.Authenticator) *Admin {
	return &Admin{service, log, operators}
}

// Route adds the routes to engine. It also adds the documents that describe the routes; these need no key. The
// service decides what a caller may do.
func (a *Admin) Route(engine *gin.Engine) {
	documents := engine.Group(adminapi.Prefix)
	documents.GET("/openapi.json", gin.WrapH(static.New("application/json", "no-cache", openapi.JSON())))
	documents.GET("/openapi.yaml", gin.WrapH(static.NewYAML("no-cache", openapi.JSON())))
	handlers := map[string]func(*gin.Context) error{
		"GET /brokers": listed(a.service.Brokers), "POST /brokers": a.createBroker,
		"GET /brokers/:name":    shown("name", a.service.Broker),
		"PATCH /brokers/:name":  changed("name", a.service.ChangeBroker),
		"DELETE /brokers/:name": ended("name", a.service.RemoveBroker),
		"POST /keys/:id/revoke": ended("id", a.service.RevokeKey),
		"GET /keys":             listed(a.service.Keys), "POST /keys": a.createKey,
		"GET /keys/:id": shown("id", a.service.Key), "PATCH /keys/:id": changed("id", a.service.ChangeKey),
		"POST /keys/:id/rotate": a.rotateKey, "GET /keys/:id/usage": a.usage,
		"GET /find": a.find, "GET /audit": a.audit, "GET /audit/verify": a.verifyAudit,
	}
	r := engine.Group(adminapi.Prefix, httpserver.Handle(a.identify), httpserver.Handle(needJSON))
	for _, route := range adminapi.Routes() {
		r.Handle(route.Method, route.Pattern, httpserver.Handle(handlers[route.Method+" "+route.Pattern]))
	}
}

const actorKey = "actor"

// identify refuses a caller without a key of the admin API.
func (a *Admin) identify(c *gin.Context) error {
	c.Header("Cache-Control", "no-store")
	key, _, basic := c.Request.BasicAuth()
	if scheme, token, _ := strings.Cut(c.GetHeader("Authorization"), " "); !basic && strings.EqualFold(scheme, "Bearer") {
		key = strings.TrimSpace(token)
	}
	from, err := netip.ParseAddrPort(c.Request.RemoteAddr)
	if err != nil {
		return fault.New(fault.Forbidden, fault.URL, "permission", "Forbidden")
	}
	by, err := a.operators.Operator(c.Request.Context(), authapi.Hash(key), from.Addr().Unmap())
	if err != nil {
		return err
	}
	by.RequestID, by.Warnings = c.GetHeader(httpserver.RequestIDHeader), new([]string)
	c.Set(actorKey, by)
	httpserver.SetCaller(c, identity.Identity{KeyID: by.KeyID(), Role: by.Role})
	return nil
}

func actor(c *gin.Context) admin.Actor { return c.MustGet(actorKey).(admin.Actor) }

// needJSON refuses a change whose body is not JSON. A page of another site can make a browser send other types
// without a CORS preflight.
func needJSON(c *gin.Context) error {
	if c.Request.Method != http.MethodGet && c.ContentType() != "application/json" {
		return fault.New(fault.UnsupportedMedia, fault.Header, "Content-Type",
			"Content-Type header should be one of ['application/json']")
	}
	return nil
}

func (a *Admin) find(c *gin.Context) error {
	found, err := a.service.Find(c.Request.Context(), actor(c), c.Query("q"))
	return answer(c, http.StatusOK, found, err)
}

const (
	defaultPage = 100
	maxPage     = 1000
)

func filter(c *gin.Context) (admin.Filter, error) {
	var found problems.List
	f := admin.Filter{
		Broker: c.Query("broker"), State: c.Query("state"), Text: c.Query("q"), After: c.Query("after"),
	}
	if f.State != "" && !slices.Contains(adminapi.States(), f.State) {
		found.AddQuery("state", "The state must be one of %s.", strings.Join(adminapi.States(), ", "))
	}
	f.Limit = number(c, &found, "limit", bounds{otherwise: defaultPage, most: maxPage})
	return f, found.Err()
}

// bounds limits the number in a query parameter: it must be from 1 to the value of the field `most`.
type bounds struct{ otherwise, most int } // otherwise: the value if the parameter is missing

// number reads a query parameter, and adds a problem to a list of problems if the number is out of bounds.
func number(c *gin.Context, found *problems.List, name string, b bounds) int {
	text := c.Query(name)
	if text == "" {
		return b.otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > b.most {
		found.AddQuery(name, "Send a number between 1 and %d.", b.most)
	}
	return n
}

func answer[T any](c *gin.Context, status int, data T, err error) error {
	if err != nil {
		return err
	}
	return httpserver.JSON(c, status, adminapi.Response[T]{Data: data, Warnings: *actor(c).Warnings})
}

// listed makes a handler of a function that returns a page and the place where the next one begins.
func listed[T any](list func(context.Context, admin.Filter) ([]T, string, error)) func(*gin.Context) error {
	return func(c *gin.Context) error {
		f, err := filter(c)
		if err != nil {
			return err
		}
		page, next, err := list(c.Request.Context(), f)
		if err != nil {
			return err
		}
		return httpserver.JSON(c, http.StatusOK, adminapi.Response[[]T]{Data: page, Next: next})
	}
}

// shown makes a handler of a function that returns the object with the name or id in the path.
func shown[T any](parameter string, find func(context.Context, string) (T, error)) func(*gin.Context) error {
	return func(c *gin.Context) error {
		found, err := find(c.Request.Context(), c.Param(parameter))
		return answer(c, http.StatusOK, found, err)
	}
}

// changed makes a handler of a function that changes the settings S of the object with the name or id in the path.
func changed[S, T any](
	parameter string, change func(context.Context, admin.Actor, string, func(*S) error) (T, error),
) func(*gin.Context) error {
	return func(c *gin.Context) error {
		body, err := readData(c)
		if err != nil {
			return err
		}
		patch := func(s *S) error { return body.into(s).Err() }
		made, err := change(c.Request.Context(), actor(c), c.Param(parameter), patch)
		return answer(c, http.StatusOK, made, err)
	}
}

func (a *Admin) createBroker(c *gin.Context) error {
	body, err := readData(c)
	if err != nil {
		return err
	}
	var n adminapi.NewBroker
	unread := body.into(&n)
	b, err := a.service.CreateBroker(c.Request.Context(), actor(c), n, unread.Details()...)
	return answer(c, http.StatusCreated, b, err)
}

func (a *Admin) createKey(c *gin.Context) error {
	body, err := readData(c)
	if err != nil {
		return err
	}
	var n adminapi.NewKey
	unread := body.into(&n)
	k, secret, err := a.service.CreateKey(c.Request.Context(), actor(c), n, unread.Details()...)
	if err != nil {
		return err
	}
	return httpserver.JSON(c, http.StatusCreated, adminapi.Response[adminapi.Key]{Data: k, Secret: secret})
}

func (a *Admin) rotateKey(c *gin.Context) error {
	body, err := readData(c)
	if err != nil {
		return err
	}
	var r adminapi.Rotation
	unread := body.into(&r)
	var grace time.Duration
	if r.Grace != "" {
		if grace, err = time.ParseDuration(r.Grace); err != nil {
			unread.Add("grace", "Send a length of time such as 24h or 30m.")
		}
	}
	k, secret, err := a.service.RotateKey(c.Request.Context(), actor(c), c.Param("id"), grace, unread.Details()...)
	if err != nil {
		return err
	}
	return httpserver.JSON(c, http.StatusOK, adminapi.Response[adminapi.Key]{
		Data: k, Secret: secret, Warnings: *actor(c).Warnings,
	})
}

// ended makes a handler of a function that ends the object with the name or id in the path. The body is optional.
func ended[T any](
	parameter string, end func(context.Context, admin.Actor, string) (T, error),
) func(*gin.Context) error {
	return func(c *gin.Context) error {
		if c.Request.ContentLength != 0 {
			body, err := readData(c)
			if err != nil {
				return err
			}
			if err := body.into(&struct{}{}).Err(); err != nil {
				return err
			}
		}
		done, err := end(c.Request.Context(), actor(c), c.Param(parameter))
		return answer(c, http.StatusOK, done, err)
	}
}

func (a *Admin) usage(c *gin.Context) error {
	var found problems.List
	days := number(c, &found, "days", bounds{otherwise: 30, most: apikey.UsageDays})
	if err := found.Err(); err != nil {
		return err
	}
	counts, err := a.service.Usage(c.Request.Context(), c.Param("id"), days)
	return answer(c, http.StatusOK, counts, err)
}

func (a *Admin) audit(c *gin.Context) error {
	var found problems.List
	limit := number(c, &found, "limit", bounds{otherwise: defaultPage, most: maxPage})
	var after int64
	if text := c.Query("after"); text != "" {
		var err error
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			found.AddQuery("after", "Send the number of an entry.")
		}
	}
	if err := found.Err(); err != nil {
		return err
	}
	entries, err := a.service.Entries(c.Request.Context(), after, limit)
	if err != nil {
		return err
	}
	next := ""
	if len(entries) == limit {
		next = strconv.FormatInt(entries[limit-1].Seq, 10)
	}
	return httpserver.JSON(c, http.StatusOK, adminapi.Response[[]adminapi.Entry]{
		Data: append([]adminapi.Entry{}, entries...), Next: next,
	})
}

func (a *Admin) verifyAudit(c *gin.Context) error {
	found, err := a.log.Check(c.Request.Context())
	return answer(c, http.StatusOK, found, err)
}
