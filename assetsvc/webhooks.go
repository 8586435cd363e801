package assetsvc

import (
	"net/netip"
	"strings"

	"asset-registry/assetsvc/internal/httpapi"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/filelink"
	"asset-registry/shared/filesapi"
	"asset-registry/shared/identity"
)

// Webhooks configures where webhooks may be sent (docs/webhooks.md). The zero value allows public addresses
// over https only.
type Webhooks struct {
	Networks []netip.Prefix `help:"Networks that webhooks may be sent to, although they are not public."`
	HTTP     bool           `name:"http" help:"Webhooks may have addresses that begin with http."`

	// OwnPorts are the ports of a sandbox that listens on loopback addresses only (webhook.Policy).
	OwnPorts []uint16 `kong:"-"`
}

func (w Webhooks) policy() webhook.Policy {
	return webhook.Policy{Networks: w.Networks, HTTP: w.HTTP, OwnPorts: w.OwnPorts}
}

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
	s.webhooks = webhook.New(webhook.Config{
		Store:  store,
		Feed:   httpapi.NewWebhookFeed(assets, s.live, c.Zone, c.hidden()),
		Seals:  seals,
		Policy: c.Webhooks.policy(),
		Memory: c.Memory / 16,
		Log:    c.Log,
		Meter:  c.Telemetry.Meter(),
	})
	s.closers.Do(s.webhooks.Close)
	return nil
}

// bindFiles returns a registry whose documents may refer to files of the file service (docs/files.md,
// "Binding"). Without a file service, it returns the given registry unchanged.
func (s *Server) bindFiles(c Config, assets *registry.Registry, signer *identity.Signer) (*registry.Registry, error) {
	if c.Files == nil && len(c.FilesURLs) == 0 {
		return assets, nil
	}
	transport, err := s.connect(c, "filesvc", c.Files, c.FilesURLs)
	if err != nil {
		return nil, err
	}
	links, err := filelink.NewSigner(c.Secrets)
	if err != nil {
		return nil, err
	}
	base := filelink.Base(strings.TrimSuffix(c.BaseURL, "/"))
	return assets.WithFiles(filesapi.NewClient(transport, signer, "assetsvc"), base, links, c.Now), nil
}
