package registryctl

import (
	"context"

	"asset-registry/shared/probe"
)

// showHealth is for health checks of images without a shell.
type showHealth struct {
	Address string `arg:"" name:"url" help:"Address of /readyz, such as http://127.0.0.1:8090/readyz."`
}

// Run fails unless the witness or the service is ready.
func (c showHealth) Run(ctx context.Context) error { return probe.Ready(ctx, c.Address) }
