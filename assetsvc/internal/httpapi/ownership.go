package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
)

// routeOwnership adds the routes by which assets change hands (contract,
// section 6.4).
func (a *API) routeOwnership(r gin.IRoutes, v version) {
	read := httpserver.Handle(a.readTransfer)
	r.POST("/transfers", a.bounded(trees, (*API).createTransfer))
	r.GET("/transfers/:id", read)
	r.HEAD("/transfers/:id", read)
	r.POST("/assets/:id/ownership", a.bounded(trees, func(a *API, c *gin.Context) error { return a.changeOwner(c, v) }))
}

func (a *API) createTransfer(c *gin.Context) error {
	in, err := a.parse(c, true)
	if err != nil {
		return err
	}
	created, err := a.registry.CreateTransfer(c.Request.Context(), httpserver.Caller(c), in.data)
	if err != nil {
		return err
	}
	return a.write(c, http.StatusCreated, record.Append(nil, record.Object{
		{Name: "access", Value: record.Object{{Name: "token", Value: created.Token}, {Name: "transfer", Value: created.Transfer}}},
		{Name: "data", Value: a.transfer(created.TransferResponse)},
	}), options{pretty: in.pretty})
}

func (a *API) readTransfer(c *gin.Context) error {
	_, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	found, err := a.registry.ReadTransfer(c.Request.Context(), c.Param("id"))
	if err != nil {
		return err
	}
	return a.writeData(c, http.StatusOK, a.transfer(found), o)
}

// transfer is a transfer as the public sees it.
func (a *API) transfer(t authapi.TransferResponse) record.Object {
	shown := record.Object{{Name: "id", Value: t.ID}, {Name: "date", Value: printPosition(t.Date, a.zone)}}
	if t.AssetID != "" {
		shown = append(shown, record.Member{Name: "usedFor", Value: "/assets/" + t.AssetID})
	}
	return shown
}

func (a *API) changeOwner(c *gin.Context, v version) error {
	ctx, id := c.Request.Context(), c.Param("id")
	in, err := a.parse(c, true)
	if err == nil {
		var h registry.Handover
		if h.Transfer, h.Token, err = asset.ParseHandover(in.data); err == nil {
			stored, err := a.registry.ChangeOwner(ctx, httpserver.Caller(c), id, in.guard, h)
			if err != nil {
				return err
			}
			c.Header("ETag", tag(stored.Position, v, options{pretty: c.Query("opt_pretty") != ""}))
			return a.answer(c, v, http.StatusOK, stored, options{pretty: in.pretty})
		}
	}
	// An asset that does not exist is the first thing to say of any request (contract, section 7).
	if _, missing := a.registry.Read(ctx, id); missing != nil {
		return missing
	}
	return err
}
