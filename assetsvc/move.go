package assetsvc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/mongostore"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
)

const (
	moveBatch = 200      // how many assets, or changes, are copied or compared in one step
	moveBytes = 16 << 20 // maximum number of bytes of the changes that are copied in one step
)

// Move copies all assets from the embedded store in a file to a MongoDB database, with their positions, revisions
// and sealed token records. It also copies the record of all changes, and the webhooks with their positions. Before
// asset services can use the database, Move reads all data back and compares it with the file. After an
// interruption, Move may be called again. To report its progress, it calls the function `progress` with the number
// of steps that are done and the number of all steps. No service may have the file open. Move does not change the
// file.
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
	m := &move{from: from, to: to, progress: progress, total: 2 * (contents.Assets + contents.Changes)}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return m.assets(ctx, m.put) },
		func(ctx context.Context) error { return m.changes(ctx, to.PutChanges) },
		func(ctx context.Context) error { return m.assets(ctx, to.Check) },
		func(ctx context.Context) error { return m.changes(ctx, to.CheckChanges) },
	} {
		if err := step(ctx); err != nil {
			return 0, err
		}
	}
	if err := to.Numbers(ctx, contents.Numbers); err != nil {
		return 0, err
	}
	webhooks, err := from.Endpoints(ctx, "", "", webhook.MaxEndpoints)
	if err != nil {
		return 0, fmt.Errorf("read the webhooks of %s: %w", file, err)
	}
	if err := to.PutWebhooks(ctx, webhooks); err != nil {
		return 0, err
	}
	return contents.Assets, to.Finish(ctx, contents.Assets, contents.Changes, len(webhooks), contents.Last)
}

// CopyEndings copies the endings of keys from one embedded store to another. No service may have the files open.
func CopyEndings(ctx context.Context, from, to string) (err error) {
	var stores [2]*boltstore.Store
	for i, file := range []string{from, to} {
		if stores[i], err = boltstore.Open(file, boltstore.Options{Now: time.Now}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stores[i].Close()) }()
	}
	for after, more := "", true; more; {
		page, err := stores[0].Endings(ctx, after, authapi.MaxEndings)
		if err != nil {
			return err
		}
		if err := stores[1].KeepEndings(ctx, page); err != nil {
			return err
		}
		if more = len(page) == authapi.MaxEndings; more {
			after = page[len(page)-1].ID
		}
	}
	return nil
}

// move is the state of one call of Move.
type move struct {
	from        *boltstore.Store
	to          *mongostore.Import
	progress    func(done, total int)
	done, total int // numbers of steps
}

// assets calls the function `do` with all assets, up to moveBatch of them in each call.
func (m *move) assets(ctx context.Context, do func(context.Context, []registry.Record) error) error {
	for after := ""; ; {
		records, err := m.from.Scan(ctx, after, moveBatch)
		if err != nil || len(records) == 0 {
			return err
		}
		if err := do(ctx, records); err != nil {
			return err
		}
		after = records[len(records)-1].ID
		m.count(len(records))
	}
}

// put stores assets, and the references under which they were created.
func (m *move) put(ctx context.Context, records []registry.Record) error {
	references := map[string]string{}
	for _, r := range records {
		broker, reference, err := r.Reference()
		if err != nil {
			return err
		}
		if reference != "" {
			references[registry.ReferenceKey(broker, reference)] = r.ID
		}
	}
	if err := m.to.PutReferences(ctx, references); err != nil {
		return err
	}
	return m.to.Put(ctx, records)
}

// changes calls the function `do` with all changes, a limited number of them in each call.
func (m *move) changes(ctx context.Context, do func(context.Context, []registry.Revision) error) error {
	for after := int64(0); ; {
		q := registry.ChangesQuery{After: after, Limit: moveBatch, Bytes: moveBytes, Whole: true}
		page, err := m.from.Changes(ctx, q)
		if err != nil || len(page.Changes) == 0 {
			return err
		}
		if err := do(ctx, page.Changes); err != nil {
			return err
		}
		after = page.Changes[len(page.Changes)-1].Position
		m.count(len(page.Changes))
	}
}

func (m *move) count(steps int) {
	m.done += steps
	m.progress(m.done, m.total)
}

// Snapshot writes the state of the embedded store at one moment, while the service works. The result is a file that
// can replace the store's file. Snapshot calls the function `to` with the size of this file in bytes, and writes to
// the writer that `to` returns. For a store in MongoDB, Snapshot returns an error.
func (s *Server) Snapshot(to func(size int64) (io.Writer, error)) error {
	store, embedded := s.store.(*boltstore.Store)
	if !embedded {
		return errors.New("the store is not a file: back up MongoDB with its own tools")
	}
	return store.Snapshot(to)
}

// sealedStore is a store that keeps token records of assets and seeds of webhooks, all sealed with the registry's
// secret.
type sealedStore interface {
	registry.SealedStore
	webhook.Store
}

// Resealed counts the token records and the webhooks that Reseal has read.
type Resealed struct {
	registry.Resealed
	Webhooks webhook.Resealed
}

// Reseal lets the auth service seal the token records of all assets with the registry's current secret, and
// seals the secrets of webhooks with the same secret. After that, the former secrets are no longer needed. No
// service may have the file of an embedded store open. Reseal may be repeated.
func Reseal(ctx context.Context, c Config) (found Resealed, err error) {
	if err := c.Validate(); err != nil {
		return found, fmt.Errorf("configure asset service: %w", err)
	}
	c = c.withDefaults()
	signer, err := identity.NewSigner(c.Secrets, c.Now)
	if err != nil {
		return found, err
	}
	store, err := c.openStore(ctx)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	sealed, ok := store.(sealedStore)
	if !ok {
		return found, errors.New("the store cannot replace what is sealed")
	}
	auth := c.Auth
	if auth == nil {
		pool, err := c.newPool("authsvc", c.AuthURLs)
		if err != nil {
			return found, err
		}
		defer pool.Close()
		auth = pool
	}
	found.Resealed, err = registry.Reseal(ctx, sealed, authapi.NewClient(auth, signer, "assetsvc"))
	if err != nil {
		return found, err
	}
	seals, err := webhook.NewSeals(c.Secrets)
	if err != nil {
		return found, err
	}
	found.Webhooks, err = webhook.Reseal(ctx, sealed, seals)
	return found, err
}

// Check counts the assets of the embedded store in a file, and returns the faults that it finds in the file. No
// service may have the file open. Check does not change the file.
func Check(file string, secrets [][]byte) (assets int, faults []error) {
	return boltstore.Check(file, secrets, func(r registry.Record) (number, owner string, err error) {
		a, err := asset.Decode(r.Body)
		return a.AssetID(), a.Owner(), err
	})
}

// RepairLog repairs the public log in the embedded store in a file. It makes the damaged parts again from the
// record of changes, and returns how many parts it made. No service may have the file open. If the record gives a
// different log than the signed one, RepairLog changes nothing and returns an error.
func RepairLog(file string, secrets [][]byte) (repaired int, err error) {
	return boltstore.RepairLog(file, secrets)
}

// ownerOf returns the owner of a stored asset.
func ownerOf(r registry.Record) (string, error) {
	a, err := asset.Decode(r.Body)
	return a.Owner(), err
}
