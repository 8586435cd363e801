package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/httpserver"
)

// partID is the parameter of a path that holds the id of a part.
const partID = "part"

// methods are how verbs are asked for.
var methods = map[asset.Verb]string{
	asset.Add: http.MethodPost, asset.Merge: http.MethodPatch, asset.Replace: http.MethodPut, asset.Remove: http.MethodDelete,
}

// routePart adds the routes of one kind of parts (contract, section 3). Parts
// are the same in every version: no version hides a field of any.
func (a *API) routePart(r gin.IRoutes, v version, p asset.Part) {
	all := "/assets/:id/" + p.Path
	one := all + "/:" + partID
	list := a.bounded(trees, func(a *API, c *gin.Context) error { return a.listParts(c, v, p) })
	read := a.bounded(trees, func(a *API, c *gin.Context) error { return a.readPart(c, v, p) })
	r.GET(all, list)
	r.HEAD(all, list)
	r.GET(one, read)
	r.HEAD(one, read)
	for _, verb := range p.Verbs {
		path := one
		if verb == asset.Add {
			path = all
		}
		r.Handle(methods[verb], path, a.bounded(trees, func(a *API, c *gin.Context) error { return a.changePart(c, v, p, verb) }))
	}
}

// place is where the path of a request leads.
func place(c *gin.Context, p asset.Part) registry.Place {
	return registry.Place{Asset: c.Param("id"), Part: p, ID: c.Param(partID)}
}

func (a *API) listParts(c *gin.Context, v version, p asset.Part) error {
	query, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	list, position, err := a.registry.ReadParts(c.Request.Context(), place(c, p), query.Get("all") != "")
	if err != nil {
		return err
	}
	if done, err := unchanged(c, tag(position, v, o)); done || err != nil {
		return err
	}
	return a.writeData(c, http.StatusOK, list, o)
}

func (a *API) readPart(c *gin.Context, v version, p asset.Part) error {
	query, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	part, position, err := a.registry.ReadPart(c.Request.Context(), place(c, p))
	if err != nil {
		return err
	}
	if key := query.Get("download"); key != "" && p.Versioned() {
		to, err := a.registry.Download(c.Request.Context(), place(c, p), key)
		if err != nil {
			return err
		}
		c.Header("Location", to)
		return a.writeData(c, http.StatusFound, part, o)
	}
	if done, err := unchanged(c, tag(position, v, o)); done || err != nil {
		return err
	}
	return a.writeData(c, http.StatusOK, part, o)
}

// changePart reads no body of a DELETE: clients send a content type with it,
// and nothing else (contract, section 10).
func (a *API) changePart(c *gin.Context, v version, p asset.Part, verb asset.Verb) error {
	ctx, by, at := c.Request.Context(), httpserver.Caller(c), place(c, p)
	in, err := a.parse(c, verb != asset.Remove)
	if err != nil {
		// Whom we do not let in hears nothing of the body (contract, section 7).
		if refusal := a.registry.Admit(ctx, by, at, in.token); refusal != nil {
			return refusal
		}
		return err
	}
	part, position, err := a.registry.ChangePart(ctx, by, at, in.token, verb, registry.Input{Fields: in.data, Guard: in.guard})
	if err != nil {
		return err
	}
	status, o := http.StatusOK, options{pretty: in.pretty}
	if verb != asset.Remove { // nothing is left there to have a tag
		c.Header("ETag", tag(position, v, options{pretty: verb != asset.Add && c.Query("opt_pretty") != ""}))
	}
	switch verb {
	case asset.Remove:
		return a.writeData(c, status, nil, o)
	case asset.Add:
		c.Header("Location", location(c, v, at.Asset, p.Path, part.Text("id")))
		status = http.StatusCreated
	}
	return a.writeData(c, status, part, o)
}

// writeData answers with a value as data.
func (a *API) writeData(c *gin.Context, status int, data record.Value, o options) error {
	return a.write(c, status, record.Append(nil, record.Object{{Name: "data", Value: data}}), o)
}
