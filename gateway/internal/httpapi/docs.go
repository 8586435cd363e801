package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/docspage"
	"asset-registry/gateway/internal/openapi"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// routeDocs adds the documentation page and its files. The rate limits count a request for the page or a file
// as a read (docs/contract.md, "Documentation page").
func (a *API) routeDocs(engine *gin.Engine) {
	page := a.pipeline(route{class: routes.Read, stored: true, answer: func(c *gin.Context) error {
		return a.docs.ServePage(c.Writer, c.Request, a.isSandbox(c.Request.Context()))
	}})
	for _, path := range a.docs.Pages() {
		engine.Match(reading, path, page)
	}
	file := a.pipeline(route{class: routes.Read, stored: true, answer: func(c *gin.Context) error {
		a.docs.ServeFile(c.Writer, c.Request)
		return nil
	}})
	for _, path := range a.docs.Files() {
		engine.Match(reading, path, file)
	}
}

// docsOptions returns what the documentation page says about this gateway.
func (a *API) docsOptions() docspage.Options {
	return docspage.Options{
		Document: openapi.JSON,
		BaseURL:  a.config.BaseURL,
		OwnURL:   a.config.OwnURL,
		Limits:   limitsInWords(a.config.Policies),
		Lifecycle: func(version string) (deprecated, sunset string) {
			return a.config.Settings.Deprecated[version], a.config.Settings.Sunset[version]
		},
	}
}

// sandboxHash is the hash of the sandbox key that the documentation page uses.
var sandboxHash = authapi.Hash(docspage.SandboxKey)

// isSandbox reports whether the sandbox keys are valid. Only the auth service knows this. If it does not answer
// in time, isSandbox returns false.
func (a *API) isSandbox(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout/readKeyShare)
	defer cancel()
	_, err := a.config.Keys.VerifyKey(ctx, sandboxHash)
	return err == nil
}

// limitsInWords returns the rows for the page's table of rate limits.
func limitsInWords(table ratelimit.Table) []docspage.Limit {
	var rows []docspage.Limit
	for _, p := range table {
		row := docspage.Limit{Name: p.Name, Counts: costsInWords(p)}
		for _, w := range sortedWindows(p.Windows) {
			amount := grouped(w.limit)
			if p.Costs[ratelimit.Bytes]+p.Costs[ratelimit.FileBytes] > 0 {
				amount = bytesInWords(w.limit)
			}
			row.Windows = append(row.Windows, amount+" "+per(w.length))
		}
		rows = append(rows, row)
	}
	return rows
}

// costsInWords returns the costs of a policy in words: "1 a read, 5 a write".
func costsInWords(p ratelimit.Policy) string {
	var costs []string
	for _, class := range append(routes.Classes(), ratelimit.Failed, ratelimit.Bytes, ratelimit.FileBytes) {
		cost := p.Costs[class]
		if cost == 0 {
			continue
		}
		costs = append(costs, fmt.Sprintf("%s a %s", grouped(cost), classNames[class]))
	}
	return strings.Join(costs, ", ")
}

// classNames has the names of the things that a policy counts.
var classNames = map[ratelimit.Class]string{
	routes.List: "page", routes.Own: "page of own assets", routes.Read: "read", routes.Write: "write",
	ratelimit.Failed: "wrong key", ratelimit.Bytes: "byte of a body", ratelimit.FileBytes: "byte of an upload",
}

// window is a limit, and the length of the time for which it applies.
type window struct {
	length time.Duration
	limit  int64
}

// sortedWindows returns the windows of a valid policy, the shortest first.
func sortedWindows(windows map[string]int64) []window {
	var all []window
	for text, limit := range windows {
		length, _ := time.ParseDuration(text) // the policy is valid, so this cannot fail
		all = append(all, window{length, limit})
	}
	slices.SortFunc(all, func(a, b window) int { return int(a.length - b.length) })
	return all
}

// The function `per` returns a length of time in the form that follows a number: "a second", "in 10s".
func per(length time.Duration) string {
	switch length {
	case time.Second:
		return "a second"
	case time.Minute:
		return "a minute"
	case time.Hour:
		return "an hour"
	case 24 * time.Hour:
		return "a day"
	}
	return "in " + length.String()
}

