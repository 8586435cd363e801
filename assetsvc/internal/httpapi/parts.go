package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"golang.org/x/net/idna"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/httpserver"
)

// partID is the path parameter with the id of a part.
const partID = "part"

// methods has the HTTP method for each verb.
var methods = map[asset.Verb]string{
	asset.Add:     http.MethodPost,
	asset.Merge:   http.MethodPatch,
	asset.Replace: http.MethodPut,
	asset.Remove:  http.MethodDelete,
}

// routePart adds the routes of one kind of parts (docs/contract.md, "Parts").
func (a *API) routePart(r gin.IRoutes, v version, p asset.Part) {
	all := "/assets/:id/" + p.Path
	one := all + "/:" + partID
	list := func(a *API, c *gin.Context, v version) error { return a.listParts(c, v, p) }
	routeRead(r, all, a.bounded(v, trees, inTurn(list)))
	read := func(a *API, c *gin.Context, v version) error { return a.readPart(c, v, p) }
	routeRead(r, one, a.bounded(v, trees, inTurn(read)))
	for _, verb := range p.Verbs {
		path := one
		if verb == asset.Add {
			path = all
		}
		change := func(a *API, c *gin.Context, v version) error { return a.changePart(c, v, p, verb) }
		r.Handle(methods[verb], path, a.bounded(v, trees, change))
	}
}

// place returns the asset and the part that the path of a request names.
func place(c *gin.Context, p asset.Part) registry.Place {
	return registry.Place{Asset: c.Param("id"), Part: p, ID: c.Param(partID)}
}

func (a *API) listParts(c *gin.Context, v version, p asset.Part) error {
	query, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	scope := asset.Newest
	if query.Get("all") != "" {
		scope = asset.AllVersions
	}
	list, position, err := a.registry.ReadParts(c.Request.Context(), place(c, p), scope)
	if err != nil {
		return a.withoutBody(c, v, o, err)
	}
	if done, err := unchanged(c, tag(position, v, o)); done || err != nil {
		return err
	}
	return a.writeData(c, http.StatusOK, v.view.Parts(p, list), o)
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
	part = v.view.Part(p, part)
	if key := query.Get("download"); key != "" && p.Versioned() {
		to, err := a.registry.Download(c.Request.Context(), place(c, p), key)
		if err != nil {
			return err
		}
		c.Header("Location", headerURL(to))
		return a.writeData(c, http.StatusFound, part, o)
	}
	if done, err := unchanged(c, tag(position, v, o)); done || err != nil {
		return err
	}
	return a.writeData(c, http.StatusOK, part, o)
}

// changePart answers all writes of a part. It does not parse the body of a DELETE. Some clients send a DELETE with
// a content type but without a body, and the parser would refuse this.
func (a *API) changePart(c *gin.Context, v version, p asset.Part, verb asset.Verb) error {
	ctx, by, at := c.Request.Context(), httpserver.Caller(c), place(c, p)
	parse := a.parse
	if verb == asset.Remove {
		parse = parseBodiless
	}
	in, err := parse(c)
	if err != nil {
		// Check this first: a caller who is not allowed to change the part must learn nothing about the body
		// (docs/contract.md, "Order of checks").
		if refusal := a.registry.Admit(ctx, by, at, in.token); refusal != nil {
			return refusal
		}
		return err
	}
	sent := registry.Input{Fields: in.data, Version: v.name, Guard: in.guard, Ignored: naming(c)}
	part, position, err := a.registry.ChangePart(ctx, by, at, in.token, verb, sent)
	if err != nil {
		return err
	}
	o := options{pretty: in.pretty}
	if verb == asset.Remove { // a removed part has no tag
		return a.writeData(c, http.StatusOK, nil, o)
	}
	if a.registry.Unchecked(part) {
		c.Header(httpserver.UncheckedHeader, "hash")
	}
	c.Header("ETag", tag(position, v, options{pretty: verb != asset.Add && c.Query("opt_pretty") != ""}))
	status := http.StatusOK
	if verb == asset.Add {
		c.Header("Location", location(c, v, at.Asset, p.Path, part.Text("id")))
		status = http.StatusCreated
	}
	return a.writeData(c, status, v.view.Part(p, part), o)
}

// headerURL returns an address in ASCII, for use in a header. The host becomes punycode, and other characters
// are percent-encoded in UTF-8. Percent signs stay, so an address that is already encoded does not change.
func headerURL(address string) string {
	before, rest, _ := strings.Cut(address, "://") // without a scheme, rest and host are empty
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	host, _, _ := strings.Cut(rest[:end], ":")
	if ascii, err := idna.Punycode.ToASCII(strings.ToLower(host)); err == nil && ascii != strings.ToLower(host) {
		address = before + "://" + ascii + rest[len(host):]
	}
	var out strings.Builder
	for _, b := range []byte(address) {
		if b <= ' ' || b >= 0x7f {
			fmt.Fprintf(&out, "%%%02X", b)
		} else {
			out.WriteByte(b)
		}
	}
	return out.String()
}

// writeData writes an answer with a value in the member `data`.
func (a *API) writeData(c *gin.Context, status int, data record.Value, o options) error {
	return a.write(c, status, record.Append(nil, record.Object{{Name: "data", Value: data}}), o)
}
