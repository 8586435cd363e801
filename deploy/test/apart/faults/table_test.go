package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/randtest"
	"asset-registry/shared/routes"
)

// row is a request, and what its answer needs.
type row struct {
	method, path, key, kind, body string
	client                        string // address of the client; each row has its own, so that no row takes the place of another
	recalls                       bool   // a service may still know the answer
	needs                         string // names of services and stores, with blanks between them
}

// name tells a row from the others.
func (r row) name() string {
	if r.body == formBody {
		return r.method + " " + r.path + " with " + formBody
	}
	return r.method + " " + r.path
}

// Lists of the services and stores that answers need.
const (
	assets = "assetsvc mongodb "
	keys   = "authsvc " // the keys of the sandbox are in no store
	owner  = keys + "redis "
	files  = "filesvc mongodb "
	found  = "searchsvc "
)

// table has a request for each kind of answer. The requests of all other routes follow from the lists of routes.
var table = []row{
	{method: "GET", path: "/"},
	{method: "GET", path: "/docs"},
	{method: "GET", path: "/api/2.5/spore"},
	{method: "GET", path: "/api/2.5/openapi.json"},
	{method: "GET", path: "/api/2.5/openapi.yaml"},
	{method: "GET", path: "/api/2.5/none"},
	{method: "GET", path: "/data/assets.schema.json"},
	{method: "GET", path: "/api/2.5/me", key: "broker", needs: keys},
	{method: "GET", path: "/api/2.5/health", needs: assets + owner},
	{method: "GET", path: "/api/2.5/me/assets", key: "broker", needs: assets + keys},
	{method: "GET", path: "/api/2.5/assets", needs: assets},
	{method: "GET", path: "/api/2.5/assets?opt_fields=*&limit=10", key: "broker", needs: assets},
	{method: "GET", path: "/api/2.5/assets/:id", needs: assets},
	{method: "GET", path: "/api/2.4/assets/:id", key: "broker", needs: assets},
	{method: "GET", path: "/api/2.5/assets/:grows/documents/:part", needs: assets},
	{method: "GET", path: "/api/2.5/assets/:grows/revisions", key: "broker", needs: assets + owner},
	{method: "POST", path: "/api/2.5/assets", key: "broker", body: fmt.Sprintf(assetText, "new"), needs: assets + keys},
	{method: "PATCH", path: "/api/2.5/assets/:grows", key: "broker", body: `{"data":{"title":"other"}}`,
		needs: assets + owner},
	{method: "POST", path: "/api/2.5/assets/:grows/documents", key: "broker", body: formBody,
		needs: assets + owner + files + "bucket"},
	{method: "PUT", path: "/api/2.5/assets/:grows/documents/:part", key: "broker", body: formBody,
		needs: assets + owner + files + "bucket"},
	{method: "POST", path: "/api/2.5/transfers", key: "broker", body: `{"data":{}}`, needs: "assetsvc " + owner},
	{method: "GET", path: "/api/2.5/webhooks", key: "broker", needs: assets + keys},
	{method: "GET", path: "/api/2.5/search?q=faults", needs: found},
	{method: "GET", path: "/api/2.5/search/suggest?q=fau", needs: found},
	{method: "GET", path: "/api/2.5/dictionaries", needs: found},
	{method: "GET", path: "/api/2.5/search.csv", needs: found + assets},
	{method: "GET", path: "/en", needs: found},
	{method: "GET", path: "/en/?q=faults", needs: found},
	{method: "GET", path: "/en/assets/:id", needs: found + assets},
	{method: "GET", path: "/robots.txt", needs: found},
	{method: "GET", path: "/sitemap.xml", needs: found + assets, recalls: true},
	{method: "POST", path: "/register", key: "broker", body: `{"data":{"hash":"md5:00000000000000000000000000000000"}}`,
		needs: keys + files},
	{method: "POST", path: "/upload", key: "broker", body: formBody, needs: keys + files + "bucket"},
	{method: "GET", path: "/get/:file", needs: files + "bucket"},
	{method: "GET", path: "/get/:id/documents.zip", needs: files + assets + "bucket"},
	{method: "GET", path: "/get", key: "broker", needs: keys + files},
	{method: "GET", path: "/get/removed", needs: "filesvc bucket"},
}