// bytesInWords returns a number of bytes as text, in MiB if this needs no fraction.
func bytesInWords(n int64) string {
	if n%(1<<20) == 0 {
		return grouped(n>>20) + " MiB"
	}
	return grouped(n) + " bytes"
}

// grouped returns a number with separated thousands: "12,345".
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// routeSite adds GET / and, if there is a search service, the pages for people (docs/contract.md, "Site"). With
// these pages, GET / answers browsers with the first page. Programs always get the welcome answer.
func (a *API) routeSite(engine *gin.Engine) {
	welcome := a.pipeline(route{class: routes.Read, answer: a.welcome})
	if a.config.Search == nil {
		engine.Match(reading, "/", welcome)
		return
	}
	page := func(class routes.Class) gin.HandlerFunc {
		return a.pipeline(route{class: class, answer: a.forwardTo(a.config.Search, samePath), places: a.places.search})
	}
	first := page(routes.List)
	engine.Match(reading, "/", func(c *gin.Context) {
		c.Writer.Header().Add("Vary", "Accept, Accept-Language")
		if wantsPage(c.Request) {
			first(c)
			return
		}
		welcome(c)
	})
	for _, r := range routes.Site() {
		answer := page(r.Class)
		if r.Pattern == routes.AnyLanguage || r.Pattern == routes.Data {
			engine.Handle(r.Method, r.Pattern, func(c *gin.Context) {
				c.Writer.Header().Add("Vary", "Accept-Language")
				answer(c)
			})
			continue
		}
		engine.Handle(r.Method, r.Pattern, a.orPeoplesFile(answer))
	}
}

// stray answers requests for paths without a route: with JSON for programs, and with a page of the site, or the way to
// the page that is meant, for browsers.
func (a *API) stray() gin.HandlerFunc {
	none := a.pipeline(route{class: routes.Read, answer: httpserver.NoRoute})
	if a.config.Search == nil {
		return none
	}
	at := func(path string) gin.HandlerFunc {
		answer := a.forwardTo(a.config.Search, func(*gin.Context) string { return path })
		return a.pipeline(route{class: routes.Read, answer: answer, places: a.places.search})
	}
	page, icon := at(routes.NoPage), at(routes.Icon)
	moved := a.pipeline(route{class: routes.Read, answer: func(c *gin.Context) error {
		c.Header("Cache-Control", "no-cache")
		to := url.URL{Path: routes.Meant(c.Request.URL.Path), RawQuery: c.Request.URL.RawQuery}
		httpserver.Redirect(c.Writer, http.StatusFound, to.String())
		return nil
	}})
	return func(c *gin.Context) {
		c.Writer.Header().Add("Vary", "Accept")
		switch path := c.Request.URL.Path; {
		case !isRead(c.Request) || isForPrograms(path):
			none(c)
		case path == routes.Favicon && (wantsPage(c.Request) || accepts(c.Request, "image/")):
			icon(c)
		case !wantsPage(c.Request):
			none(c)
		case routes.Meant(path) != "":
			moved(c)
		default:
			c.Writer.Header().Add("Vary", "Accept-Language")
			page(c)
			c.Writer.WriteHeaderNow() // otherwise gin makes an answer without a body, as to HEAD, one of its own
		}
	}
}

// isForPrograms reports whether a path without a route is one of the API or of a probe.
func isForPrograms(path string) bool {
	return path == "/api" || strings.HasPrefix(path, "/api/") || path == "/health"
}

// wantsPage reports whether a request names text/html in Accept, as browsers do. Programs name another type, or
// accept any type.
func wantsPage(r *http.Request) bool { return accepts(r, "text/html") }

// accepts reports whether a request names a media type in Accept. A type that ends with a slash stands for all of its
// kind.
func accepts(r *http.Request, media string) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header["Accept"], ","), ",") {
		name, params, _ := strings.Cut(part, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name != media && !(strings.HasSuffix(media, "/") && strings.HasPrefix(name, media)) {
			continue
		}
		_, weight, given := strings.Cut(params, "q=")
		q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
		return !given || err == nil && q > 0
	}
	return false
}
