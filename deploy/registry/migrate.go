package registry

import (
	"context"
	"path/filepath"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/filesvc"
)

// Migrated counts what Migrate has copied.
type Migrated struct {
	Assets, Tokens, Files int
	Place                 string // place of the bytes of the files: a directory, or the address of a bucket
}

// Migrate copies the assets of a data directory, with the metadata of files, to MongoDB, and its token records
// to Redis. Services that use these databases continue where this registry has stopped. They need the secret of
// this registry, and the file service needs the place of the bytes. The registry must not run. The function
// `progress` may be called often, and its argument `total` may grow. See assetsvc.Move, authsvc.Move and
// filesvc.Move.
func Migrate(ctx context.Context, dir, mongo, redis string, progress func(done, total int)) (m Migrated, err error) {
	if err := mustBeOurs(dir, formatFile); err != nil {
		return m, err
	}
	// Tokens and files are copied first: an asset service that already sees an asset must also find its tokens
	// and files.
	if m.Tokens, err = authsvc.Move(ctx, filepath.Join(dir, tokensFile), redis); err != nil {
		return m, err
	}
	if m.Place, err = placeOf(dir); err != nil {
		return m, err
	}
	if m.Files, err = filesvc.Move(ctx, filepath.Join(dir, filesFile), mongo); err != nil {
		return m, err
	}
	m.Assets, err = assetsvc.Move(ctx, filepath.Join(dir, assetsFile), mongo, progress)
	return m, err
}
