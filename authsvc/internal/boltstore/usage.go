package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/errs"
)

var (
	countBucket = []byte("key-counts") // countKey -> requests
	useBucket   = []byte("key-uses")   // id of a key -> uses
)

func countKey(id, day, class string) []byte { return []byte(id + "\x00" + day + "\x00" + class) }

// AddUsage adds to the counts of keys, and keeps the newest uses of their secrets.
func (s *Store) AddUsage(ctx context.Context, uses []authapi.Use, counts []authapi.Count) error {
	return s.batch(ctx, func(tx *bbolt.Tx) error {
		for _, c := range counts {
			if err := addCount(tx.Bucket(countBucket), c); err != nil {
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

func addCount(bucket *bbolt.Bucket, c authapi.Count) error {
	key := countKey(c.KeyID, c.Day, c.Class)
	var sum int64
	if old := bucket.Get(key); old != nil {
		var err error
		if sum, err = decoded(decodeCount(old)); err != nil {
			return err
		}
	}
	isNew := bucket.Get(key) == nil
	if err := bucket.Put(key, number(sum+c.Requests)); err != nil || !isNew {
		return err
	}
	return removeOld(bucket, c.KeyID)
}

func decodeCount(value []byte) (int64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("a count of %d bytes, want 8", len(value))
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// keptDays is the number of days for which a key keeps counts: the days that the admin API shows, and two more.
const keptDays = apikey.UsageDays + 2

// removeOld removes the counts of a key except the counts of its newest keptDays days. It does not compare the days
// with the clock, because a clock that is wrong for a while must not remove counts.
func removeOld(bucket *bbolt.Bucket, id string) error {
	prefix, days := []byte(id+"\x00"), [][]byte{}
	cursor := bucket.Cursor()
	for key, _ := cursor.Seek(prefix); bytes.HasPrefix(key, prefix); key, _ = cursor.Next() {
		day, _, _ := bytes.Cut(key[len(prefix):], []byte{0})
		if len(days) == 0 || !bytes.Equal(days[len(days)-1], day) {
			days = append(days, bytes.Clone(day))
		}
	}
	if len(days) <= keptDays {
		return nil
	}
	end := countKey(id, string(days[len(days)-keptDays]), "")
	for key, _ := cursor.Seek(prefix); key != nil && bytes.Compare(key, end) < 0; key, _ = cursor.Seek(prefix) {
		if err := cursor.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// uses maps the number of a secret to addresses and the time of their last use, in
// µs since the Unix epoch.
type uses map[int]map[netip.Addr]int64

func loadUses(tx *bbolt.Tx, id string) (uses, error) {
	text := tx.Bucket(useBucket).Get([]byte(id))
	if text == nil {
		return uses{}, nil
	}
	found, err := decoded(decodeUses(text))
	return found, errs.In(err, "uses of key %s", id)
}

func decodeUses(text []byte) (found uses, err error) {
	return found, json.Unmarshal(text, &found)
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
	if len(of) > apikey.MaxUses {
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

// Uses returns the last uses of each key, newest first. The keys of the outer map are ids of API keys. The keys of the
// inner maps are numbers of secrets.
func (s *Store) Uses(ctx context.Context, ids []string) (map[string]map[int][]adminapi.Use, error) {
	found := map[string]map[int][]adminapi.Use{}
	err := s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		for _, id := range ids {
			all, err := loadUses(tx, id)
			if err != nil {
				return err
			}
			found[id] = map[int][]adminapi.Use{}
			for secret, of := range all {
				found[id][secret] = newestFirst(of)
			}
		}
		return nil
	})
	return found, err
}

func newestFirst(of map[netip.Addr]int64) []adminapi.Use {
	var sorted []adminapi.Use
	for addr, micros := range of {
		sorted = append(sorted, adminapi.Use{Time: time.UnixMicro(micros).UTC(), From: addr.String()})
	}
	slices.SortFunc(sorted, func(a, b adminapi.Use) int { return b.Time.Compare(a.Time) })
	return sorted
}

// Counts returns the counts of a key on the given days, except days without counts.
func (s *Store) Counts(ctx context.Context, id string, days []string) ([]adminapi.Day, error) {
	found := []adminapi.Day{}
	err := s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(countBucket).Cursor()
		for _, day := range days {
			prefix := countKey(id, day, "")
			counts := map[string]int64{}
			for key, sum := cursor.Seek(prefix); bytes.HasPrefix(key, prefix); key, sum = cursor.Next() {
				n, err := decoded(decodeCount(sum))
				if err != nil {
					return err
				}
				counts[string(key[len(prefix):])] = n
			}
			if len(counts) > 0 {
				found = append(found, adminapi.Day{Day: day, Counts: counts})
			}
		}
		return nil
	})
	return found, err
}
