package filesvc

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/identity"
	"asset-registry/shared/logtest"
	"asset-registry/shared/testing/expect"
)

// TestARestoreBringsNoRemovedFileBack restores metadata and bytes from a backup that was made before a removal.
// The removed file must stay removed.
func TestARestoreBringsNoRemovedFileBack(t *testing.T) {
	dir := t.TempDir()
	db, files := filepath.Join(dir, "files.db"), filepath.Join(dir, "files")
	here := func(c *Config) { c.Store, c.Bytes = "file:"+db, files }
	admin := identity.Identity{Broker: "operator", KeyID: "k9", Role: identity.Administrator}
	var bare string
	t.Run("upload", func(t *testing.T) {
		a := start(t, here).upload(broker, "/upload", "a.txt", "text/plain", "content")
		bare, _, _ = strings.Cut(a.field(t, "get_url"), "?")
	})
	backup := t.TempDir()
	expect.OK(t, os.CopyFS(backup, os.DirFS(dir)))
	t.Run("remove", func(t *testing.T) {
		start(t, here).send(admin, http.MethodDelete, bare+"?reason=x", "", nil).is(t, "remove", 200, "")
	})
	former := dir
	dir = t.TempDir()
	db, files = filepath.Join(dir, "files.db"), filepath.Join(dir, "files")
	expect.OK(t, os.CopyFS(dir, os.DirFS(backup)))
	if n, err := CopyRemovals(t.Context(), filepath.Join(former, "files"), files); n != 1 || err != nil {
		t.Fatalf("got %d, %v, want one removal", n, err)
	}
	log := &logtest.Log{}
	r := start(t, func(c *Config) { here(c); c.Log = slog.New(slog.NewTextHandler(log, nil)) })
	r.get(broker, bare).is(t, "the removed file", 410, "url/doc_id/The operator has removed this file.")
	r.upload(broker, "/upload", "a.txt", "text/plain", "content").
		is(t, "the same bytes", 403, "body/file/The operator has removed this file; it cannot be uploaded again.")
	if left, err := filepath.Glob(filepath.Join(files, "??", "*")); err != nil || len(left) != 0 {
		t.Errorf("got the bytes %q, %v, want none", left, err)
	}
	if !strings.Contains(log.String(), "files were removed again") {
		t.Errorf("got the log %s, want the removal", log)
	}
}
