package boltstore

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/testing/expect"
)

// storedWebhook is the JSON of a webhook in a file.
const storedWebhook = `{"ID":"a1","Broker":"b1","ByAdmin":true,"KeyID":"k","URL":"https://x","Version":"2.5","Mode":"test",` +
	`"Whole":true,"Seal":"s","OldSeal":"o","OldUntil":"2026-11-21T12:00:00Z","Created":"2026-11-20T12:00:00Z","Request":"r",` +
	`"Generation":3,"Saves":4,"Position":5,"State":"disabled","Reason":"gone","Verified":true,"Failures":6,` +
	`"FailedAt":"2026-11-20T12:00:00Z","LastError":"e","Next":"2026-11-20T12:00:00Z","Succeeded":"0001-01-01T00:00:00Z","Term":7}`

func TestWebhooksOfFilesAreRead(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	value := append(binary.BigEndian.AppendUint32(nil, checksum("a1", []byte(storedWebhook))), storedWebhook...)
	got, err := decodeEndpoint([]byte("a1"), value)
	want := endpoint{Term: 7, Endpoint: webhook.Endpoint{
		ID: "a1", Broker: "b1", ByAdmin: true, KeyID: "k", URL: "https://x", Version: "2.5", Mode: "test", Whole: true,
		Seal: "s", OldSeal: "o", OldUntil: at.Add(24 * time.Hour), Created: at, Request: "r", Generation: 3, Saves: 4,
		Progress: webhook.Progress{
			Position: 5, State: webhook.Disabled, Reason: webhook.Gone, Verified: true, Failures: 6, FailedAt: at,
			LastError: "e", Next: at,
		},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("got error %v; the webhook differs (-want +got):\n%s", err, diff)
	}
	again, err := encodeEndpoint(got)
	if diff := cmp.Diff(string(value), string(again)); err != nil || diff != "" {
		t.Errorf("got error %v; the text differs (-want +got):\n%s", err, diff)
	}
	again[len(again)-2] ^= 1
	expect.ErrOf(t, errCorrupt, "a flipped bit")(decodeEndpoint([]byte("a1"), again))
}

// Promises: hook-bounds
func TestTheNumberOfWebhooksIsBounded(t *testing.T) {
	s := expect.Get(Open(filepath.Join(t.TempDir(), "assets.db"), Options{Now: time.Now}))(t)
	defer s.Close()
	expect.OK(t, s.file.Update(func(tx *bbolt.Tx) error {
		var errs []error
		for i := range webhook.MaxEndpoints {
			errs = append(errs, putEndpoint(tx, endpoint{Endpoint: webhook.Endpoint{ID: strconv.Itoa(i), ByAdmin: true}}))
		}
		return errors.Join(errs...)
	}))
	expect.Err(t, s.Put(t.Context(), webhook.Endpoint{ID: "a", Broker: "b"}), webhook.ErrFull,
		"one more than there may be")
	expect.Err(t, s.Put(t.Context(), webhook.Endpoint{ID: "1"}), webhook.ErrStale, "one with the id of another")
	expect.OK(t, s.Remove(t.Context(), "0"))
	expect.Nil(t, s.Put(t.Context(), webhook.Endpoint{ID: "a", Broker: "b"}), "after a removal")
}
