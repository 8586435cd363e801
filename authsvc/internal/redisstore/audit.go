package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/errs"
)

const (
	headKey  = "registry:{admin}:head"  // SEQ:HASH of the last entry
	auditKey = "registry:{admin}:audit" // number -> entry
)

// Head returns the end of the audit log. Gateways trust cached keys only while they hear about the head.
func (s *Store) Head(ctx context.Context) (adminapi.Head, error) {
	text, err := s.watcher.Get(ctx, headKey).Result()
	if errors.Is(err, redis.Nil) {
		return adminapi.Head{}, nil
	}
	if err != nil {
		return adminapi.Head{}, fmt.Errorf("load head of audit log: %w", err)
	}
	return adminapi.ParseHead(text)
}

// Entries returns up to limit audit entries, in order. The first entry follows the entry with the number `after`.
// Entries that Redis lacks are left out.
func (s *Store) Entries(ctx context.Context, after int64, limit int) (found []adminapi.Entry, err error) {
	head, err := s.Head(ctx)
	if err != nil {
		return nil, err
	}
	for n := after + 1; n <= head.Seq && len(found) < limit; {
		var numbers []string
		for ; n <= head.Seq && len(numbers) < limit-len(found); n++ {
			numbers = append(numbers, strconv.FormatInt(n, 10))
		}
		entries, err := load(ctx, s, auditKey, numbers, func(text []byte) (e adminapi.Entry, err error) {
			return e, json.Unmarshal(text, &e)
		})
		if err != nil {
			return nil, err
		}
		found = append(found, entries...)
	}
	return found, nil
}

// commit makes a change and adds its entry to the log. It does nothing and returns 0 if the log does not end at
// ARGV[1], or if ARGV[8] is 1 and the record does not exist. KEYS: head, audit, records, index of the records' names,
// hashes. ARGV: head before the change, head after it, number and text of the entry, name and text of the record,
// hash, and in ARGV[9] 1 for a removal of the record. If the name is empty, no record changes. The script also runs
// when Redis has no free memory, because operators must always be able to revoke a key.
var commit = redis.NewScript(`#!lua flags=allow-oom
if (redis.call('GET', KEYS[1]) or '0:') ~= ARGV[1] then return 0 end
if ARGV[8] == '1' and redis.call('HEXISTS', KEYS[3], ARGV[5]) == 0 then return 0 end
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
if ARGV[9] == '1' then
  redis.call('HDEL', KEYS[3], ARGV[5])
  redis.call('ZREM', KEYS[4], ARGV[5])
elseif ARGV[5] ~= '' then
  redis.call('HSET', KEYS[3], ARGV[5], ARGV[6])
  redis.call('ZADD', KEYS[4], 0, ARGV[5])
end
if ARGV[7] ~= '' then redis.call('HSET', KEYS[5], ARGV[7], ARGV[5]) end
redis.call('SET', KEYS[1], ARGV[2])
return 1
`)

// target is the place where Redis keeps the broker or key of a change. Its name is empty if the change has
// neither.
type target struct {
	records, index string // Redis keys
	name           string
	text           []byte
}

func targetOf(c admin.Change) (r target, err error) {
	if c.Broker != nil {
		r = target{records: brokersKey, index: namesKey, name: c.Broker.Name}
		r.text, err = c.Broker.Encode()
		return r, err
	}
	r = target{records: keysKey, index: idsKey}
	if c.Key != nil {
		r.name = c.Key.ID
		r.text, err = c.Key.Encode()
	}
	return r, err
}

// Commit durably makes a change and appends its entry, or returns admin.ErrStale.
func (s *Store) Commit(ctx context.Context, head adminapi.Head, c admin.Change) error {
	if err := s.format.run(ctx, s.client); err != nil {
		return err
	}
	r, err := targetOf(c)
	if err != nil {
		return err
	}
	entry, err := json.Marshal(c.Entry)
	if err != nil {
		return fmt.Errorf("encode audit entry: %w", err)
	}
	if head.Seq == 0 { // Redis may have lost its format with all its data after this process looked
		if err := s.client.SetNX(ctx, formatKey, format, 0).Err(); err != nil {
			return fmt.Errorf("write the format: %w", err)
		}
	}
	after := adminapi.Head{Seq: c.Entry.Seq, Hash: c.Entry.Hash}
	exists, remove := 0, 0
	if c.Entry.Before != nil {
		exists = 1
	}
	if c.Remove {
		remove = 1
	}
	conn := s.client.Conn() // WAIT is about the writes of its own connection
	defer conn.Close()
	done, err := commit.Run(ctx, conn, []string{headKey, auditKey, r.records, r.index, hashesKey},
		head.String(), after.String(), c.Entry.Seq, entry, r.name, r.text, c.NewHash, exists, remove).Int()
	switch {
	case err != nil:
		return fmt.Errorf("commit change: %w", err)
	case done == 0:
		return admin.ErrStale
	case c.Ends && s.replicated(ctx):
		if replicas, err := conn.Wait(ctx, 1, replicaWithin).Result(); err != nil || replicas < 1 {
			return admin.ErrAlone
		}
	}
	return nil
}

