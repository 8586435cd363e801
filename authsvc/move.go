package authsvc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/boltstore"
	"asset-registry/authsvc/internal/redisstore"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/identity"
)

// Move copies all token records, transfers and keys from the embedded store in a file to a Redis
// server, where a newer record of an asset stands, and the audit log must be none, or go on in the file's. It may be repeated. The file
// must not be in use; it is left as it is.
func Move(ctx context.Context, file, url string) (records int, err error) {
	if _, err := os.Stat(file); err != nil {
		return 0, err
	}
	from, err := boltstore.Open(file, boltstore.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := redisstore.Open(url, noop.NewMeterProvider().Meter(""))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	err = from.Each(func(r token.Record) error {
		if _, err := to.Save(ctx, r); err != nil {
			return err
		}
		standing, err := to.Load(ctx, r.AssetID)
		if err == nil && standing.Generation < r.Generation {
			err = fmt.Errorf("token record of asset %s is not there as it was", r.AssetID)
		}
		records++
		return err
	})
	if err != nil {
		return records, err
	}
	if err := from.EachTransfer(func(t token.Transfer) error { return to.RestoreTransfer(ctx, t) }); err != nil {
		return records, err
	}
	err = from.EachKey(func(hash string, i identity.Identity) error {
		if err := to.AddKey(ctx, hash, i); !errors.Is(err, apikey.ErrExists) { // else from an attempt before
			return err
		}
		return nil
	})
	if err != nil {
		return records, err
	}
	return records, admin.Copy(ctx, from, to, time.Now())
}

// Snapshot writes the embedded store as it is at one moment, a file that can be
// put in its place, while the service works. It asks for where to, with the
// file's size. Of a store in Redis it makes none.
func (s *Server) Snapshot(to func(size int64) (io.Writer, error)) error {
	store, embedded := s.store.(*boltstore.Store)
	if !embedded {
		return errors.New("the store is no file: back Redis up by its own means")
	}
	return store.Snapshot(to)
}
