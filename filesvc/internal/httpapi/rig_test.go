package httpapi

import (
	"bytes"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/filesvc/internal/boltstore"
	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// rig is a file service whose metadata are in a file, and the handler of its requests.
type rig struct {
	files   *file.Service
	store   *boltstore.Store
	signer  *identity.Signer
	handler http.Handler
}

// newRig returns a service on a store of bytes. The function `add` adds to its configuration.
func newRig(t *testing.T, store file.Bytes, add func(*Config)) *rig {
	t.Helper()
	r := &rig{store: expect.Get(boltstore.Open(filepath.Join(t.TempDir(), "files.db"), nil, nil))(t)}
	t.Cleanup(func() { expect.Try(t, r.store.Close()) })
	r.signer = expect.Get(identity.NewSigner(keyring.Ring{bytes.Repeat([]byte{7}, keyring.MinLength)}, time.Now))(t)
	r.files = file.NewService(r.store, r.store, store, file.Limits{FileBytes: 1 << 20, BrokerBytes: 1 << 30, Waiting: 99},
		time.Now)
	c := Config{Files: r.files, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	add(&c)
	engine := httpserver.NewEngine(httpserver.Options{Name: "files", Log: c.Log, Timeout: time.Minute})
	New(c).Route(engine, r.signer)
	r.handler = engine
	return r
}

// sign signs a request as one of a caller.
func (r *rig) sign(t *testing.T, q *http.Request, by identity.Identity) {
	t.Helper()
	q.Header.Set(identity.Header, expect.Get(r.signer.Sign(by))(t))
}