// needsOf returns what the answer to a route of one of the lists of routes may need.
func needsOf(r routes.Route, of string) string {
	needs := of
	if r.Key {
		needs += keys
	}
	if r.Class == routes.Write {
		needs += owner + files + "bucket "
	}
	return needs
}

// everyRoute returns the table, and the requests of the routes that are not in it.
func everyRoute() []row {
	all := slices.Clone(table)
	add := func(r routes.Route, prefix, needs string) {
		pattern := prefix + strings.NewReplacer(":side", "320", ":transfer", strings.Repeat("1", 32), ":webhook",
			strings.Repeat("2", 32), ":number", "9", ":lang", "en", "*path", "none", "*file", "none").Replace(r.Pattern)
		for _, known := range all {
			path, _, _ := strings.Cut(known.path, "?")
			if known.method == r.Method && path == pattern && known.body != formBody {
				return
			}
		}
		recalls := strings.HasPrefix(pattern, "/sitemap")
		one := row{method: r.Method, path: pattern, needs: needsOf(r, needs), recalls: recalls}
		if r.Key {
			one.key = "broker1" // it may change nothing of the broker's
		}
		if r.Class == routes.Write {
			one.body = "{}"
		}
		all = append(all, one)
	}
	for _, r := range routes.All() {
		of := assets
		if slices.Contains(routes.Exports, r.Pattern) && r.Method == http.MethodHead {
			continue // a gateway makes four exports at once
		}
		switch {
		case slices.Contains(routes.Exports, r.Pattern):
			of = found + assets
		case r.AtSearch:
			of = found
		case r.Pattern == "/health", strings.HasPrefix(r.Pattern, "/transfers"),
			strings.Contains(r.Pattern, "/revisions"):
			of += owner
		case r.AtGateway:
			of = ""
		}
		add(r, "/api/2.5", of)
	}
	for _, r := range routes.Files() {
		of := files + "bucket "
		switch r.Pattern {
		case routes.RemovedFiles:
			of = "filesvc bucket "
		case routes.GetFile:
			of = files
		case routes.Archive:
			of += assets
		}
		add(r, "", of)
	}
	for _, r := range routes.Site() {
		of := found
		if strings.HasPrefix(r.Pattern, "/sitemap") {
			of += assets
		}
		add(r, "", of)
	}
	for _, path := range []string{"/log/checkpoint", routes.CopyManifest, routes.Catalogue, "/data/none"} {
		add(routes.Route{Method: http.MethodGet, Pattern: path}, "", assets)
	}
	for i := range all {
		all[i].client = fmt.Sprintf("192.0.2.%d", i)
	}
	return all
}

// outages are ways to lose a service or a store. The function `do` begins an outage, and returns a function that ends
// it.
var outages = []struct {
	name string
	do   func(t *testing.T, w *wire) (heal func())
	slow bool // answers come, but late
}{
	{"away", func(t *testing.T, w *wire) func() {
		w.Stop()
		return func() { w.open(t) }
	}, false},
	{"frozen", func(t *testing.T, w *wire) func() {
		w.poison(t, `{"name":"mute","type":"timeout","stream":"downstream","toxicity":1,"attributes":{"timeout":0}}`)
		return func() { w.heal(t, "mute") }
	}, false},
	{"slow", func(t *testing.T, w *wire) func() {
		w.poison(t, `{"name":"slow","type":"latency","stream":"downstream","toxicity":1,"attributes":{"latency":2000}}`)
		return func() { w.heal(t, "slow") }
	}, true},
}

