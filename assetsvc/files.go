package assetsvc

import (
	"strings"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/filelink"
	"asset-registry/shared/filesapi"
	"asset-registry/shared/identity"
	"asset-registry/shared/upstream"
)

// bindFiles returns a registry whose documents may refer to files of the file service (docs/files.md,
// "Binding"). Without a file service, it returns the given registry unchanged.
func (s *Server) bindFiles(c Config, assets *registry.Registry, signer *identity.Signer) (*registry.Registry, error) {
	transport := c.Files
	if transport == nil && len(c.FilesURLs) == 0 {
		return assets, nil
	}
	if transport == nil {
		pool, err := upstream.New(upstream.Config{
			Name: "filesvc", URLs: c.FilesURLs, Log: c.Log, Meter: c.Telemetry.Meter(), Clocks: c.clocks,
		})
		if err != nil {
			return nil, err
		}
		s.files, transport = pool, pool
	}
	links, err := filelink.NewSigner(c.Secrets)
	if err != nil {
		return nil, err
	}
	base := filelink.Base(strings.TrimSuffix(c.BaseURL, "/"))
	return assets.WithFiles(filesapi.NewClient(transport, signer, "assetsvc"), base, links, c.Now), nil
}
