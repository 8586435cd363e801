package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
)

// Move copies a data directory's assets to MongoDB and its token records to
// Redis, so that the services of a registry there go on where the one here has
// stopped (assetsvc.Move, authsvc.Move). It must not run. The services need the
// directory's secret.
func Move(ctx context.Context, dir, mongo, redis string, progress func(done, total int)) (assets, tokens int, err error) {
	found, err := os.ReadFile(filepath.Join(dir, formatFile))
	if err != nil {
		return 0, 0, fmt.Errorf("%s is no data directory of the registry: %w", dir, err)
	}
	if strings.TrimSpace(string(found)) != format {
		return 0, 0, errors.New("the data directory is of another version of the registry")
	}
	// The tokens first: an asset service that may use the assets finds them.
	if tokens, err = authsvc.Move(ctx, filepath.Join(dir, tokensFile), redis); err != nil {
		return 0, tokens, err
	}
	assets, err = assetsvc.Move(ctx, filepath.Join(dir, assetsFile), mongo, progress)
	return assets, tokens, err
}
