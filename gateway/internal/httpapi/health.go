package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/singleflight"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// maxHealth is the maximum number of health requests that are answered at the same time.
const maxHealth = 100

// health answers whether the registry works. A load balancer must learn the truth under load too.
// So the rate limits do not count health requests, and the limit of concurrent requests does not refuse them.
// To make many health requests cheap, health has its own limit, and requests that wait at the same time share
// one call to the services.
type health struct {
	current *concurrency.Limiter
	shared  singleflight.Group
}

// answerHealth answers with 200 if the services and their stores answer, otherwise with 503 and the reason.
func (a *API) answerHealth(c *gin.Context) error {
	httpserver.Quiet(c)
	if !a.health.current.Enter(concurrency.Write) {
		return a.crowded(c)
	}
	defer a.health.current.Leave()
	if err := a.Health(c.Request.Context()); err != nil {
		return err
	}
	c.Header("Cache-Control", "no-store")
	return httpserver.JSON(c, http.StatusOK, gin.H{"status": "ok"})
}

// Health calls the method `works`. If another call of this method has not ended yet, Health waits for the
// result of that call. A call continues until the deadline of ctx, even if the client leaves.
func (a *API) Health(ctx context.Context) error {
	answer := a.health.shared.DoChan("", func() (any, error) {
		end, _ := ctx.Deadline() // the engine gives every request a deadline
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
		defer cancel()
		return nil, a.works(ctx)
	})
	select {
	case a := <-answer:
		return a.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// works returns nil if the asset service and the auth service answer, with their stores. A mirror stores no changes,
// so for a mirror the asset service only has to be ready.
func (a *API) works(ctx context.Context) error {
	if err := a.config.Assets.Get(ctx, "/readyz"); err != nil || a.isMirror() {
		return err
	}
	return a.config.Auth.Ready(ctx)
}

// spore answers with a description of every route in the SPORE format. Clients ask for it when they start
// (docs/contract.md, "Routes").
func (a *API) spore(v routes.Version) handler {
	methods := gin.H{}
	for _, r := range routes.All() {
		if r.Method == http.MethodHead || !v.Has(r) || !a.has(r) {
			continue
		}
		status := http.StatusOK
		if r.Method == http.MethodPost {
			status = http.StatusCreated
		}
		methods[sporeName(r)] = gin.H{"path": r.Pattern, "method": r.Method, "expected_status": []int{status}}
	}
	return func(c *gin.Context) error {
		c.Header("Cache-Control", "no-cache")
		return httpserver.JSON(c, http.StatusOK, gin.H{
			"name":            "asset registry",
			"version":         v.Target,
			"base_url":        a.baseURL(c.Request) + routes.Prefix(v.Target),
			"expected_status": []int{http.StatusOK},
			"methods":         methods,
		})
	}
}

// sporeName returns the name of a route: "patch_assets_id_items_part".
func sporeName(r routes.Route) string {
	return strings.ToLower(r.Method) + strings.NewReplacer("/:", "_", "/", "_").Replace(r.Pattern)
}

// needsOrigin reports whether a mirror refuses the requests of a route. A mirror refuses writes, and requests that
// need a key.
func needsOrigin(r routes.Route) bool { return r.Class == routes.Write || r.Key }

// toOrigin refuses a request that only the origin of the mirror can answer.
func (a *API) toOrigin(c *gin.Context) error {
	c.Writer.Header().Add("Link", fmt.Sprintf(`<%s>; rel="original"`, a.config.Origin))
	return fault.New(fault.Misdirected, fault.URL, "mirror",
		"This is a mirror, which takes no changes and no keys, and keeps no whole copies: send this request to %s.",
		a.config.Origin)
}
