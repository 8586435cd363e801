package filesvc

import (
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/disktest"
)

// TestAFullDiskRefusesUploads fills the disk of the bytes. Uploads must be refused until there is room again. A refused
// file must then be accepted when it is sent again. Files must stay readable all the time.
func TestAFullDiskRefusesUploads(t *testing.T) {
	const says = "body/file/The registry has no room for files now; the operator knows."
	dir := disktest.New(t, 8)
	r := start(t, func(c *Config) { c.Bytes = filepath.Join(dir, "files") })
	kept := r.upload(broker, "/upload", "a.txt", "text/plain", "kept").field(t, "get_url")
	large := strings.Repeat("content ", 2<<20)
	r.upload(broker, "/upload", "a.txt", "text/plain", large).is(t, "a file that is larger than the disk", 507, says)
	to := r.register(broker, `{"data":{"hash":"`+hash("content")+`"}}`).field(t, "upload_url")
	free := disktest.Fill(t, dir)
	for range 2 {
		r.upload(broker, to, "a.txt", "text/plain", "content").is(t, "a full disk", 507, says)
		if got := r.get(nobody, kept); got.text != "kept" {
			t.Errorf("got %d %q, want the file that was kept", got.status, got.text)
		}
	}
	free()
	r.upload(broker, to, "a.txt", "text/plain", "content").is(t, "with room again", 200, "")
}
