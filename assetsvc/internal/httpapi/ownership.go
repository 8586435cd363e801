package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// routeOwnership adds the routes that hand an asset over to another broker
// (docs/contract.md, "Ownership" and "Transfers").
func (a *API) routeOwnership(r gin.IRoutes, v version) {
	r.POST("/transfers", a.bounded(v, trees, (*API).createTransfer))
	routeRead(r, "/transfers/:id", httpserver.Handle(a.readTransfer))
	r.POST("/assets/:id/"+routes.Ownership, a.bounded(v, trees, (*API).changeOwner))
}

func (a *API) createTransfer(c *gin.Context, _ version) error {
	in, err := a.parse(c)
	if err != nil {
		return err
	}
	created, err := a.registry.CreateTransfer(c.Request.Context(), httpserver.Caller(c), in.data)
	if err != nil {
		return err
	}
	access := record.Object{{Name: "token", Value: created.Token}, {Name: "transfer", Value: created.Transfer}}
	return a.write(c, http.StatusCreated, record.Append(nil, record.Object{
		{Name: "access", Value: access},
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

// transfer returns a transfer as everybody may see it.
func (a *API) transfer(t authapi.TransferResponse) record.Object {
	shown := record.Object{{Name: "id", Value: t.ID}, {Name: "date", Value: printPosition(t.Date, a.zone)}}
	if t.AssetID != "" {
		shown = append(shown, record.Member{Name: "usedFor", Value: "/assets/" + t.AssetID})
	}
	return shown
}

func (a *API) changeOwner(c *gin.Context, v version) error {
	in, err := a.parse(c)
	if err != nil {
		return a.missingFirst(c, err)
	}
	var h registry.Handover
	if h.Transfer, h.Token, err = asset.ParseHandover(in.data); err != nil {
		return a.missingFirst(c, err)
	}
	stored, err := a.registry.ChangeOwner(c.Request.Context(), httpserver.Caller(c), c.Param("id"), in.guard, h)
	if err != nil {
		return err
	}
	return a.answerChange(c, v, stored, in)
}
