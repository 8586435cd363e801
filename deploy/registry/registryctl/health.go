package registryctl

import (
	"context"

	"asset-registry/shared/probe"
)

// showHealth is for health checks in images that have no shell.
type showHealth struct {
	Address string `arg:"" name:"url" help:"Address of /readyz, such as http://127.0.0.1:8090/readyz."`
}

// Run returns an error if the witness or the service is not ready.
func (c showHealth) Run(ctx context.Context) error { return probe.Ready(ctx, c.Address) }
