package registry

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/filesvc"
)

// Migrated counts what Migrate has copied.
type Migrated struct {
	Assets, Tokens, Files int
	Place                 string // of the bytes of the files: a directory, or the address of a bucket
}

// Migrate copies the assets of a data directory to MongoDB, with the metadata of files, and its
// token records to Redis. The services there continue where this registry has stopped; they need
// its secret, and the file service the place of its bytes. The registry must not run. progress
// may be called often, and total may grow. See assetsvc.Move, authsvc.Move and filesvc.Move.
func Migrate(ctx context.Context, dir, mongo, redis string, progress func(done, total int)) (m Migrated, err error) {
	if err := mustBeOurs(dir, formatFile); err != nil {
		return m, err
	}
	found, err := os.ReadFile(filepath.Join(dir, formatFile))
	if err != nil {
		return m, err
	}
	if strings.TrimSpace(string(found)) != format {
		return m, errors.New("the data directory belongs to another version of the registry")
	}
	// Tokens and files come first: an asset service that already sees the assets must find them.
	if m.Tokens, err = authsvc.Move(ctx, filepath.Join(dir, tokensFile), redis); err != nil {
		return m, err
	}
	there, err := has(dir, filesFile)
	if err != nil {
		return m, err
	}
	if there {
		if m.Place, err = placeOf(dir); err != nil {
			return m, err
		}
		if m.Files, err = filesvc.Move(ctx, filepath.Join(dir, filesFile), mongo); err != nil {
			return m, err
		}
	}
	m.Assets, err = assetsvc.Move(ctx, filepath.Join(dir, assetsFile), mongo, progress)
	return m, err
}
