package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/redistest"
)

// TestAnOutageIsLoggedAsAState takes Redis away from three services that are
// asked for health and for work, and reads what they all have logged.
func TestAnOutageIsLoggedAsAState(t *testing.T) {
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
	redis.Kill(t)
	for range refused {
		a.patch(t, c, fields{"description": "ні"}).fails(t, 503, "url/authorization")
	}
	await(t, output, `"not ready"`) // of authsvc, which is asked once a second
	health(503)
	redis.Restart(t)
	soon(t, "owners go on", 10*time.Second,
		func() bool { return a.patch(t, c, fields{"description": "так"}).status == 200 })
	log := await(t, output, `"ready again"`)
	if strings.Contains(log, `"level":"ERROR"`) || strings.Contains(log, "/readyz") ||
		strings.Contains(log, "/livez") || strings.Contains(log, "/health") {
		t.Errorf("an error or a request for health is logged: %s", log)
	}
	if got := strings.Count(log, `"path":"/api/2.5/assets/`+c.id+`","status":503`); got < refused {
		t.Errorf("got %d lines of refused requests, want at least %d: %s", got, refused, log)
	}
	// The gateway, assetsvc and authsvc begin to refuse, authsvc is not ready, as
	// the gateway and assetsvc see; and changes of keys are not told.
	if got, most := strings.Count(log, `"level":"WARN"`), 8; got == 0 || got > most {
		t.Errorf("got %d warnings, want 1 to %d: %s", got, most, log)
	}
}
