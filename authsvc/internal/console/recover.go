package console

import (
	"net/http"
	"strings"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/assetclient"
)

// recoverPage is the body of the pages that give an asset new tokens.
type recoverPage struct {
	ID      string
	Form    form                  // zero once the asset has new tokens
	Access  assetclient.Recovered // the new tokens; zero before the recovery
	History string                // path of the asset's history
}

// The fields of the form that recovers an asset.
var recoverFields = []string{"reason"}

// recoverPage shows the form that asks for a reason.
func (c *Console) recoverPage(w http.ResponseWriter, r *http.Request, by admin.Actor, f form) error {
	id, err := assetOf(r)
	if err != nil {
		return err
	}
	v := view{Title: "Recover an asset", Section: "log", By: by}
	v.Body = recoverPage{ID: id, Form: f, History: historyPath(id, "")}
	return c.show(w, statusOf(f), "recover-asset", v)
}

// recoverAsset gives an asset new tokens and shows them once (docs/recovery.md). The console asks the asset service,
// and the asset service asks an auth service. The auth service writes an entry into the audit log, under the id of
// the form. If this entry exists already, the form was sent before, and nothing is done again.
func (c *Console) recoverAsset(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	id, err := assetOf(r)
	if err != nil {
		return err
	}
	if err := c.Admin.NotDone(r.Context(), by); err != nil {
		return err
	}
	wrong := unknown(r, recoverFields)
	reason := strings.TrimSpace(r.PostForm.Get("reason"))
	if reason == "" {
		wrong.Add("reason", "Say why: the audit log keeps it.")
	}
	err = wrong.Err()
	var got assetclient.Recovered
	if err == nil {
		who := assetclient.Recoverer{KeyID: by.KeyID(), RequestID: by.RequestID, From: by.From}
		got, err = c.Assets.Recover(r.Context(), who, id, reason)
	}
	v := view{Title: "New tokens", Section: "log", By: by}
	v.Body = recoverPage{ID: id, Access: got, History: historyPath(id, "")}
	return settle(r, err, recoverFields,
		func(f form) error { return c.recoverPage(w, r, by, f) },
		func() error { return c.show(w, http.StatusOK, "recovered-asset", v) })
}
