package documents_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/deploy/test/openapi/documents"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// The gateway and the auth service embed the documents in these folders.
const (
	embedded      = "../../../../gateway/internal/openapi"
	adminEmbedded = "../../../../authsvc/internal/openapi"
)

var update = flag.Bool("update", false, "write the documents instead of comparing them")

func TestTheEmbeddedDocumentsAreUpToDate(t *testing.T) {
	for _, version := range routes.Targets() {
		d := expect.Get(documents.Public(version))(t)
		compare(t, filepath.Join(embedded, version+".json"), d)
	}
	d := expect.Get(documents.Admin())(t)
	compare(t, filepath.Join(adminEmbedded, "admin.json"), d)
}

// compare fails the test if the file does not have the content `want`. With -update, it first writes this content
// to the file.
func compare(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		expect.OK(t, os.WriteFile(file, want, 0o644))
	}
	got := expect.Get(os.ReadFile(file))(t)
	expect.NoDiff(t, cmp.Diff(string(want), string(got)), "%s differs; run this test with -update", file)
}
