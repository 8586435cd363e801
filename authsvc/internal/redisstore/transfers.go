package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/errs"
)

// transferKey returns the Redis name of a transfer. The transfer's id is its hash tag.
func transferKey(id string) string { return "registry:transfer:{" + id + "}" }

// The fields of a transfer's Redis hash. If a hash has claimField but no openField, the transfer was used, and
// claimField has the use. Older versions never wrote openField: in those versions a claim was already the use.
const (
	transferField = "transfer" // text of the transfer, without its claim or use
	claimField    = "claim"    // date and asset of the claim or of the use
	openField     = "open"     // generation and expiry of a claim; absent after the use
)

// create stores a transfer. The transfer expires after ARGV[2] ms, or never if ARGV[2] is 0. If the transfer
// is already stored and claimed, its expiry stays. ARGV[2] is a length of time, not a moment, so it is right even if
// the clock of Redis is wrong.
var create = redis.NewScript(`
redis.call('HSET', KEYS[1], 'transfer', ARGV[1])
if ARGV[2] ~= '0' and redis.call('HEXISTS', KEYS[1], 'claim') == 0 then
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
`)

// CreateTransfer durably stores a new transfer. Redis removes it when it expires.
func (s *Store) CreateTransfer(ctx context.Context, t token.Transfer) error {
	if err := s.format.run(ctx, s.client); err != nil {
		return err
	}
	text, err := t.Encode()
	if err != nil {
		return err
	}
	if err := create.Run(ctx, s.client, []string{transferKey(t.ID)}, text, lifeOf(t.Expires)).Err(); err != nil {
		return fmt.Errorf("save transfer %s: %w", t.ID, err)
	}
	return nil
}

// lifeOf returns how many ms remain until an end, at least 1. The end is in µs since the Unix epoch. If the end is 0,
// lifeOf returns 0.
func lifeOf(end int64) int64 {
	if end == 0 {
		return 0
	}
	return max(1, time.Until(time.UnixMicro(end)).Milliseconds())
}

// LoadTransfer returns a transfer, or token.ErrNotFound.
func (s *Store) LoadTransfer(ctx context.Context, id string) (token.Transfer, error) {
	fields, err := s.client.HMGet(ctx, transferKey(id), transferField, claimField, openField).Result()
	if err != nil {
		return token.Transfer{}, fmt.Errorf("load transfer %s: %w", id, err)
	}
	return decodeTransfer(id, fields)
}

// replace changes claimField from ARGV[2] to ARGV[4], and openField from ARGV[3] to ARGV[5], if the transfer
// exists and the fields have the old values. An empty text stands for a missing field. The transfer then
// expires after ARGV[1] ms; 0: never.
var replace = redis.NewScript(`
local old = redis.call('HMGET', KEYS[1], 'transfer', 'claim', 'open')
if old[1] and (old[2] or '') == ARGV[2] and (old[3] or '') == ARGV[3] then
	for i, field in ipairs({'claim', 'open'}) do
		local value = ARGV[3 + i]
		if value == '' then redis.call('HDEL', KEYS[1], field) else redis.call('HSET', KEYS[1], field, value) end
	end
	if ARGV[1] == '0' then redis.call('PERSIST', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
end
return redis.call('HMGET', KEYS[1], 'transfer', 'claim', 'open')
`)

// ClaimTransfer durably stores the result of token.Transfer.Claimed. It returns the transfer that Redis then
// has, or token.ErrNotFound.
func (s *Store) ClaimTransfer(ctx context.Context, id string, c token.Claim) (token.Transfer, error) {
	return s.changeTransfer(ctx, id, func(t token.Transfer) token.Transfer { return t.Claimed(c) })
}

// SettleTransfer durably stores the result of token.Transfer.Settled. It returns the transfer that Redis then
// has, or token.ErrNotFound.
func (s *Store) SettleTransfer(ctx context.Context, id string, c token.Claim, used bool) (token.Transfer, error) {
	return s.changeTransfer(ctx, id, func(t token.Transfer) token.Transfer { return t.Settled(c, used) })
}

// changeTries is the maximum number of times that changeTransfer tries to change a transfer. A try fails if another
// caller has changed the transfer since changeTransfer read it.
const changeTries = 16

func (s *Store) changeTransfer(
	ctx context.Context, id string, change func(token.Transfer) token.Transfer,
) (token.Transfer, error) {
	before, err := s.LoadTransfer(ctx, id)
	for range changeTries {
		if err != nil {
			return token.Transfer{}, err
		}
		after := change(before)
		if after == before {
			return before, nil
		}
		oldClaim, oldOpen := claimFields(before)
		claim, open := claimFields(after)
		fields, err := replace.Run(ctx, s.client, []string{transferKey(id)},
			lifeOf(after.Ends()), oldClaim, oldOpen, claim, open).Slice()
		if err != nil {
			return token.Transfer{}, fmt.Errorf("change transfer %s: %w", id, err)
		}
		has, err := decodeTransfer(id, fields)
		if err != nil || has == after {
			return has, err
		}
		before = has
	}
	return token.Transfer{}, fmt.Errorf("change transfer %s: others have changed it %d times", id, changeTries)
}

