package httpapi

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// TestRoutesAreThoseThatTheGatewayForwards compares the routes of this service with the list from which the
// gateway takes its routes. Both must be the same.
func TestRoutesAreThoseThatTheGatewayForwards(t *testing.T) {
	engine := httpserver.NewEngine(httpserver.Options{Log: slog.New(slog.DiscardHandler), Timeout: time.Minute})
	api := New(nil, time.UTC, 1<<20, NewMemory(1<<30))
	api.ServeWebhooks(&webhook.Service{})
	api.Route(engine, nil)
	parameter := regexp.MustCompile(`:\w+`) // the parameters may have other names in this service
	var got, want []string
	for _, r := range engine.Routes() {
		if strings.HasPrefix(r.Path, "/api/") {
			got = append(got, r.Method+" "+parameter.ReplaceAllString(r.Path, ":"))
		}
	}
	for _, version := range routes.Targets() {
		for _, r := range routes.All() {
			if !r.AtGateway && !r.AtSearch {
				want = append(want, r.Method+" "+parameter.ReplaceAllString(routes.Prefix(version)+r.Pattern, ":"))
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	expect.NoDiff(t, cmp.Diff(want, got), "the routes differ")
}

// TestWithoutWebhooksThereAreNoRoutesOfWebhooks asks a service that sends no webhooks for the list of webhooks.
func TestWithoutWebhooksThereAreNoRoutesOfWebhooks(t *testing.T) {
	newService(t).do(t, exchange{"GET", "/api/2.5/webhooks", identity.Broker, "", "", 404, "errors"})
}
