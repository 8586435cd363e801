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

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// The limits of a page (docs/contract.md, "Pages").
const (
	defaultLimit = 100               // entries of a page, if the request names no limit
	maxLimit     = 1000              // maximum number of entries of a page
	maxPage      = registry.MaxAsset // maximum number of bytes of stored assets for one page with fields
)

// list answers with a page of the feed.
func (a *API) list(c *gin.Context, v version) error {
	return a.listFrom(c, v, listing{path: "/assets", parse: parseListing, read: a.registry.List})
}

// The method `own` answers with a page of the assets of the caller's broker (docs/contract.md, "Own assets").
func (a *API) own(c *gin.Context, v version) error {
	c.Header("Cache-Control", "no-store") // only some callers may read it
	read := func(ctx context.Context, q registry.Query) (registry.FeedPage, error) {
		return a.registry.Own(ctx, httpserver.Caller(c), q)
	}
	return a.listFrom(c, v, listing{path: routes.OwnAssets, parse: parseOwn, read: read, kept: []string{"status"}})
}

// parseOwn returns the query of a listing of own assets.
func parseOwn(params url.Values) (registry.Query, error) {
	q, err := parseListing(params)
	if params.Get("mode") != "test" {
		q.Mode = registry.All
	}
	q.State = asset.Status(params.Get("status"))
	if err == nil && q.State != "" && !slices.Contains(asset.Statuses, q.State) {
		err = fault.New(fault.Invalid, fault.Query, "status", "Value must be one of %v.", asset.Statuses)
	}
	return q, err
}

// reader reads a page of a list.
type reader func(context.Context, registry.Query) (registry.FeedPage, error)

// listing is a list of assets at a path.
type listing struct {
	path  string
	parse func(url.Values) (registry.Query, error)
	read  reader
	kept  []string // additional parameters to copy from the request to the links of a page
}

// listFrom answers with a page of a list.
func (a *API) listFrom(c *gin.Context, v version, from listing) error {
	params, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	q, err := from.parse(params)
	if err != nil {
		return err
	}
	names := strings.Split(params.Get("opt_fields"), ",")
	isBodiless := c.Request.Method == http.MethodHead && slices.ContainsFunc(names, needsBody)
	if isBodiless {
		names = nil // the answer shows no asset
	}
	a, page, leave, err := a.readPage(c, v, q, names, from.read)
	if err != nil {
		return err
	}
	defer leave()
	if isBodiless {
		o.answerHead(c)
		return nil
	}
	entries, wanted := page.Entries, wantedOf(names)
	body := append(make([]byte, 0, 128*(len(entries)+4)), `{"data":[`...)
	for i, e := range entries {
		if i > 0 {
			body = append(body, ',')
		}
		if body, err = v.listed(body, e, wanted, a.zone); err != nil {
			return fmt.Errorf("list asset %s: %w", e.ID, err)
		}
	}
	body = append(body, ']')
	next, prev := a.offsets(params, q, page)
	l := links{
		base: c.GetHeader(httpserver.BaseURLHeader), path: v.prefix() + from.path, params: params, descending: q.Descending,
		kept: from.kept,
	}
	body = record.Append(append(body, `,"next_page":`...), l.next(next))
	if q.Descending || params.Get("offset") != "" {
		body = record.Append(append(body, `,"prev_page":`...), l.prev(prev))
	}
	return a.write(c, http.StatusOK, append(body, '}'), o)
}

// readPage reads a page of a list. A page with bodies of assets needs memory and a place. Both are held until the
// caller calls the function `leave`, or until the returned API sends the answer.
func (a *API) readPage(
	c *gin.Context, v version, q registry.Query, names []string, read reader,
) (inside *API, page registry.FeedPage, leave func(), err error) {
	inside, leave = a, func() {}
	if slices.ContainsFunc(names, needsBody) {
		q.Bodies = maxPage
		if inside, leave, err = a.enter(c, int64(maxPage*v.factor())); err != nil {
			return inside, page, leave, err
		}
		free := leave
		if inside, _, err = inside.turn(c); err != nil {
			free()
			return a, page, free, err
		}
		leave = inside.leave
	}
	if page, err = read(c.Request.Context(), q); err != nil {
		leave()
	}
	for _, entry := range page.Entries {
		httpserver.CountWork(c.Request.Context(), int64(len(entry.Body)))
	}
	return inside, page, leave, err
}

// needsBody reports whether the value of a field comes from the body of an asset. The other fields come from
// the feed.
func needsBody(name string) bool { return name != "" && name != "id" && name != "dateModified" }

// fieldSet is the set of fields that a listing shows in addition to id and dateModified.
type fieldSet struct {
	all   bool
	names map[string]bool
}

func wantedOf(names []string) fieldSet {
	wanted := fieldSet{names: make(map[string]bool, len(names))}
	for _, name := range names {
		wanted.names[name] = true
		wanted.all = wanted.all || name == "*"
	}
	return wanted
}

