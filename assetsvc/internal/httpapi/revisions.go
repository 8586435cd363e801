package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/httpserver"
)

// revisions answers with the changes of an asset, the newest first. Its pages take the same parameters as a
// listing (docs/contract.md, "Revisions").
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
	if faulty != nil { // checked last: a caller who must not read the revisions learns nothing about the query
		return faulty
	}
	list := make(record.List, len(changes))
	next := params.Get("offset")
	for i, change := range changes {
		next = printPosition(change.Position, a.zone)
		list[i] = v.change(change, next, a.zone)
	}
	c.Header("Cache-Control", "no-store") // only some callers may read it
	path := v.prefix() + "/assets/" + id + "/revisions"
	l := links{base: c.GetHeader(httpserver.BaseURLHeader), path: path, params: params}
	return a.write(c, http.StatusOK, record.Append(nil, record.Object{
		{Name: "data", Value: list},
		{Name: "next_page", Value: l.next(next)},
	}), o)
}

// erase erases the content of a revision, and answers with the rest of the revision (docs/contract.md,
// "Revisions").
func (a *API) erase(c *gin.Context, v version) error {
	_, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	number, _ := strconv.ParseInt(c.Param("number"), 10, 64) // the next line finds a malformed number
	if c.Param("number") != strconv.FormatInt(number, 10) {
		number = 0 // not a valid number; no asset has a revision 0
	}
	change, err := a.registry.Erase(c.Request.Context(), httpserver.Caller(c), c.Param("id"), number)
	if err != nil {
		return err
	}
	return a.writeData(c, http.StatusOK, v.change(change, printPosition(change.Position, a.zone), a.zone), o)
}

// change returns a change in the form of this version. The argument `date` is the time of the change.
func (v version) change(c registry.Change, date string, zone *time.Location) record.Object {
	shown := record.Object{
		{Name: "revision", Value: record.Number(strconv.FormatInt(c.Revision, 10))},
		{Name: "date", Value: date},
		{Name: "author", Value: showAuthor(c.By)},
	}
	if c.Erased != nil {
		return append(shown, record.Member{Name: "erased", Value: record.Object{
			{Name: "date", Value: printPosition(c.Erased.At, zone)},
			{Name: "author", Value: showAuthor(c.Erased.By)},
		}})
	}
	if c.Patch == nil { // the patch was too large to keep
		return append(shown, record.Member{Name: "changesSize", Value: record.Number(strconv.Itoa(c.Size))})
	}
	return append(shown, record.Member{Name: "changes", Value: v.view.Patch(c.Patch)})
}

func showAuthor(a registry.Author) record.Object {
	return record.Object{
		{Name: "broker", Value: a.Broker},
		{Name: "key", Value: a.KeyID},
		{Name: "role", Value: string(a.Role)},
	}
}
