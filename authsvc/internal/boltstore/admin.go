package boltstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/boltfile"
)

// The buckets of admin.Store.
var (
	brokerBucket   = []byte("brokers")    // name -> broker
	adminKeyBucket = []byte("admin-keys") // id -> key
	hashBucket     = []byte("key-hashes") // hash of a secret -> id of its key
	auditBucket    = []byte("audit")      // number -> entry
	countBucket    = []byte("key-counts") // id, day, class -> requests
	useBucket      = []byte("key-uses")   // id -> secret -> address -> µs
)

func adminBuckets() [][]byte {
	return [][]byte{brokerBucket, adminKeyBucket, hashBucket, auditBucket, countBucket, useBucket}
}

func (s *Store) view(ctx context.Context, read func(*bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.file.View(read)
}

// Head returns where the audit log ends.
func (s *Store) Head(ctx context.Context) (h adminapi.Head, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		h, err = head(tx)
		return err
	})
	return h, err
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

// Commit makes a change and appends its entry if the log still ends at want.
func (s *Store) Commit(ctx context.Context, want adminapi.Head, c admin.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.file.Update(func(tx *bbolt.Tx) error {
		if now, err := head(tx); err != nil {
			return err
		} else if now != want {
			return admin.ErrStale
		}
		return put(tx, c, c.NewHash)
	})
}

// Restore stores what was stored elsewhere.
func (s *Store) Restore(ctx context.Context, c admin.Change, hashes []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.file.Update(func(tx *bbolt.Tx) error { return put(tx, c, hashes...) })
}

// Reseal stores entries of the audit log again.
func (s *Store) Reseal(ctx context.Context, entries []adminapi.Entry) error {
	if err := ctx.Err(); err != nil || len(entries) == 0 {
		return err
	}
	return s.file.Update(func(tx *bbolt.Tx) error {
		for _, e := range entries {
			if err := put(tx, admin.Change{Entry: e}); err != nil {
				return err
			}
		}
		return nil
	})
}

func put(tx *bbolt.Tx, c admin.Change, hashes ...string) error {
	if c.Broker != nil {
		text, err := c.Broker.Encode()
		if err != nil {
			return err
		}
		if err := tx.Bucket(brokerBucket).Put([]byte(c.Broker.Name), text); err != nil {
			return err
		}
	}
	if c.Key != nil {
		text, err := c.Key.Encode()
		if err != nil {
			return err
		}
		if err := tx.Bucket(adminKeyBucket).Put([]byte(c.Key.ID), text); err != nil {
			return err
		}
		for _, hash := range hashes {
			if hash == "" {
				continue
			}
			if err := tx.Bucket(hashBucket).Put([]byte(hash), []byte(c.Key.ID)); err != nil {
				return err
			}
		}
	}
	if c.Entry.Seq == 0 {
		return nil
	}
	text, err := json.Marshal(c.Entry)
	if err != nil {
		return fmt.Errorf("encode audit entry: %w", err)
	}
	return tx.Bucket(auditBucket).Put(number(c.Entry.Seq), text)
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// Entries returns up to limit audit entries that follow number after.
func (s *Store) Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	return scan(ctx, s, auditBucket, number(after+1), limit, func(text []byte) (e adminapi.Entry, err error) {
		return e, json.Unmarshal(text, &e)
	})
}

// Brokers returns up to limit brokers whose names follow after.
func (s *Store) Brokers(ctx context.Context, after string, limit int) ([]apikey.Broker, error) {
	return scan(ctx, s, brokerBucket, []byte(after+"\x00"), limit, apikey.DecodeBroker)
}

// Keys returns up to limit keys whose ids follow after.
func (s *Store) Keys(ctx context.Context, after string, limit int) ([]apikey.Key, error) {
	return scan(ctx, s, adminKeyBucket, []byte(after+"\x00"), limit, apikey.DecodeKey)
}

// scan returns up to limit values of a bucket from a key on.
func scan[T any](ctx context.Context, s *Store, bucket, from []byte, limit int, decode func([]byte) (T, error)) (found []T, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(bucket).Cursor()
		for key, text := cursor.Seek(from); key != nil && len(found) < limit; key, text = cursor.Next() {
			value, err := decoded(decode(text))
			if err != nil {
				return fmt.Errorf("read %s: %w", bucket, err)
			}
			found = append(found, value)
		}
		return nil
	})
	return found, err
}

// Broker returns a broker, or admin.ErrNotFound.
func (s *Store) Broker(ctx context.Context, name string) (b apikey.Broker, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		b, err = get(tx, brokerBucket, name, apikey.DecodeBroker)
		return err
	})
	return b, err
}

// Key returns a key, or admin.ErrNotFound.
func (s *Store) Key(ctx context.Context, id string) (k apikey.Key, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		k, err = get(tx, adminKeyBucket, id, apikey.DecodeKey)
		return err
	})
	return k, err
}

