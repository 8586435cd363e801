package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/redistest"
)

// TestAnOutageIsLoggedOnceAndNotPerRequest sends health checks and writes while Redis is stopped. Each service must
// log the start and the end of the outage. Health checks must leave no line in the log.
// Promises: retry-after
func TestAnOutageIsLoggedOnceAndNotPerRequest(t *testing.T) {
	redis, output := redistest.Start(t), &processes.Output{}
	a := api{split(t, filepath.Join(t.TempDir(), "data"), processes.Stores{Tokens: redis.URL()}, output).URL, "2.5"}
	c := a.publish(t, validAsset())
	const refused = 30
	health := func(writes int) {
		for range refused {
			for _, try := range []struct {
				path   string
				status int
			}{{"/livez", 200}, {"/readyz", 200}, {"/api/2.4/health", writes}, {"/api/0/health", writes}} {
				a.do(t, call{method: "GET", path: try.path}).must(t, try.status)
			}
		}
	}
	health(200)
	before := len(output.String()) // skip the log of the start, which has warnings on a busy machine
	redis.Kill(t)
	for range refused {
		got := a.patch(t, c, fields{"description": "ні"}).fails(t, 503, "url/authorization")
		if got.header.Get("Retry-After") == "" {
			t.Errorf("got no Retry-After with %s, want one", got.text)
		}
	}
	await(t, output, `"not ready"`) // wait for authsvc, which checks Redis once a second
	health(503)
	redis.Restart(t)
	soon(t, "owners can write again", 10*time.Second,
		func() bool { return a.patch(t, c, fields{"description": "так"}).status == 200 })
	log := await(t, output, `"ready again"`)[before:]
	for _, unwanted := range []string{
		`"level":"ERROR"`, `"path":"/readyz"`, `"path":"/livez"`, `"path":"/health"`, `"path":"/api/2.5/health"`,
	} {
		if strings.Contains(log, unwanted) {
			t.Errorf("got %s in the log, want no error and no request of a health check: %s", unwanted, log)
		}
	}
	if got := strings.Count(log, `"path":"/api/2.5/assets/`+c.id+`","status":503`); got != 1 {
		t.Errorf("got %d lines of refused requests, want one for all: %s", got, log)
	}
	// Expected warnings: gateway, assetsvc and authsvc begin to refuse requests. authsvc becomes not ready, and gateway
	// and assetsvc notice it. The stream of key changes breaks.
	if got, most := strings.Count(log, `"level":"WARN"`), 8; got == 0 || got > most {
		t.Errorf("got %d warnings, want 1 to %d: %s", got, most, log)
	}
}
