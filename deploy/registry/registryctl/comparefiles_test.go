package registryctl

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// fileID returns the id of file n.
func fileID(n int) string { return fmt.Sprintf("%032x", 0xf00+n) }

// fileDocument returns a document that refers to file n of the registry.
func fileDocument(n int, text string) string {
	old, strong := md5.Sum([]byte(text)), sha256.Sum256([]byte(text))
	return fmt.Sprintf(`{"url":"https://registry.example/get/%s","hash":"md5:%s","sha256":%q,"size":%d}`,
		fileID(n), hex.EncodeToString(old[:]), hex.EncodeToString(strong[:]), len(text))
}

// newFileRegistry returns a registry with three files: one that two assets refer to, one that a decision refers to, and
// an empty one.
func newFileRegistry(t *testing.T) *testRegistry {
	t.Helper()
	r := newTestRegistry(t, 0)
	const foreign = `{"url":"https://broker.example/00000000000000000000000000000f09","hash":"md5:x"}`
	for n, parts := range []string{
		`"documents":[` + fileDocument(1, "one") + `,` + foreign + `],`,
		`"documents":[` + fileDocument(1, "one") + `],"decisions":[{"documents":[` + fileDocument(2, "two") + `]}],`,
		`"documents":[` + fileDocument(3, "") + `],`,
	} {
		at := int64(1790000000500000) + int64(n)
		r.append(t, translog.Publish, idOf(100+n), at, assetJSON(idOf(100+n), parts, "files", at))
	}
	r.sign(t)
	for n, text := range map[int]string{1: "one", 2: "two"} {
		r.answers["/get/"+fileID(n)] = text
	}
	r.empty = map[string]int{"/get/" + fileID(3): http.StatusOK}
	return r
}

// TestFilesAreComparedWithTheLog verifies the bytes of all files that documents refer to. The report must count the
// files that match, the removed ones, and the files of other servers.
// Promises: verify-files
func TestFilesAreComparedWithTheLog(t *testing.T) {
	r := newFileRegistry(t)
	got, err := r.verify(t, "--files")
	expect.OK(t, err)
	expect.NoDiff(t, cmp.Diff(&filesReport{Matched: 3, Bytes: 6, Foreign: 1}, got.Registry.Files), "the report differs")
	r.empty["/get/"+fileID(2)] = http.StatusGone
	got, err = r.verify(t, "--files")
	expect.OK(t, err)
	expect.NoDiff(t, cmp.Diff(&filesReport{Matched: 2, Bytes: 3, Removed: 1, Foreign: 1}, got.Registry.Files),
		"with a removed file the report differs")
}

// TestAFileThatContradictsTheLogIsFound changes the bytes of a file, or the facts in its document. The command
// must report each change.
// Promises: verify-files
func TestAFileThatContradictsTheLogIsFound(t *testing.T) {
	for _, c := range []struct{ name, path, text, want string }{
		{"other bytes", "/get/" + fileID(1), "One", "file " + fileID(1) + ": " + translog.ErrTampered.Error()},
		{"more bytes", "/get/" + fileID(2), "two ", "it has 4 bytes"},
		{"no file", "/get/" + fileID(1), "", "404"},
	} {
		r := newFileRegistry(t)
		r.answers[c.path] = c.text
		expect.SaysOf(t, c.want, "%s", c.name)(r.verify(t, "--files"))
	}
	r := newFileRegistry(t)
	at := int64(1790000000600000)
	contradicts := assetJSON(idOf(104), `"documents":[`+fileDocument(1, "other")+`],`, "x", at)
	r.append(t, translog.Publish, idOf(104), at, contradicts)
	r.sign(t)
	expect.SaysOf(t, translog.ErrTampered.Error(), "two documents that contradict each other")(r.verify(t, "--files"))
}
