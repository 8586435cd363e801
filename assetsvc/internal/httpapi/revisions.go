package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/httpserver"
)

// revisions answers with the changes of an asset, the newest first, in pages
// that are asked for as those of a listing are.
func (a *API) revisions(c *gin.Context, v version) error {
	id := c.Param("id")
	params, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	q, faulty := parseListing(params)
	changes, err := a.registry.Revisions(c.Request.Context(), httpserver.Caller(c), id, c.GetHeader(tokenHeader), q.Offset, min(q.Limit, registry.MaxLog))
	if err != nil {
		return err
	}
	if faulty != nil { // whom we do not let in hears nothing of the query
		return faulty
	}
	list := make(record.List, len(changes))
	next := params.Get("offset")
	for i, change := range changes {
		next = printPosition(change.Position, a.zone)
		list[i] = v.change(change, next)
	}
	c.Header("Cache-Control", "no-store") // it is not for everybody
	links := links{base: c.GetHeader(httpserver.BaseURLHeader), path: "/api/" + v.name + "/assets/" + id + "/revisions", params: params}
	return a.write(c, http.StatusOK, record.Append(nil, record.Object{
		{Name: "data", Value: list},
		{Name: "next_page", Value: links.page(next, false)},
	}), o)
}

// change returns a change as this version shows it.
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
	if c.Patch == nil {
		return append(shown, record.Member{Name: "changesSize", Value: record.Number(strconv.Itoa(c.Size))})
	}
	return append(shown, record.Member{Name: "changes", Value: v.patch(c.Patch)})
}

// patch returns a JSON Patch without what this version hides.
func (v version) patch(patch record.List) record.List {
	shown := make(record.List, 0, len(patch))
	for _, element := range patch {
		operation, _ := element.(record.Object)
		path := strings.ReplaceAll(strings.TrimPrefix(operation.Text("path"), "/"), "/", ".")
		hidden := false
		for _, h := range v.hidden {
			switch below, within := strings.CutPrefix(h, path+"."); {
			case path == h || strings.HasPrefix(path, h+"."):
				hidden = true
			case path == "":
				operation = operation.With("value", without(operation.Object("value"), h))
			case within && operation.Object("value") != nil:
				operation = operation.With("value", without(operation.Object("value"), below))
			}
		}
		if !hidden {
			shown = append(shown, operation)
		}
	}
	return shown
}

// without returns an object without what is at a dotted path of one or two names.
func without(o record.Object, path string) record.Object {
	parent, name, nested := strings.Cut(path, ".")
	switch inner := o.Object(parent); {
	case !nested:
		return o.Without(parent)
	case inner == nil:
		return o
	default:
		return o.With(parent, inner.Without(name))
	}
}
