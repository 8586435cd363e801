package httpapi

import (
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
)

// TestAListedAssetHasItsReferenceIfAsked lists an asset with the reference of its broker, and with other fields.
func TestAListedAssetHasItsReferenceIfAsked(t *testing.T) {
	const start, reference = `{"id":"b","dateModified":"1970-01-01T00:00:00.000005+00:00"`, `,"reference":"r"`
	for _, c := range []struct{ fields, reference, want string }{
		{"", "r", start + `}`},
		{"status", "r", start + `,"status":"active"}`},
		{"reference", "r", start + reference + `}`},
		{"*", "r", start + reference + `,"status":"active"}`},
		{"*", "", start + `,"status":"active"}`},
	} {
		e := registry.Entry{ID: "b", Position: 5, Reference: c.reference, Body: []byte(activeAsset)}
		got, err := publicVersion("2.5", nil).encode(c.fields, time.UTC)(nil, e)
		if err != nil || string(got) != c.want {
			t.Errorf("the fields %q and the reference %q: got %s, %v; want %s", c.fields, c.reference, got, err, c.want)
		}
	}
}
