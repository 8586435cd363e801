package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/boltfile"
)

var (
	webhookBucket = []byte("webhooks")           // id -> endpoint
	ownedBucket   = []byte("webhooks-of-broker") // broker, a 0 byte and id -> an empty value; not for administrators
)

// Keys in stateBucket.
var (
	termKey           = []byte("webhook-term")    // number of the newest term
	webhookChangesKey = []byte("webhook-changes") // webhook.Term.Changes
)

// endpoint is the stored form of a webhook.Endpoint: a checksum (4 bytes) of the JSON and the id, and then the
// JSON.
type endpoint struct {
	webhook.Endpoint
	Filters string `json:",omitempty"` // Endpoint.Filters; left out if empty, as in old files
	Same    string `json:",omitempty"` // Endpoint.Same, in the same way
	Term    int64  // term of the sender that saved the progress last
}

// sender is the process that has the term. It is not stored: only one process has the file open, so the term of
// an earlier process has ended.
type sender struct {
	mu     sync.Mutex
	holder string // "": no process has the term
	until  time.Time
}

func encodeEndpoint(e endpoint) ([]byte, error) {
	e.Filters, e.Same = e.Endpoint.Filters, e.Endpoint.Same
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode webhook %s: %w", e.ID, err)
	}
	return append(binary.BigEndian.AppendUint32(nil, checksum(e.ID, text)), text...), nil
}

func decodeEndpoint(key, value []byte) (e endpoint, err error) {
	if len(value) < crc32.Size || binary.BigEndian.Uint32(value) != checksum(string(key), value[crc32.Size:]) {
		return e, fmt.Errorf("webhook %q: %w", key, errCorrupt)
	}
	if err := json.Unmarshal(value[crc32.Size:], &e); err != nil || e.ID != string(key) {
		return e, fmt.Errorf("webhook %q: %w", key, errCorrupt)
	}
	e.Endpoint.Filters, e.Endpoint.Same = e.Filters, e.Same
	return e, nil
}

// kept returns e with its times in the precision in which the store keeps them.
func kept(e webhook.Endpoint) webhook.Endpoint {
	e.OldUntil, e.Created = inMillis(e.OldUntil), inMillis(e.Created)
	e.Progress = keptProgress(e.Progress)
	return e
}

func keptProgress(p webhook.Progress) webhook.Progress {
	p.FailedAt, p.Next, p.Succeeded = inMillis(p.FailedAt), inMillis(p.Next), inMillis(p.Succeeded)
	return p
}

func inMillis(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// owned returns the key of an endpoint in ownedBucket.
func owned(broker, id string) []byte { return []byte(broker + "\x00" + id) }

func (s *Store) Endpoints(ctx context.Context, broker, after string, limit int) ([]webhook.Endpoint, error) {
	bucket, prefix := webhookBucket, []byte(nil)
	if broker != "" {
		bucket, prefix = ownedBucket, owned(broker, "")
	}
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) ([]webhook.Endpoint, error) {
		find := func(id, _ []byte) (webhook.Endpoint, error) {
			e, err := decodeEndpoint(id, tx.Bucket(webhookBucket).Get(id))
			return e.Endpoint, err
		}
		return boltfile.Page(tx.Bucket(bucket), prefix, after, limit, find)
	})
}

func (s *Store) Endpoint(ctx context.Context, id string) (webhook.Endpoint, error) {
	return boltfile.Read(ctx, s.file, func(tx *bbolt.Tx) (webhook.Endpoint, error) {
		found, err := findEndpoint(tx, id)
		return found.Endpoint, err
	})
}

// findEndpoint returns an endpoint, or webhook.ErrNotFound.
func findEndpoint(tx *bbolt.Tx, id string) (endpoint, error) {
	value := tx.Bucket(webhookBucket).Get([]byte(id))
	if value == nil {
		return endpoint{}, webhook.ErrNotFound
	}
	return decodeEndpoint([]byte(id), value)
}

func (s *Store) Put(ctx context.Context, e webhook.Endpoint) error {
	if strings.Contains(e.Broker, "\x00") {
		return fmt.Errorf("store webhook %s: the broker's name has a zero byte", e.ID)
	}
	return s.file.UpdateIn(ctx, func(tx *bbolt.Tx) error {
		now, err := findEndpoint(tx, e.ID)
		switch fresh := e.Generation == 0; {
		case err == webhook.ErrNotFound && fresh:
			if err := checkRoom(tx, e); err != nil {
				return err
			}
		case err == webhook.ErrNotFound:
			return webhook.ErrStale
		case err != nil:
			return err
		case fresh || now.Generation != e.Generation || now.Saves != e.Saves:
			return webhook.ErrStale
		}
		next := endpoint{Endpoint: kept(e), Term: now.Term}
		next.Generation++
		if err := putEndpoint(tx, next); err != nil {
			return err
		}
		return countChange(tx)
	})
}

