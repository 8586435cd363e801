package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"asset-registry/gateway/internal/proxy"
	"asset-registry/shared/export"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
)

// TestAnExportReadsSoManyBytes allows only the bytes of two assets, but finds three. Reading the third one must
// fail.
// Promises: export-bounds
func TestAnExportReadsSoManyBytes(t *testing.T) {
	signer, err := identity.NewSigner(keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	assets := proxy.Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"data":{"status":"active","x":"%s"}}`, strings.Repeat("x", 1000))
	}), signer)
	e := exporting{
		API: &API{config: Config{Assets: assets}}, ctx: t.Context(), out: &parts{w: httptest.NewRecorder()}, left: 2500,
	}
	file, err := export.Searches[0].Open(e.out)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := e.add(file, "id"); (err != nil) != (n == 2) {
			t.Errorf("asset %d: got %v, want an error of the third only", n+1, err)
		}
	}
}
