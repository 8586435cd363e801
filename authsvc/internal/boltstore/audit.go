package boltstore

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/boltfile"
)

var auditBucket = []byte("audit") // number -> entry

// Head returns the end of the audit log.
func (s *Store) Head(ctx context.Context) (adminapi.Head, error) {
	return boltfile.Read(ctx, s.file, head)
}

func head(tx *bbolt.Tx) (adminapi.Head, error) {
	_, text := tx.Bucket(auditBucket).Cursor().Last()
	if text == nil {
		return adminapi.Head{}, nil
	}
	var e adminapi.Entry
	if err := json.Unmarshal(text, &e); err != nil {
		return adminapi.Head{}, fmt.Errorf("%w: decode last audit entry: %w", boltfile.ErrDamaged, err)
	}
	return adminapi.Head{Seq: e.Seq, Hash: e.Hash}, nil
}

// Entries returns up to limit audit entries, in order. The first entry follows the entry with the number `after`.
func (s *Store) Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	return scan(ctx, s, auditBucket, number(after+1), limit, func(text []byte) (e adminapi.Entry, err error) {
		return e, json.Unmarshal(text, &e)
	})
}

// Commit durably makes a change and appends its entry to the audit log, or returns admin.ErrStale.
func (s *Store) Commit(ctx context.Context, want adminapi.Head, c admin.Change) error {
	return s.file.UpdateIn(ctx, func(tx *bbolt.Tx) error {
		now, err := head(tx)
		if err != nil {
			return err
		}
		if now != want || c.Entry.Before != nil && !exists(tx, c) {
			return admin.ErrStale
		}
		return put(tx, c, c.NewHash)
	})
}

// exists reports whether the store has the broker or key that a change is about.
func exists(tx *bbolt.Tx, c admin.Change) bool {
	if c.Broker != nil {
		return tx.Bucket(brokerBucket).Get([]byte(c.Broker.Name)) != nil
	}
	return tx.Bucket(keyBucket).Get([]byte(c.Key.ID)) != nil
}

// Restore stores a broker, a key or an audit entry of another store (admin.Target).
func (s *Store) Restore(ctx context.Context, c admin.Change, hashes []string) error {
	return s.file.UpdateIn(ctx, func(tx *bbolt.Tx) error { return put(tx, c, hashes...) })
}

// put stores the broker, the key with its hashes, and the entry of a change. A change may lack some of these.
func put(tx *bbolt.Tx, c admin.Change, hashes ...string) error {
	switch {
	case c.Remove:
		if err := tx.Bucket(brokerBucket).Delete([]byte(c.Broker.Name)); err != nil {
			return fmt.Errorf("remove a broker: %w", err)
		}
	case c.Broker != nil:
		if err := putBroker(tx, *c.Broker); err != nil {
			return err
		}
	}
	if c.Key != nil {
		if err := putKey(tx, *c.Key, hashes...); err != nil {
			return err
		}
	}
	if c.Entry.Seq == 0 {
		return nil
	}
	return putEntry(tx, c.Entry)
}

func putEntry(tx *bbolt.Tx, e adminapi.Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode audit entry: %w", err)
	}
	return tx.Bucket(auditBucket).Put(number(e.Seq), text)
}

// toldBucket has under toldName the newest entry that an asset service has confirmed, and the run of the process at
// that time.
var toldBucket, toldName = []byte("told"), []byte("head")

// Told returns the newest entry that an asset service has confirmed (ending.Store). It was confirmed here if this
// process stored it, because a file can only be replaced while no process has it open.
func (s *Store) Told(ctx context.Context) (head adminapi.Head, here bool, err error) {
	err = s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		text := string(tx.Bucket(toldBucket).Get(toldName))
		if text == "" {
			return nil
		}
		told, run, _ := strings.Cut(text, " ")
		here = run == s.run
		head, err = decoded(adminapi.ParseHead(told))
		return err
	})
	return head, here, err
}

// Tell durably stores the newest entry that an asset service has confirmed (ending.Store).
func (s *Store) Tell(ctx context.Context, head adminapi.Head) error {
	return s.file.UpdateIn(ctx, func(tx *bbolt.Tx) error {
		return tx.Bucket(toldBucket).Put(toldName, []byte(head.String()+" "+s.run))
	})
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// Reseal durably replaces audit entries by copies that are sealed with another secret.
func (s *Store) Reseal(ctx context.Context, entries []adminapi.Entry) error {
	if len(entries) == 0 {
		return ctx.Err()
	}
	return s.file.UpdateIn(ctx, func(tx *bbolt.Tx) error {
		for _, e := range entries {
			if err := putEntry(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}
