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

// Migrate copies the assets of a data directory to MongoDB and its token records to
// Redis. The services there continue where this registry has stopped; they need its
// secret. The registry must not run. progress may be called often, and total may
// grow. See assetsvc.Move and authsvc.Move.
func Migrate(ctx context.Context, dir, mongo, redis string, progress func(done, total int)) (
	assets, tokens int, err error,
) {
	found, err := os.ReadFile(filepath.Join(dir, formatFile))
	if err != nil {
		return 0, 0, fmt.Errorf("%s is no data directory of the registry: %w", dir, err)
	}
	if strings.TrimSpace(string(found)) != format {
		return 0, 0, errors.New("the data directory belongs to another version of the registry")
	}
	// Tokens come first: an asset service that already sees the assets must find their tokens.
	if tokens, err = authsvc.Move(ctx, filepath.Join(dir, tokensFile), redis); err != nil {
		return 0, tokens, err
	}
	assets, err = assetsvc.Move(ctx, filepath.Join(dir, assetsFile), mongo, progress)
	return assets, tokens, err
}