// checkRoom returns an error if the store, or the broker of e, has the largest allowed number of endpoints
// already.
func checkRoom(tx *bbolt.Tx, e webhook.Endpoint) error {
	if tx.Bucket(webhookBucket).Stats().KeyN >= webhook.MaxEndpoints {
		return webhook.ErrFull
	}
	if e.ByAdmin {
		return nil
	}
	count, prefix, cursor := 0, owned(e.Broker, ""), tx.Bucket(ownedBucket).Cursor()
	for key, _ := cursor.Seek(prefix); bytes.HasPrefix(key, prefix); key, _ = cursor.Next() {
		count++
	}
	if count >= webhook.MaxOfBroker {
		return webhook.ErrBrokerFull
	}
	return nil
}

// putEndpoint stores an endpoint. The broker of an endpoint never changes.
func putEndpoint(tx *bbolt.Tx, e endpoint) error {
	value, err := encodeEndpoint(e)
	if err != nil {
		return err
	}
	if err := tx.Bucket(webhookBucket).Put([]byte(e.ID), value); err != nil || e.ByAdmin {
		return err
	}
	return tx.Bucket(ownedBucket).Put(owned(e.Broker, e.ID), nil)
}

// countChange increments webhook.Term.Changes.
func countChange(tx *bbolt.Tx) error {
	return tx.Bucket(stateBucket).Put(webhookChangesKey, positionKey(stateNumber(tx, webhookChangesKey)+1))
}

// stateNumber returns a number from stateBucket; 0 if the bucket does not have it.
func stateNumber(tx *bbolt.Tx, key []byte) int64 {
	if value := tx.Bucket(stateBucket).Get(key); len(value) == positionSize {
		return positionOf(value)
	}
	return 0
}

func (s *Store) Remove(ctx context.Context, id string) error {
	return s.file.UpdateIn(ctx, func(tx *bbolt.Tx) error {
		e, err := findEndpoint(tx, id)
		if err != nil {
			return err
		}
		if err := tx.Bucket(webhookBucket).Delete([]byte(id)); err != nil {
			return err
		}
		if err := tx.Bucket(ownedBucket).Delete(owned(e.Broker, id)); err != nil {
			return err
		}
		return countChange(tx)
	})
}

// wrongTerm is the maximum time from the end of a requested term to the end of the current term. If the current
// term ends later, a wrong clock has set its end, and the term counts as ended.
const wrongTerm = time.Hour

// Lead implements webhook.Store. Renewing a term writes nothing to the file.
func (s *Store) Lead(
	ctx context.Context, holder string, now, until time.Time,
) (term webhook.Term, held bool, err error) {
	if err := ctx.Err(); err != nil {
		return term, false, err
	}
	s.sender.mu.Lock()
	defer s.sender.mu.Unlock()
	ended := s.sender.holder == "" || !s.sender.until.After(now) || s.sender.until.After(until.Add(wrongTerm))
	if ended {
		err = s.file.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(stateBucket).Put(termKey, positionKey(stateNumber(tx, termKey)+1))
		})
		if err != nil {
			return term, false, err
		}
	}
	if held = ended || s.sender.holder == holder; held {
		s.sender.holder, s.sender.until = holder, inMillis(until)
	}
	err = s.file.View(func(tx *bbolt.Tx) error {
		term = webhook.Term{
			Number:  stateNumber(tx, termKey),
			Until:   s.sender.until,
			Changes: stateNumber(tx, webhookChangesKey),
		}
		return nil
	})
	return term, held && err == nil, err
}

func (s *Store) Release(ctx context.Context, term int64) error {
	s.sender.mu.Lock()
	defer s.sender.mu.Unlock()
	return s.file.ViewIn(ctx, func(tx *bbolt.Tx) error {
		if stateNumber(tx, termKey) == term {
			s.sender.holder, s.sender.until = "", time.Time{}
		}
		return nil
	})
}

func (s *Store) Save(ctx context.Context, term int64, steps []webhook.Step) (stale []string, err error) {
	err = s.file.UpdateIn(ctx, func(tx *bbolt.Tx) error {
		stale = nil
		if stateNumber(tx, termKey) > term {
			return webhook.ErrTermOver
		}
		for _, step := range steps {
			e, err := findEndpoint(tx, step.ID)
			if err == webhook.ErrNotFound || err == nil && (e.Generation != step.Generation || e.Term > term) {
				stale = append(stale, step.ID)
				continue
			}
			if err != nil {
				return err
			}
			e.Progress, e.Term = keptProgress(step.Progress), term
			e.Saves++
			if err := putEndpoint(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return stale, nil
}
