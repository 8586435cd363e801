package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/testing/expect"
)

// document returns a document with the address, hash and size of file n.
func document(n, size int) string {
	return fmt.Sprintf(`{"url":"https://registry.example/get/%032x","sha256":"%064x","size":%d}`, n, n, size)
}

// TestFilesAreCounted makes snapshots of assets with documents. The manifest must count each file once for each listed
// asset that names the file.
// Promises: manifest
func TestFilesAreCounted(t *testing.T) {
	s := openStore(t)
	k := keeper(t, s, t.TempDir())
	if got := mustMake(t, k); got.Files == nil || *got.Files != (Files{}) {
		t.Errorf("an empty store: got %v, want no files", got.Files)
	}
	for _, documents := range []string{
		document(1, 10) + "," + document(2, 300) + "," + document(1, 10), // two versions of a document name file 1
		document(1, 10), // a file of another asset
		`{"url":"https://registry.example/get/` + strings.Repeat("0", 32) + `"}`,                    // not uploaded yet
		`{"url":"https://elsewhere.example/x","sha256":"` + strings.Repeat("0", 64) + `","size":7}`, // another server
		`"sha256"`, // an element that is not a document
	} {
		create(t, s, registry.Record{ID: storetest.NewID(), Listed: true, Body: []byte(`{"documents":[` + documents + `]}`)})
	}
	create(t, s, registry.Record{ID: storetest.NewID(), Body: []byte(`{"documents":[` + document(3, 5) + `]}`)}) // a draft
	made := mustMake(t, k)
	expect.Equal(t, *made.Files, (Files{Count: 3, Bytes: 320}), "")
	lines(t, k, made)
}
