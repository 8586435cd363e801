package assetsvc

import (
	"fmt"
	"net/netip"

	"asset-registry/assetsvc/internal/httpapi"
	"asset-registry/assetsvc/internal/live"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
)

// Webhooks is what Config.Webhooks configures: where webhooks may be sent
// (docs/webhooks.md). The zero value allows public addresses over https only.
type Webhooks struct {
	Networks []netip.Prefix // networks that are allowed although they are not public
	HTTP     bool           // addresses may begin with "http://"
}

func (w Webhooks) policy() webhook.Policy { return webhook.Policy{Networks: w.Networks, HTTP: w.HTTP} }

// serveWebhooks lets the API answer requests for webhooks.
func serveWebhooks(api *httpapi.API, store webhook.Store, assets *registry.Registry, c Config) error {
	seals, err := webhook.NewSeals(c.Secrets)
	if err != nil {
		return err
	}
	api.ServeWebhooks(webhook.NewService(webhook.ServiceConfig{
		Store:    store,
		Feed:     httpapi.NewPositions(assets),
		Seals:    seals,
		CheckURL: func(url string) error { return webhook.CheckURL(url, c.Webhooks.policy()) },
		Now:      c.Now,
	}))
	return nil
}

// startWebhooks starts to send webhooks, whenever this process has the term.
func startWebhooks(store webhook.Store, feed live.Feed, w *live.Watcher, c Config) (*webhook.Sender, error) {
	seals, err := webhook.NewSeals(c.Secrets)
	if err != nil {
		return nil, err
	}
	sender, err := webhook.New(webhook.Config{
		Store:  store,
		Feed:   httpapi.NewWebhookFeed(feed, w, c.Zone, c.hidden()),
		Seals:  seals,
		Policy: c.Webhooks.policy(),
		Memory: c.Memory / 16,
		Log:    c.Log,
		Meter:  c.Telemetry.Meter(),
	})
	if err != nil {
		return nil, fmt.Errorf("start the sender of webhooks: %w", err)
	}
	return sender, nil
}
