package redisstore

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/storetest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// TestADamagedValueIsAnError damages values in Redis. The calls that read them must report this, and the others
// must work.
func TestADamagedValueIsAnError(t *testing.T) {
	const text = "{"
	server := redistest.Start(t)
	for _, c := range []struct {
		name  string
		spoil func(ctx context.Context, client *redis.Client) error
		reads []string // names of the calls that read the value
	}{
		{"the record", func(ctx context.Context, client *redis.Client) error {
			return client.HSet(ctx, recordKey("00112233445566778899aabbccddeeff"), recordField, text, "generation", 9).Err()
		}, []string{"Load", "Save"}},
		{"a transfer", func(ctx context.Context, client *redis.Client) error {
			return client.HSet(ctx, transferKey("one"), transferField, text).Err()
		}, []string{"LoadTransfer", "ClaimTransfer"}},
		{"a claimed transfer", func(ctx context.Context, client *redis.Client) error {
			return client.HSet(ctx, transferKey("claimed"), transferField, text).Err()
		}, []string{"SettleTransfer"}},
		{"the date of a claim", func(ctx context.Context, client *redis.Client) error {
			return client.HSet(ctx, transferKey("claimed"), claimField, "x asset").Err()
		}, []string{"SettleTransfer"}},
		{"the end of a claim", func(ctx context.Context, client *redis.Client) error {
			return client.HSet(ctx, transferKey("claimed"), openField, "2 x").Err()
		}, []string{"SettleTransfer"}},
		{"the broker", func(ctx context.Context, client *redis.Client) error {
			return client.HSet(ctx, brokersKey, "b", text).Err()
		}, []string{"Broker", "Brokers", "FindSecret"}},
		{"the keys", func(ctx context.Context, client *redis.Client) error {
			return client.HSet(ctx, keysKey, "k1", text).Err()
		}, []string{"Key", "Keys", "KeysBack", "FindSecret", "Uses"}},
		{"the entry", func(ctx context.Context, client *redis.Client) error {
			return client.HSet(ctx, auditKey, "1", text).Err()
		}, []string{"Entries"}},
		{"the head of the log", func(ctx context.Context, client *redis.Client) error {
			return client.Set(ctx, headKey, text, 0).Err()
		}, []string{"Head", "Entries", "Commit", "FindSecret"}},
		{"the confirmed entry", func(ctx context.Context, client *redis.Client) error {
			return client.Set(ctx, toldKey, text, 0).Err()
		}, []string{"Told"}},
		{"the counts", func(ctx context.Context, client *redis.Client) error {
			return client.HSet(ctx, countsKey("k1", "2026-11-21"), "read", text).Err()
		}, []string{"Counts", "AddUsage"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server.Flush(t)
			s := open(t, server.URL())
			storetest.Fill(t, s)
			expect.OK(t, c.spoil(t.Context(), s.client))
			for _, call := range storetest.Calls() {
				if call.Name == "Reseal" {
					continue // Reseal would replace the damaged entry
				}
				err := call.Do(t.Context(), s)
				if want := slices.Contains(c.reads, call.Name); (err != nil) != want {
					t.Errorf("%s: got %v, want an error: %v", call.Name, err, want)
				}
			}
		})
	}
}

// TestARedisThatIsDownIsNoAnswer makes each call while Redis is down. A call must report this, and not that
// data are missing.
func TestARedisThatIsDownIsNoAnswer(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	storetest.Fill(t, s)
	server.Kill(t)
	for _, call := range storetest.Calls() {
		expect.Fails(t, call.Do(t.Context(), s), "%s", call.Name)
	}
	expect.Fails(t, s.Ready(t.Context()), "Ready")
	if got := s.Warnings(t.Context()); got != nil {
		t.Errorf("Warnings: got %q, want none while the server does not answer", got)
	}
}
