package authsvc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/boltstore"
	"asset-registry/authsvc/internal/console"
	"asset-registry/authsvc/internal/ending"
	"asset-registry/authsvc/internal/redisstore"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/errs"
	"asset-registry/shared/identity"
	"asset-registry/shared/redisclient"
)

// store is an open store, with one field for each part of the service that uses it.
type store struct {
	tokens   token.Store
	finder   apikey.Finder
	recorder apikey.Recorder
	admin    admin.Store
	audit    audit.Log
	told     ending.Store
	sessions console.Sessions

	ready    func(context.Context) error
	warnings func(context.Context) []string                     // what an operator should change; nil: nothing
	watch    func(context.Context, *slog.Logger)                // finds out whether it takes writes; nil: ready does
	snapshot func(to func(size int64) (io.Writer, error)) error // nil: the store is not a file
	close    func() error
}

const fileScheme = "file:"

func (c Config) checkStore() error {
	file, isFile := strings.CutPrefix(c.Store, fileScheme)
	isRedis := slices.ContainsFunc(redisclient.Schemes(), func(s string) bool { return strings.HasPrefix(c.Store, s) })
	switch {
	case isFile:
		return errs.If(file == "", `--store: "file:" needs the path of a file`)
	case isRedis:
		return errs.In(redisclient.CheckServer(c.Store), "--store")
	}
	const says = `--store must be "file:" and the path of a file, or a URL of %s`
	return fmt.Errorf(says, strings.Join(redisclient.Schemes(), ", "))
}

// open opens the store, whose address checkStore has checked.
func (c Config) open() (store, error) {
	if strings.HasPrefix(c.Store, fileScheme) {
		return openFile(c)
	}
	return openRedis(c)
}

func openFile(c Config) (store, error) {
	options := boltstore.Options{Secrets: c.Secrets, Log: c.Log}
	s, err := boltstore.Open(strings.TrimPrefix(c.Store, fileScheme), options)
	if err != nil {
		return store{}, err
	}
	s.Measure(c.Telemetry.Meter())
	return store{
		tokens: s, finder: s, recorder: s, admin: s, audit: s, told: s, sessions: s,
		ready: s.Ready, snapshot: s.Snapshot, close: s.Close,
	}, nil
}

func openRedis(c Config) (store, error) {
	s, err := redisstore.Open(c.Store, c.Telemetry.Meter())
	if err != nil {
		return store{}, err
	}
	return store{
		tokens: s, finder: s, recorder: s, admin: s, audit: s, told: s, sessions: s,
		ready: s.Ready, warnings: s.Warnings, watch: s.WatchWrites, close: s.Close,
	}, nil
}

// withStore opens the store, runs do, and closes the store.
func (c Config) withStore(do func(store) error) (err error) {
	s, err := c.withDefaults().open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return do(s)
}

// NewKey returns a new API key and its hash. Show the key to its holder only. To make it valid, list the hash
// in a keys file.
func NewKey() (key, hash string) {
	key = apikey.New()
	return key, authapi.Hash(key)
}

// CheckKey returns all faults of a key that is meant for a keys file. It returns nil if the key has no fault.
func CheckKey(hash string, holder identity.Identity) error { return apikey.CheckEntry(hash, holder) }

// Check returns the number of token records and keys in the file of an embedded store, and all faults of the
// file. No service may have the file open. Check does not change the file.
func Check(file string, secrets [][]byte) (records, keys int, faults []error) {
	return boltstore.Check(file, secrets)
}

// Restored lets the keys in the file of a restored store go on before an asset service has told what it keeps. A person
// restored the asset service's store, too, so it may keep less than it had confirmed.
func Restored(ctx context.Context, file string) error {
	s, err := boltstore.Open(file, boltstore.Options{})
	if err != nil {
		return err
	}
	return errors.Join(s.Tell(ctx, adminapi.Head{}), s.Close())
}

// Snapshot writes a consistent copy of the embedded store while the service runs. The copy can replace the
// store's file. The function `to` gets the size of the copy in bytes, and returns the writer for the copy.
// Snapshot fails if the store is in Redis.
func (s *Server) Snapshot(to func(size int64) (io.Writer, error)) error {
	if s.store.snapshot == nil {
		return errors.New("the store is in Redis, not in a file: back it up with the tools of Redis")
	}
	return s.store.snapshot(to)
}

// Move copies the embedded store in a file to a Redis server and returns the number of token records. If Redis
// has a newer record, this record stays. The audit log in Redis must be empty, or must be a beginning of the
// audit log in the file. No service may have the file open. Move may be repeated, and does not change the
// contents of the file.
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
	if err := to.Ready(ctx); err != nil {
		return 0, err
	}
	if records, err = moveRecords(ctx, from, to); err != nil {
		return records, err
	}
	if err := from.EachTransfer(func(t token.Transfer) error { return to.RestoreTransfer(ctx, t) }); err != nil {
		return records, err
	}
	return records, admin.Copy(ctx, from, to, time.Now())
}

func moveRecords(ctx context.Context, from *boltstore.Store, to *redisstore.Store) (records int, err error) {
	err = from.EachRecord(func(r token.Record) error {
		if _, err := to.Save(ctx, r); err != nil {
			return err
		}
		standing, err := to.Load(ctx, r.AssetID)
		if err == nil && standing.Generation < r.Generation {
			err = fmt.Errorf("the token record of asset %s is missing after it was written to Redis", r.AssetID)
		}
		records++
		return err
	})
	return records, err
}
