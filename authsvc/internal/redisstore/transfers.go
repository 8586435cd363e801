package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/token"
)

// transferKey has the transfer's id as hash tag.
func transferKey(id string) string { return "registry:transfer:{" + id + "}" }

// The fields of a transfer's hash.
const (
	transferField = "transfer" // text of the transfer
	claimField    = "claim"    // date and asset of the claim
)

// create stores a transfer. It expires at ARGV[2], in ms since the Unix epoch,
// unless that is 0 or the transfer exists and is claimed.
var create = redis.NewScript(`
redis.call('HSET', KEYS[1], 'transfer', ARGV[1])
if ARGV[2] ~= '0' and redis.call('HEXISTS', KEYS[1], 'claim') == 0 then
	redis.call('PEXPIREAT', KEYS[1], ARGV[2])
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
	if err := create.Run(ctx, s.client, []string{transferKey(t.ID)}, text, t.Expires/1000).Err(); err != nil {
		return fmt.Errorf("save transfer %s: %w", t.ID, err)
	}
	return nil
}

// LoadTransfer returns a transfer, or token.ErrNotFound.
func (s *Store) LoadTransfer(ctx context.Context, id string) (token.Transfer, error) {
	fields, err := s.client.HMGet(ctx, transferKey(id), transferField, claimField).Result()
	if err != nil {
		return token.Transfer{}, fmt.Errorf("load transfer %s: %w", id, err)
	}
	return decodeTransfer(id, fields)
}

// claim sets the claim of a transfer that exists and has none. A claimed transfer
// does not expire.
var claim = redis.NewScript(`
if redis.call('HEXISTS', KEYS[1], 'transfer') == 1 then
	redis.call('HSETNX', KEYS[1], 'claim', ARGV[1])
	redis.call('PERSIST', KEYS[1])
end
return redis.call('HMGET', KEYS[1], 'transfer', 'claim')
`)

// ClaimTransfer durably sets the asset and the date of a transfer that has no
// asset. It returns the transfer that Redis then has, or token.ErrNotFound.
func (s *Store) ClaimTransfer(ctx context.Context, id, assetID string, date int64) (token.Transfer, error) {
	fields, err := claim.Run(ctx, s.client, []string{transferKey(id)}, fmt.Sprintf("%d %s", date, assetID)).Slice()
	if err != nil {
		return token.Transfer{}, fmt.Errorf("claim transfer %s: %w", id, err)
	}
	return decodeTransfer(id, fields)
}

// SweepTransfers does nothing: Redis itself removes expired transfers.
func (s *Store) SweepTransfers(context.Context, string, time.Time) (next string, err error) {
	return "", nil
}

// RestoreTransfer stores a transfer that another store has, with its claim. A claim
// that Redis has stays.
func (s *Store) RestoreTransfer(ctx context.Context, t token.Transfer) error {
	assetID, date := t.AssetID, t.Date
	t.AssetID = ""
	if assetID != "" {
		t.Expires = 0
	}
	if err := s.CreateTransfer(ctx, t); err != nil || assetID == "" {
		return err
	}
	_, err := s.ClaimTransfer(ctx, t.ID, assetID, date)
	return err
}

// decodeTransfer returns the transfer with the fields of its hash: transferField
// and claimField.
func decodeTransfer(id string, fields []any) (token.Transfer, error) {
	text, there := fields[0].(string)
	if !there {
		return token.Transfer{}, token.ErrNotFound
	}
	t, err := token.DecodeTransfer(id, []byte(text))
	if claim, claimed := fields[1].(string); err == nil && claimed {
		date, asset, _ := strings.Cut(claim, " ")
		t.AssetID, t.Expires = asset, 0
		t.Date, err = strconv.ParseInt(date, 10, 64)
	}
	if err != nil {
		return token.Transfer{}, fmt.Errorf("decode transfer %s: %w", id, err)
	}
	return t, nil
}
