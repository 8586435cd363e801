package registryctl

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"asset-registry/shared/adminapi"
)

type findAnything struct {
	Text []string `arg:"" help:"Number or id of an asset, BROKER REFERENCE, a name or words."`
}

// Run finds assets, brokers and keys.
func (f findAnything) Run(ctx context.Context, p *program) error {
	query := url.Values{"q": {strings.Join(f.Text, " ")}}
	answer, err := call[adminapi.Found](ctx, p, http.MethodGet, "/find", query, nil)
	if err != nil {
		return err
	}
	var rows []row
	for _, a := range answer.Data.Assets {
		rows = append(rows, row{"asset", a.ID, a.Number, a.Owner, a.Status})
	}
	for _, b := range answer.Data.Brokers {
		rows = append(rows, row{"broker", b.Name, b.Title, "", ""})
	}
	for _, k := range answer.Data.Keys {
		rows = append(rows, row{"key", k.ID, k.Name, k.Broker, k.State})
	}
	if err := p.print(answer, row{"KIND", "ID", "NAME", "BROKER", "STATE"}, rows...); err != nil || !answer.Data.Cut {
		return err
	}
	return p.note("There is more; search for more words.")
}
