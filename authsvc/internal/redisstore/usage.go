package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/errs"
)

// countsKey and usesKey have the key's id as hash tag.
func countsKey(id, day string) string { return "registry:key-counts:{" + id + "}:" + day }

func usesKey(id string, secret int) string {
	return "registry:key-uses:{" + id + "}:" + strconv.Itoa(secret)
}

// countsLifetime is the time for which Redis keeps the counts of a day.
const countsLifetime = (apikey.UsageDays + 2) * 24 * time.Hour

// AddUsage adds to the counts of keys, and keeps the newest uses of their secrets.
func (s *Store) AddUsage(ctx context.Context, uses []authapi.Use, counts []authapi.Count) error {
	if err := s.format.run(ctx, s.client); err != nil {
		return err
	}
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, c := range counts {
			p.HIncrBy(ctx, countsKey(c.KeyID, c.Day), c.Class, c.Requests)
			p.Expire(ctx, countsKey(c.KeyID, c.Day), countsLifetime)
		}
		for _, u := range uses {
			key := usesKey(u.KeyID, u.Secret)
			p.ZAddGT(ctx, key, redis.Z{Score: float64(u.Micros), Member: u.Addr.String()}) // exact: below 2^53
			p.ZRemRangeByRank(ctx, key, 0, -apikey.MaxUses-1)
		}
		return nil
	})
	return errs.In(err, "add usage")
}

// Uses returns the last uses of each key, newest first. The outer map has the ids of keys, and the inner map the
// numbers of secrets.
func (s *Store) Uses(ctx context.Context, ids []string) (map[string]map[int][]adminapi.Use, error) {
	keys, err := load(ctx, s, keysKey, ids, apikey.DecodeKey)
	if len(keys) == 0 { // also after an error
		return nil, err
	}
	answers := map[string]map[int]*redis.ZSliceCmd{}
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, k := range keys {
			answers[k.ID] = map[int]*redis.ZSliceCmd{}
			for _, secret := range k.Secrets {
				answers[k.ID][secret.Number] = p.ZRevRangeWithScores(ctx, usesKey(k.ID, secret.Number), 0, -1)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load uses: %w", err)
	}
	found := map[string]map[int][]adminapi.Use{}
	for id, secrets := range answers {
		found[id] = map[int][]adminapi.Use{}
		for secret, answer := range secrets {
			for _, use := range answer.Val() {
				found[id][secret] = append(found[id][secret], adminapi.Use{
					Time: time.UnixMicro(int64(use.Score)).UTC(), From: use.Member.(string),
				})
			}
		}
	}
	return found, nil
}

// Counts returns the counts of a key on the given days, except days without counts.
func (s *Store) Counts(ctx context.Context, id string, days []string) ([]adminapi.Day, error) {
	answers := make([]*redis.MapStringStringCmd, len(days))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, day := range days {
			answers[i] = p.HGetAll(ctx, countsKey(id, day))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load counts of key %s: %w", id, err)
	}
	found := []adminapi.Day{}
	for i, answer := range answers {
		if len(answer.Val()) == 0 {
			continue
		}
		day := adminapi.Day{Day: days[i], Counts: map[string]int64{}}
		for class, text := range answer.Val() {
			if day.Counts[class], err = strconv.ParseInt(text, 10, 64); err != nil {
				return nil, fmt.Errorf("load counts of key %s: %w", id, err)
			}
		}
		found = append(found, day)
	}
	return found, nil
}