// replicaWithin is the longest time that the end of a right waits for a replica.
const replicaWithin = time.Second

// replicated reports whether the server has a replica, or had one in the last hour.
func (s *Store) replicated(ctx context.Context) bool {
	replication, err := s.watcher.Info(ctx, "replication").Result()
	return err == nil && (!strings.Contains(replication, "connected_slaves:0\r\n") ||
		strings.Contains(replication, "repl_backlog_active:1"))
}

// toldKey has the newest entry that an asset service has confirmed, and the run of the server at that time.
const toldKey = "registry:{admin}:told"

// Told returns the newest entry that an asset service has confirmed (ending.Store).
func (s *Store) Told(ctx context.Context) (head adminapi.Head, here bool, err error) {
	text, err := s.watcher.Get(ctx, toldKey).Result()
	if errors.Is(err, redis.Nil) {
		return head, false, nil
	}
	if err != nil {
		return head, false, fmt.Errorf("load the confirmed entry: %w", err)
	}
	run, err := s.run(ctx)
	if err != nil {
		return head, false, err
	}
	told, then, _ := strings.Cut(text, " ")
	head, err = adminapi.ParseHead(told)
	return head, then == run, err
}

// Tell durably stores the newest entry that an asset service has confirmed (ending.Store).
func (s *Store) Tell(ctx context.Context, head adminapi.Head) error {
	run, err := s.run(ctx)
	if err != nil {
		return err
	}
	return errs.In(s.watcher.Set(ctx, toldKey, head.String()+" "+run, 0).Err(), "store the confirmed entry")
}

// run names the run of the server: another server has another one, and so has the same server after its next start.
// It is empty if the server does not tell.
func (s *Store) run(ctx context.Context) (string, error) {
	info, err := s.watcher.Info(ctx, "server").Result()
	if redis.HasErrorPrefix(err, "NOPERM") {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("ask for the run of Redis: %w", err)
	}
	_, rest, _ := strings.Cut(info, "run_id:")
	run, _, _ := strings.Cut(rest, "\r\n")
	return run, nil
}

// Reseal durably replaces audit entries by copies that are sealed with another secret.
func (s *Store) Reseal(ctx context.Context, entries []adminapi.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	fields := make([]any, 0, 2*len(entries))
	for _, e := range entries {
		text, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode audit entry: %w", err)
		}
		fields = append(fields, strconv.FormatInt(e.Seq, 10), text)
	}
	return errs.In(s.client.HSet(ctx, auditKey, fields...).Err(), "reseal audit log")
}

// Restore stores a broker, a key or an audit entry of another store (admin.Target). A restored entry becomes
// the last one of the log.
func (s *Store) Restore(ctx context.Context, c admin.Change, hashes []string) error {
	if err := s.format.run(ctx, s.client); err != nil {
		return err
	}
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if c.Broker != nil || c.Key != nil {
			r, err := targetOf(c)
			if err != nil {
				return err
			}
			p.HSet(ctx, r.records, r.name, r.text)
			p.ZAdd(ctx, r.index, redis.Z{Member: r.name})
			for _, hash := range hashes {
				p.HSet(ctx, hashesKey, hash, r.name)
			}
		}
		if c.Entry.Seq > 0 {
			entry, err := json.Marshal(c.Entry)
			if err != nil {
				return err
			}
			p.HSet(ctx, auditKey, strconv.FormatInt(c.Entry.Seq, 10), entry)
			p.Set(ctx, headKey, adminapi.Head{Seq: c.Entry.Seq, Hash: c.Entry.Hash}.String(), 0)
		}
		return nil
	})
	return errs.In(err, "restore keys")
}