// claimFields returns claimField and openField of a transfer; "" stands for a missing field.
func claimFields(t token.Transfer) (claim, open string) {
	switch {
	case t.AssetID != "":
		return fmt.Sprintf("%d %s", t.Date, t.AssetID), ""
	case t.Claim.AssetID != "":
		return fmt.Sprintf("%d %s", t.Claim.Date, t.Claim.AssetID), fmt.Sprintf("%d %d", t.Claim.Generation, t.Claim.Expires)
	default:
		return "", ""
	}
}

// SweepTransfers does nothing: Redis itself removes expired transfers.
func (s *Store) SweepTransfers(context.Context, string, time.Time) (next string, err error) {
	return "", nil
}

// RestoreTransfer stores a transfer that another store has, with its claim or its use. If Redis already has a
// use, this use stays. If the other store has neither, a claim that Redis already has stays.
func (s *Store) RestoreTransfer(ctx context.Context, t token.Transfer) error {
	made := t
	made.AssetID, made.Claim = "", token.Claim{}
	if err := s.CreateTransfer(ctx, made); err != nil || t.AssetID == "" && t.Claim == (token.Claim{}) {
		return err
	}
	_, err := s.changeTransfer(ctx, t.ID, func(has token.Transfer) token.Transfer {
		if has.AssetID != "" {
			return has
		}
		has.AssetID, has.Date, has.Expires, has.Claim = t.AssetID, t.Date, t.Expires, t.Claim
		return has
	})
	return err
}

// decodeTransfer decodes a transfer from the fields of its Redis hash: transferField, claimField and openField.
func decodeTransfer(id string, fields []any) (token.Transfer, error) {
	text, there := fields[0].(string)
	if !there {
		return token.Transfer{}, token.ErrNotFound
	}
	t, err := token.DecodeTransfer(id, []byte(text))
	claim, claimed := fields[1].(string)
	if err != nil || !claimed {
		return t, err
	}
	stamp, asset, _ := strings.Cut(claim, " ")
	date, err := strconv.ParseInt(stamp, 10, 64)
	if open, is := fields[2].(string); err == nil && is {
		t.Claim = token.Claim{AssetID: asset, Date: date}
		_, err = fmt.Sscan(open, &t.Claim.Generation, &t.Claim.Expires)
	} else {
		t.AssetID, t.Date, t.Expires = asset, date, 0
	}
	return t, errs.In(err, "decode the claim %q of transfer %s", claim, id)
}

// recordKey returns the Redis name of a token record. The asset's id is its hash tag (Redis Cluster, key
// distribution).
func recordKey(assetID string) string { return "registry:tokens:{" + assetID + "}" }

// recordField is the field of a record's Redis hash that has the record's text. The script `save` also uses the
// field "generation".
const recordField = "record"

// save stores the record ARGV[2], but only if Redis has no record of the same or a newer generation. It returns the
// record that Redis then has.
var save = redis.NewScript(`
local generation = redis.call('HGET', KEYS[1], 'generation')
if generation and tonumber(generation) >= tonumber(ARGV[1]) then
	return redis.call('HGET', KEYS[1], 'record')
end
redis.call('HSET', KEYS[1], 'generation', ARGV[1], 'record', ARGV[2])
return ARGV[2]
`)

// Load returns the token record of an asset, or token.ErrNotFound.
func (s *Store) Load(ctx context.Context, assetID string) (token.Record, error) {
	text, err := s.client.HGet(ctx, recordKey(assetID), recordField).Result()
	if errors.Is(err, redis.Nil) {
		return token.Record{}, token.ErrNotFound
	}
	if err != nil {
		return token.Record{}, fmt.Errorf("load tokens of asset %s: %w", assetID, err)
	}
	return token.Decode(assetID, []byte(text))
}

// Save durably stores r unless Redis has a record of the same or a newer
// generation. It returns the record that Redis then has.
func (s *Store) Save(ctx context.Context, r token.Record) (token.Record, error) {
	if err := s.format.run(ctx, s.client); err != nil {
		return token.Record{}, err
	}
	text, err := r.Encode()
	if err != nil {
		return token.Record{}, err
	}
	standing, err := save.Run(ctx, s.client, []string{recordKey(r.AssetID)}, r.Generation, text).Text()
	if err != nil {
		return token.Record{}, fmt.Errorf("save tokens of asset %s: %w", r.AssetID, err)
	}
	return token.Decode(r.AssetID, []byte(standing))
}