// compare asks for all rows at the same time. A row that needs the victim must be a 503 with a time. Any other must
// have the status that it has as always. If a row that needs the victim is refused as always, this is right, too. A
// busy machine may need more tries: each comes a second after the last one, as Retry-After asks of a client.
func (w *whole) compare(t *testing.T, when, victim string, always map[string]int, isSlow bool) {
	t.Helper()
	var asking sync.WaitGroup
	for _, r := range everyRoute() {
		asking.Go(func() {
			wrong := ""
			for try := range 4 {
				if try > 0 {
					time.Sleep(time.Second)
				}
				if wrong = w.wrong(r, victim, always[r.name()], isSlow); wrong == "" {
					return
				}
			}
			t.Errorf("%s: %s: %s", when, r.name(), wrong)
		})
	}
	asking.Wait()
}

// wrong asks for a row, and says what is wrong with the answer.
func (w *whole) wrong(r row, victim string, always int, isSlow bool) string {
	got, needs := w.ask(r), slices.Contains(strings.Fields(r.needs), victim)
	switch {
	case got.status == always && (!needs || isSlow || r.recalls || always >= http.StatusBadRequest):
		return ""
	case !needs:
		return fmt.Sprintf("got %d %.150q, want %d as always", got.status, got.text, always)
	case got.status != http.StatusServiceUnavailable || got.retryAfter == "":
		return fmt.Sprintf("got %d %.150q, Retry-After %q; want 503 with it", got.status, got.text, got.retryAfter)
	case r.method != http.MethodHead && !strings.HasPrefix(got.text, "<!") && !isErrorBody(got.text):
		return fmt.Sprintf("got 503 with %.150q, want an error body or a page", got.text)
	}
	return ""
}

func isErrorBody(text string) bool {
	var body struct {
		Status string
		Errors []struct{ Location, Name, Description string }
	}
	return json.Unmarshal([]byte(text), &body) == nil && body.Status == "error" && len(body.Errors) > 0
}

// comesBack waits until every row has its usual answer again.
func (w *whole) comesBack(t *testing.T, when string, always map[string]int) {
	t.Helper()
	var asking sync.WaitGroup
	end := time.Now().Add(90 * time.Second)
	for _, r := range everyRoute() {
		asking.Go(func() {
			got, want := w.ask(r), always[r.name()]
			for ; got.status != want && time.Now().Before(end); got = w.ask(r) {
				time.Sleep(time.Second)
			}
			if got.status != want {
				t.Errorf("%s: %s: got %d %.150q, want %d again", when, r.name(), got.status, got.text, want)
			}
		})
	}
	asking.Wait()
}

// TestEveryRouteWithoutEachServiceAndStore takes each store and each service away, in the middle and at the start, and
// looks at the answer of every route. One of them stays away for a minute.
// Promises: away
func TestEveryRouteWithoutEachServiceAndStore(t *testing.T) {
	w := newWhole(t)
	w.start("")
	w.fill()
	always := map[string]int{}
	for _, r := range everyRoute() {
		got, name := w.ask(r), r.name()
		if always[name] = got.status; got.status == 0 || got.status >= http.StatusInternalServerError {
			t.Fatalf("%s: got %d %s before any outage", name, got.status, got.text)
		}
		if slices.ContainsFunc(table, func(of row) bool { return of.name() == name }) &&
			got.status >= http.StatusBadRequest && r.path != "/api/2.5/none" {
			t.Errorf("%s: got %d %.200q before any outage, want a success", name, got.status, got.text)
		}
	}
	lasting := victims[randtest.IntN(len(victims))]
	for _, victim := range victims {
		t.Run(victim, func(t *testing.T) {
			for _, outage := range outages {
				when, begun := victim+" is "+outage.name, time.Now()
				heal := outage.do(t, w.wires[victim])
				w.compare(t, when, victim, always, outage.slow)
				if victim == lasting && !outage.slow {
					time.Sleep(time.Until(begun.Add(time.Minute)))
					w.compare(t, when+" for a minute", victim, always, false)
				}
				heal()
				w.comesBack(t, when, always)
			}
		})
	}
	w.stop()
	for _, victim := range victims {
		t.Run("start without "+victim, func(t *testing.T) {
			w.start(victim)
			defer w.stop()
			w.compare(t, "before it is there", victim, always, false)
			w.wires[victim].open(t)
			w.comesBack(t, "with it", always)
		})
	}
}
