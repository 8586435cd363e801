package httpapi

import (
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/httpserver"
)

// revisions answers with the changes of an asset, the newest first, in pages that
// take the parameters of a listing (docs/contract.md, "Revisions").
func (a *API) revisions(c *gin.Context, v version) error {
	id := c.Param("id")
	params, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	q, faulty := parseListing(params)
	limit := min(q.Limit, registry.MaxRevisions)
	caller, token := httpserver.Caller(c), c.GetHeader(tokenHeader)
	changes, err := a.registry.Revisions(c.Request.Context(), caller, id, token, q.Offset, limit)
	if err != nil {
		return err
	}
	if faulty != nil { // a caller who may not read the revisions learns nothing about the query
		return faulty
	}
	list := make(record.List, len(changes))
	next := params.Get("offset")
	for i, change := range changes {
		next = printPosition(change.Position, a.zone)
		list[i] = v.change(change, next)
	}
	c.Header("Cache-Control", "no-store") // only some callers may read it
	path := v.prefix() + "/assets/" + id + "/revisions"
	l := links{base: c.GetHeader(httpserver.BaseURLHeader), path: path, params: params}
	return a.write(c, http.StatusOK, record.Append(nil, record.Object{
		{Name: "data", Value: list},
		{Name: "next_page", Value: l.next(next)},
	}), o)
}

// change returns a change as this version shows it. Date is the time of the
// change.
func (v version) change(c registry.Change, date string) record.Object {
	shown := record.Object{
		{Name: "revision", Value: record.Number(strconv.FormatInt(c.Revision, 10))},
		{Name: "date", Value: date},
		{Name: "author", Value: record.Object{
			{Name: "broker", Value: c.By.Broker},
			{Name: "key", Value: c.By.KeyID},
			{Name: "role", Value: string(c.By.Role)},
		}},
	}
	if c.Patch == nil { // it was too large to keep
		return append(shown, record.Member{Name: "changesSize", Value: record.Number(strconv.Itoa(c.Size))})
	}
	return append(shown, record.Member{Name: "changes", Value: v.view.Patch(c.Patch)})
}
