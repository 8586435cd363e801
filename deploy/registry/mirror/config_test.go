package mirror

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/dataformat"
	"asset-registry/shared/testing/expect"
)

func TestAForeignDirectoryIsRefused(t *testing.T) {
	empty, own, foreign, other := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	for file, text := range map[string]string{
		filepath.Join(own, dataformat.File): format + "\n", filepath.Join(own, "copy.db"): "",
		filepath.Join(foreign, "secret"): "x", filepath.Join(other, dataformat.File): "asset-registry data 1\n",
	} {
		expect.OK(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for _, c := range []struct{ name, dir, want string }{
		{"a new one", filepath.Join(empty, "a", "b"), ""},
		{"an empty one", t.TempDir(), ""},
		{"one of a mirror", own, ""},
		{"one with other files", foreign, "it holds secret"},
		{"one of a registry", other, `has format "asset-registry data 1"`},
	} {
		for range 2 { // in the second round, the directory already belongs to a mirror
			err := openData(c.dir)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.want)
			}
		}
	}
}

func TestAllThatIsWrongIsTold(t *testing.T) {
	err := Config{Of: "registry.example", PublicKey: []string{"x"}}.validate()
	for _, want := range []string{"--of", "--timeout", "--public-key"} {
		expect.Says(t, err, want, "")
	}
	right := Config{Of: "https://registry.example", Data: "x", Timeout: time.Second}
	expect.Try(t, right.validate())
	for _, origin := range []string{"registry.example", "https://registry.example/>;rel=x", `https://x"y.example`, "javascript:x"} {
		wrong := right
		wrong.Origin = origin
		expect.Says(t, wrong.validate(), "--origin", "the origin %s", origin)
	}
	right.PublicKey, right.LogPolicy = []string{"x"}, "y"
	if err := right.validate(); err == nil || !strings.Contains(err.Error(), "exclude each other") {
		t.Errorf("got %v, want that the two exclude each other", err)
	}
}
