package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/authapi"
	"asset-registry/shared/dataformat"
	"asset-registry/shared/redistest"
)

// TestARedisOfAnotherFormatIsRefused has data as the formats until the first release have
// them, and as a later one may. The refusal is one line and names the version that reads them.
func TestARedisOfAnotherFormatIsRefused(t *testing.T) {
	for _, c := range []struct{ name, key, value, found string }{
		{"keys of commands apart, without a format", "registry:key-name:{acme-1}", "hash", noFormat},
		{"tokens without a format", recordKey("a"), "text", noFormat},
		{"keys without a format", keysKey, "text", noFormat},
		{"the number of the second format", formatKey, "2", "2"},
		{"a later format", formatKey, "asset-registry tokens 4", "asset-registry tokens 4"},
	} {
		s := open(t, redistest.Start(t).URL())
		if err := s.client.Set(t.Context(), c.key, c.value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		_, _, found := s.FindSecret(t.Context(), authapi.Hash("one"))
		_, saved := s.Save(t.Context(), token.Record{AssetID: "b", Generation: 1})
		want := fmt.Sprintf("%q, not %q: the git tag %s ", c.found, format, dataformat.UpgradesTag)
		for does, err := range map[string]error{
			"ready": s.Ready(t.Context()), "find a key": found, "save tokens": saved,
			"create a transfer": s.CreateTransfer(t.Context(), token.Transfer{ID: "t"}),
		} {
			text := fmt.Sprint(err)
			if errors.Is(err, apikey.ErrNotFound) || !strings.Contains(text, want) || strings.Contains(text, "\n") {
				t.Errorf("%s, %s: got %v, want one line with %q", c.name, does, err, want)
			}
		}
		if keys, err := s.client.Keys(t.Context(), "*").Result(); err != nil || len(keys) != 1 {
			t.Errorf("%s: got keys %v, %v; want only the one that was there", c.name, keys, err)
		}
	}
}

// TestARedisWithoutDataGetsTheFormat has other programs' keys, and more of them than one step
// of the check reads.
func TestARedisWithoutDataGetsTheFormat(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	var others []any
	for i := range 2*scanStep + 1 {
		others = append(others, fmt.Sprint("other:{", i, "}"), "1")
	}
	others = append(others, backupKey, "1", "registry:limits:{broker}", "1")
	if err := s.client.MSet(t.Context(), others...).Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.FindSecret(ctx, authapi.Hash("one")); err == nil || errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("a canceled check: got %v, want an error other than ErrNotFound", err)
	}
	for _, s := range []*Store{s, open(t, server.URL())} {
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("ready: got %v, want no error", err)
		}
		if got, err := s.client.Get(t.Context(), formatKey).Result(); err != nil || got != format {
			t.Errorf("got format %q, %v; want %q", got, err, format)
		}
	}
}