// The method `has` reports whether a field of a stored body is shown.
func (f fieldSet) has(name string) bool { return name != "id" && (f.all || f.names[name]) }

// parseListing returns the query of a listing. It ignores unknown parameters. If it returns an error, the query
// still has the parameters that were read before the wrong one.
func parseListing(params url.Values) (registry.Query, error) {
	q := registry.Query{Limit: defaultLimit, Descending: params.Get("descending") != ""}
	q.Mode = modeOf(params.Get("mode"))
	if text := params.Get("offset"); text != "" {
		offset, err := parseOffset(text)
		if err != nil {
			return q, err
		}
		q.Offset = offset
	}
	limit, err := limitOf(params, defaultLimit, maxLimit)
	if err != nil {
		return q, err
	}
	q.Limit = limit
	return q, nil
}

// limitOf returns the number of entries that the request asks for. The result is never greater than the given
// maximum (most). If the request names no number, limitOf returns the given default (usual).
func limitOf(params url.Values, usual, most int) (int, error) {
	text := params.Get("limit")
	if text == "" {
		return usual, nil
	}
	// If the text is no number, Atoi returns 0. If the number is out of range, Atoi returns the nearest int.
	limit, _ := strconv.Atoi(text)
	if limit < 1 {
		const says = "The limit must be a whole number, at least 1; more than %d counts as %d."
		return usual, fault.New(fault.Invalid, fault.Query, "limit", says, most, most)
	}
	return min(limit, most), nil
}

// modeOf returns the mode of a listing for the value of the parameter `mode`.
func modeOf(text string) registry.Mode {
	switch text {
	case "test":
		return registry.Test
	case "_all_":
		return registry.All
	}
	return registry.Real
}

// parseOffset returns the position after which a page starts (docs/contract.md, "Offsets").
func parseOffset(text string) (int64, error) {
	t, err := asset.ParseOffset(text)
	if err != nil {
		return 0, fault.New(fault.NotFound, fault.Query, "offset", "Invalid offset provided: %s", text)
	}
	return max(t.UnixMicro(), 1), nil // at least 1, because a position of 0 means that no offset was sent
}

// offsets returns the offsets of the next and the previous page. The offset of the next page is the position of
// the last entry, and the offset of the previous page is the position of the first entry. If this page is empty,
// the next page has the same offset as this page. The offset of the previous page then differs by one
// microsecond, so that the previous page includes an entry whose position is the offset of this page. After a far
// offset, the next page begins at the end of the feed.
func (a *API) offsets(params url.Values, q registry.Query, page registry.FeedPage) (next, prev string) {
	entries := page.Entries
	if len(entries) == 0 {
		back := q.Offset + 1
		if q.Descending {
			back = q.Offset - 1
		}
		next, prev = params.Get("offset"), params.Get("offset")
		if next != "" && back <= lastOffset {
			prev = printPosition(back, a.zone)
		}
		if isFar(q, page) {
			next = printPosition(page.Upto, a.zone)
		}
		return next, prev
	}
	return printPosition(entries[len(entries)-1].Position, a.zone), printPosition(entries[0].Position, a.zone)
}

// isFar reports whether nobody can have handed out the offset of an ascending page: it is later than the end of the
// feed, and later than the clock by more than a minute.
func isFar(q registry.Query, page registry.FeedPage) bool {
	return !q.Descending && q.Offset > max(page.Upto, time.Now().Add(time.Minute).UnixMicro())
}

// lastOffset is the last position that a link may have. A later position may be in the year 10000 in some zone,
// and such a time cannot be printed.
var lastOffset = time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC).UnixMicro()

// links makes the links from a page to its neighbours (docs/contract.md, "Pages").
type links struct {
	base, path string
	params     url.Values // parameters of the request
	descending bool       // the direction of the page
	kept       []string   // additional parameters to copy from the request
}

// kept lists the parameters that are copied from the request to the links of a page.
var kept = []string{"feed", "limit", "mode", "opt_fields", "wait"}

// The method `next` returns the link to the page that follows in the same direction.
func (l links) next(offset string) record.Object { return l.to(offset) }

// prev returns the link to the page that follows in the other direction.
func (l links) prev(offset string) record.Object {
	l.descending = !l.descending
	return l.to(offset)
}

func (l links) to(offset string) record.Object {
	params := url.Values{"offset": {offset}}
	for _, name := range slices.Concat(kept, l.kept) {
		if value := l.params.Get(name); value != "" {
			params.Set(name, value)
		}
	}
	if l.descending {
		params.Set("descending", "1")
	}
	path := l.path + "?" + params.Encode()
	return record.Object{
		{Name: "offset", Value: offset},
		{Name: "path", Value: path},
		{Name: "uri", Value: l.base + path},
	}
}
