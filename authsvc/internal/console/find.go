package console

import (
	"net/http"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/shared/adminapi"
)

// findPage is the body of the page of found things.
type findPage struct {
	Text  string
	Found adminapi.Found
	Keys  keyRows
	Total int
}

// find shows what a text names. If that is one thing, it leads to its page.
func (c *Console) find(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	p := findPage{Text: r.URL.Query().Get("text")}
	var err error
	if p.Found, err = c.Admin.Find(r.Context(), by, p.Text); err != nil {
		return err
	}
	f := p.Found
	if p.Total = len(f.Assets) + len(f.Brokers) + len(f.Keys); p.Total == 1 {
		to := ""
		switch {
		case len(f.Assets) == 1:
			to = historyPath(f.Assets[0].ID, "")
		case len(f.Brokers) == 1:
			to = brokerPath(f.Brokers[0].Name)
		default:
			to = keyPath(f.Keys[0].ID)
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
		return nil
	}
	p.Keys = keyRows{keyColumns(), f.Keys}
	return c.show(w, http.StatusOK, "find", view{Title: "Search", By: by, Sought: p.Text, Body: p})
}