// FindSecret returns the key with a secret of this hash and its broker, or
// admin.ErrNotFound. It looks for all three things in any case.
func (s *Store) FindSecret(ctx context.Context, hash string) (k apikey.Key, b apikey.Broker, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		var missing error
		k, missing = get(tx, adminKeyBucket, string(tx.Bucket(hashBucket).Get([]byte(hash))), apikey.DecodeKey)
		b, err = get(tx, brokerBucket, k.Broker, apikey.DecodeBroker)
		if errors.Is(err, admin.ErrNotFound) { // a key of none
			err = nil
		}
		return cmp.Or(missing, err)
	})
	return k, b, err
}

func get[T any](tx *bbolt.Tx, bucket []byte, key string, decode func([]byte) (T, error)) (value T, err error) {
	text := tx.Bucket(bucket).Get([]byte(key))
	if text == nil {
		return value, admin.ErrNotFound
	}
	return decoded(decode(text))
}

func countKey(id, day, class string) []byte { return []byte(id + "\x00" + day + "\x00" + class) }

// AddUsage adds to the counts, and keeps the newest uses.
func (s *Store) AddUsage(ctx context.Context, uses []authapi.Use, counts []authapi.Count) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.file.Batch(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(countBucket)
		for _, c := range counts {
			key := countKey(c.KeyID, c.Day, c.Class)
			var sum uint64
			if old := bucket.Get(key); old != nil {
				sum = binary.BigEndian.Uint64(old)
			}
			if err := bucket.Put(key, binary.BigEndian.AppendUint64(nil, sum+uint64(c.Requests))); err != nil {
				return err
			}
			if err := forget(bucket, c); err != nil {
				return err
			}
		}
		for _, u := range uses {
			if err := keepUse(tx, u); err != nil {
				return err
			}
		}
		return nil
	})
}

// forget removes what was counted of a key too long before.
func forget(bucket *bbolt.Bucket, c authapi.Count) error {
	day, err := time.Parse(time.DateOnly, c.Day)
	if err != nil {
		return fmt.Errorf("usage of key %s: %w", c.KeyID, err)
	}
	prefix, end := []byte(c.KeyID+"\x00"), countKey(c.KeyID, day.AddDate(0, 0, -admin.UsageDays).Format(time.DateOnly), "")
	cursor := bucket.Cursor()
	for key, _ := cursor.Seek(prefix); key != nil && bytes.Compare(key, end) < 0; key, _ = cursor.Seek(prefix) {
		if err := cursor.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// uses are a key's, by number of its secret and address, in µs.
type uses map[int]map[netip.Addr]int64

func loadUses(tx *bbolt.Tx, id string) (uses, error) {
	found := uses{}
	if text := tx.Bucket(useBucket).Get([]byte(id)); text != nil {
		if err := json.Unmarshal(text, &found); err != nil {
			return nil, fmt.Errorf("%w: decode uses of key %s: %w", boltfile.ErrDamaged, id, err)
		}
	}
	return found, nil
}

func keepUse(tx *bbolt.Tx, u authapi.Use) error {
	all, err := loadUses(tx, u.KeyID)
	if err != nil {
		return err
	}
	of := all[u.Secret]
	if of == nil {
		of = map[netip.Addr]int64{}
		all[u.Secret] = of
	}
	of[u.Addr] = max(of[u.Addr], u.Micros)
	if len(of) > admin.MaxUses {
		oldest := u.Addr
		for addr, micros := range of {
			if micros < of[oldest] {
				oldest = addr
			}
		}
		delete(of, oldest)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("encode uses of key %s: %w", u.KeyID, err)
	}
	return tx.Bucket(useBucket).Put([]byte(u.KeyID), text)
}

// Uses returns the last uses of each key, by number of its secret.
func (s *Store) Uses(ctx context.Context, ids []string) (map[string]map[int][]adminapi.Use, error) {
	found := map[string]map[int][]adminapi.Use{}
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		for _, id := range ids {
			all, err := loadUses(tx, id)
			if err != nil {
				return err
			}
			found[id] = map[int][]adminapi.Use{}
			for secret, of := range all {
				for addr, micros := range of {
					found[id][secret] = append(found[id][secret], adminapi.Use{Time: time.UnixMicro(micros).UTC(), From: addr.String()})
				}
				slices.SortFunc(found[id][secret], func(a, b adminapi.Use) int { return b.Time.Compare(a.Time) })
			}
		}
		return nil
	})
	return found, err
}

// Counts returns a key's counts of the days that have any.
func (s *Store) Counts(ctx context.Context, id string, days []string) ([]adminapi.Day, error) {
	found := []adminapi.Day{}
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(countBucket).Cursor()
		for _, day := range days {
			prefix := countKey(id, day, "")
			counts := map[string]int64{}
			for key, sum := cursor.Seek(prefix); bytes.HasPrefix(key, prefix); key, sum = cursor.Next() {
				counts[string(key[len(prefix):])] = int64(binary.BigEndian.Uint64(sum))
			}
			if len(counts) > 0 {
				found = append(found, adminapi.Day{Day: day, Counts: counts})
			}
		}
		return nil
	})
	return found, err
}
