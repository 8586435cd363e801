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

// routeOwnership adds the routes that move an asset to another broker, or give it new tokens (docs/contract.md,
// "Ownership", "Transfers" and "Recovery").
func (a *API) routeOwnership(r gin.IRoutes, v version) {
	r.POST("/transfers", a.bounded(v, trees, (*API).createTransfer))
	routeRead(r, "/transfers/:id", httpserver.Handle(a.readTransfer))
	r.POST("/assets/:id/"+routes.Ownership, a.bounded(v, trees, (*API).changeOwner))
	r.POST("/assets/:id/"+routes.Recovery, a.bounded(v, trees, (*API).recover))
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
	return a.write(c, http.StatusCreated, record.Append(nil, record.Object{
		{Name: "access", Value: access(created.Token, created.Transfer)},
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

// transfer returns a transfer in the form that everybody may see.
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

func (a *API) recover(c *gin.Context, v version) error {
	in, err := a.parse(c)
	if err != nil {
		return a.missingFirst(c, err)
	}
	why := registry.Recovery{From: c.GetHeader(httpserver.ClientHeader)}
	if why.Reason, err = asset.ParseRecovery(in.data); err != nil {
		return a.missingFirst(c, err)
	}
	got, err := a.registry.Recover(c.Request.Context(), httpserver.Caller(c), c.Param("id"), in.guard, why)
	if err != nil {
		return err
	}
	c.Header("ETag", tag(got.Position, v, options{pretty: c.Query("opt_pretty") != ""}))
	return a.answer(c, v, http.StatusOK, got.Record, options{pretty: in.pretty, access: access(got.Token, got.Transfer)})
}

// access returns the access block of an answer with both tokens.
func access(token, transfer string) record.Object {
	return record.Object{{Name: "token", Value: token}, {Name: "transfer", Value: transfer}}
}
