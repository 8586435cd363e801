package httpapi

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/boltstore"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// full is a store whose audit log takes no entry.
type full struct{ *boltstore.Store }

func (full) Commit(context.Context, adminapi.Head, admin.Change) error {
	return errors.New("the disk is full")
}

// TestWithoutAnEntryNothingIsDone recovers an asset and takes a file down while the audit log takes no entry. Both must
// fail, and the answer must have no tokens.
func TestWithoutAnEntryNothingIsDone(t *testing.T) {
	kept, err := boltstore.Open(filepath.Join(t.TempDir(), "tokens.db"), boltstore.Options{})
	expect.OK(t, err)
	defer kept.Close()
	secrets := keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)}
	signer, err1 := identity.NewSigner(secrets, time.Now)
	sealer, err2 := token.NewSealer(secrets)
	seals, err3 := audit.NewSealer(secrets)
	expect.OK(t, errors.Join(err1, err2, err3))
	log := slog.New(slog.DiscardHandler)
	tokens := token.NewService(kept, sealer, time.Hour)
	issued, err := tokens.Issue(strings.Repeat("a", 32), "broker")
	expect.OK(t, err)
	for name, store := range map[string]admin.Store{"a log that takes entries": kept, "a full log": full{kept}} {
		engine := httpserver.NewEngine(httpserver.Options{Log: log, Timeout: time.Minute})
		New(Keys{}, tokens, admin.NewService(store, seals, log, time.Now), time.Now).Route(engine, signer)
		for path, body := range map[string]string{
			authapi.RecoverPath: `{"asset_id":"` + strings.Repeat("a", 32) + `","sealed":"` + issued.Sealed +
				`","reason":"lost","broker":"administrator","key_id":"k","from":""}`,
			authapi.NoteRemovalPath: `{"file":"f","reason":"illegal","size":1,"broker":"administrator","key_id":"k","from":""}`,
		} {
			want := http.StatusOK
			if name == "a full log" {
				want = http.StatusInternalServerError
			}
			if got := post(t, engine, signer, path, body); got.Code != want ||
				want != http.StatusOK && strings.Contains(got.Body.String(), "token") {
				t.Errorf("%s: %s: got %d %s, want %d", name, path, got.Code, got.Body, want)
			}
		}
	}
}

// post sends a request in the name of a service of the registry.
func post(t *testing.T, engine *gin.Engine, signer *identity.Signer, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	signed, err := signer.Sign(identity.Identity{Broker: "assetsvc", Role: identity.Service})
	expect.OK(t, err)
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set(identity.Header, signed)
	w := httptest.NewRecorder()
	engine.ServeHTTP(w, r)
	return w
}
