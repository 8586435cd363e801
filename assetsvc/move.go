package assetsvc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/mongostore"
	"asset-registry/assetsvc/internal/registry"
)

// moveBatch is the number of assets that are copied or compared at once.
const moveBatch = 200

// Move copies all assets from the embedded store in a file to a MongoDB database,
// with their positions, revisions, changes and sealed token records. It reads them
// back and compares them before it lets asset services use the database. After an
// interruption it may be repeated. It calls progress with the steps done and their
// total. No service may have the file open. Move does not change it.
func Move(ctx context.Context, file, uri string, progress func(done, total int)) (assets int, err error) {
	if _, err := os.Stat(file); err != nil {
		return 0, err
	}
	from, err := boltstore.Open(file, boltstore.Options{Now: time.Now})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	contents, err := from.Contents()
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", file, err)
	}
	to, err := mongostore.OpenImport(ctx, uri)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	done := 0
	for _, step := range []func(context.Context, []registry.History) error{to.Put, to.Check} {
		for after := ""; ; {
			records, err := from.Scan(ctx, after, moveBatch)
			if err != nil {
				return 0, err
			}
			if len(records) == 0 {
				break
			}
			if err := step(ctx, records); err != nil {
				return 0, err
			}
			after = records[len(records)-1].ID
			done += len(records)
			progress(done, 2*contents.Assets)
		}
	}
	if err := to.Numbers(ctx, contents.Numbers); err != nil {
		return 0, err
	}
	return contents.Assets, to.Finish(ctx, contents.Assets, contents.Last)
}

// Snapshot writes the embedded store as it is at one moment, while the service
// works. The result is a file that can replace the store's. Snapshot calls to with
// the size in bytes, for a writer. It returns an error for a store in MongoDB.
func (s *Server) Snapshot(to func(size int64) (io.Writer, error)) error {
	store, embedded := s.store.(*boltstore.Store)
	if !embedded {
		return errors.New("the store is not a file: back up MongoDB with its own tools")
	}
	return store.Snapshot(to)
}
