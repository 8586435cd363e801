package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
)

// The size of a page: by default (interface document, Limits) and at most
// (contract, decision 5), in entries; and how many bytes of assets are read for
// a page that shows their fields (contract, decision 27).
const (
	defaultLimit = 100
	maxLimit     = 1000
	maxPage      = registry.MaxAsset
)

func (a *API) list(c *gin.Context, v version) error {
	params, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	q, err := parseListing(params)
	if err != nil {
		return err
	}
	names := strings.Split(params.Get("opt_fields"), ",")
	if slices.ContainsFunc(names, needsBody) {
		q.Bodies = maxPage
		inside, leave, err := a.enter(c.Request.Context(), int64(maxPage*v.factor()))
		if err != nil {
			return err
		}
		defer leave()
		a = inside
	}
	entries, err := a.registry.List(c.Request.Context(), q)
	if err != nil {
		return err
	}
	body := append(make([]byte, 0, 128*(len(entries)+4)), `{"data":[`...)
	for i, e := range entries {
		if i > 0 {
			body = append(body, ',')
		}
		if body, err = v.listed(body, e, names, a.zone); err != nil {
			return fmt.Errorf("list asset %s: %w", e.ID, err)
		}
	}
	body = append(body, ']')
	next, prev := a.offsets(params, entries)
	links := links{base: c.GetHeader(httpserver.BaseURLHeader), path: "/api/" + v.name + "/assets", params: params}
	body = record.Append(append(body, `,"next_page":`...), links.page(next, q.Descending))
	if q.Descending || params.Get("offset") != "" {
		body = record.Append(append(body, `,"prev_page":`...), links.page(prev, !q.Descending))
	}
	return a.write(c, http.StatusOK, append(body, '}'), o)
}

// needsBody reports whether a field is not known from the feed alone.
func needsBody(name string) bool { return name != "" && name != "id" && name != "dateModified" }

// parseListing understands the parameters of a listing (contract, section 5.1
// and decision 5). Unknown parameters are ignored.
func parseListing(params url.Values) (registry.Query, error) {
	q := registry.Query{Limit: defaultLimit, Descending: params.Get("descending") != ""}
	switch params.Get("mode") {
	case "test":
		q.Mode = registry.Test
	case "_all_":
		q.Mode = registry.All
	}
	if text := params.Get("offset"); text != "" {
		offset, err := parseOffset(text)
		if err != nil {
			return q, err
		}
		q.Offset = offset
	}
	if text := params.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(text, "-") {
			limit, err = maxLimit, nil
		}
		if err != nil || limit < 1 {
			return q, fault.New(fault.Invalid, fault.Query, "limit", "The limit must be a whole number from 1 to %d.", maxLimit)
		}
		q.Limit = min(limit, maxLimit)
	}
	return q, nil
}

// parseOffset reads a position as a listing prints it, or any ISO 8601 time.
// One without a zone is UTC, and a blank in the zone's place is a '+' that was
// not escaped (contract, section 5.3).
func parseOffset(text string) (int64, error) {
	repaired := text
	if date := len("2006-01-02T"); len(text) > date {
		repaired = text[:date] + strings.ReplaceAll(text[date:], " ", "+")
	}
	t, err := asset.ParseTime(repaired, time.UTC)
	if err != nil {
		return 0, fault.New(fault.NotFound, fault.Query, "offset", "Invalid offset provided: %s", text)
	}
	return max(t.UnixMicro(), 1), nil // 0 would stand for no offset at all
}

// offsets returns where the next and the previous page start: at the last and
// the first entry, or where this page started when it is empty.
func (a *API) offsets(params url.Values, entries []registry.Entry) (next, prev string) {
	if len(entries) == 0 {
		return params.Get("offset"), params.Get("offset")
	}
	return printPosition(entries[len(entries)-1].Position, a.zone), printPosition(entries[0].Position, a.zone)
}

// links makes the page pointers of a listing (interface document, Page pointer).
type links struct {
	base, path string
	params     url.Values // of the request
}

// kept are the parameters that a link takes over from the request.
var kept = []string{"feed", "limit", "mode", "opt_fields"}

func (l links) page(offset string, descending bool) record.Object {
	params := url.Values{"offset": {offset}}
	for _, name := range kept {
		if value := l.params.Get(name); value != "" {
			params.Set(name, value)
		}
	}
	if descending {
		params.Set("descending", "1")
	}
	path := l.path + "?" + params.Encode()
	return record.Object{
		{Name: "offset", Value: offset},
		{Name: "path", Value: path},
		{Name: "uri", Value: l.base + path},
	}
}
