package assetsvc

import (
	"net/netip"

	"asset-registry/assetsvc/internal/httpapi"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/errs"
)

// Webhooks configures where webhooks may be sent (docs/webhooks.md). The zero value allows public addresses
// over https only.
type Webhooks struct {
	Networks []netip.Prefix `help:"Networks that webhooks may be sent to, although they are not public."`
	HTTP     bool           `name:"http" help:"Webhooks may have addresses that begin with http."`
}

func (w Webhooks) policy() webhook.Policy { return webhook.Policy{Networks: w.Networks, HTTP: w.HTTP} }

// startWebhooks lets the API answer requests for webhooks, and starts a sender. Of all processes on one store, only
// the process with the term sends (webhook.Term). For the store of a mirror, startWebhooks does nothing.
func (s *Server) startWebhooks(api *httpapi.API, assets *registry.Registry, c Config) error {
	store, keeps := s.store.(webhook.Store)
	if !keeps {
		return nil
	}
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
	s.webhooks, err = webhook.New(webhook.Config{
		Store:  store,
		Feed:   httpapi.NewWebhookFeed(assets, s.live, c.Zone, c.hidden()),
		Seals:  seals,
		Policy: c.Webhooks.policy(),
		Memory: c.Memory / 16,
		Log:    c.Log,
		Meter:  c.Telemetry.Meter(),
	})
	return errs.In(err, "start the sender of webhooks")
}
