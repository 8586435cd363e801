package releases

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// platform is this machine's operating system and processor, in the form that releases use. The tests make no
// release for other platforms, because compiling takes minutes for each.
var platform = runtime.GOOS + "-" + runtime.GOARCH

// release makes a release with two programs for this machine, and returns its folder. The parameter `args` has
// further flags.
func release(t *testing.T, version, key string, args ...string) string {
	t.Helper()
	needtest.Commands(t, "node", "npm", "python3", "hatchling")
	dist := filepath.Join(t.TempDir(), "dist")
	args = append([]string{"run", "./deploy/release", "-version", version, "-out", dist, "-key", key,
		"-platforms", runtime.GOOS + "/" + runtime.GOARCH}, args...)
	run(t, root, "go", append(args, "./deploy/registry/cmd/registry", "./deploy/registry/cmd/registryctl")...)
	return dist
}

// files returns the checksum of each file below a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			all[name] = fmt.Sprintf("%x", sha256.Sum256(readFile(t, path)))
		}
		return err
	})
	expect.OK(t, err)
	return all
}

// TestAReleaseWorksAlone makes a release twice, and then the next release. It checks the files. It also runs the
// programs in a root directory that contains no other files.
func TestAReleaseWorksAlone(t *testing.T) {
	key := filepath.Join(t.TempDir(), "keys", "release.key")
	dist := release(t, "0.1.7", key)
	t.Run("a second one has the same bytes", func(t *testing.T) {
		if diff := cmp.Diff(files(t, dist), files(t, release(t, "0.1.7", key))); diff != "" {
			t.Errorf("checksums (-first +second):\n%s", diff)
		}
	})
	t.Run("its checksums are signed", func(t *testing.T) { checkSums(t, dist, key) })
	t.Run("its images hold its programs", func(t *testing.T) {
		for _, name := range []string{"registry", "registryctl"} {
			checkImage(t, dist, name)
		}
	})
	next := release(t, "0.1.8", key, "-clients=false")
	t.Run("it is upgraded and taken back", func(t *testing.T) { upgrade(t, dist, next) })
}

// checkSums verifies a release with the release's registryctl and with sha256sum. Both must notice a changed file.
func checkSums(t *testing.T, dist, key string) {
	public := strings.TrimSpace(string(readFile(t, key+".pub")))
	verify := func() (string, error) {
		return try(t, ".", filepath.Join(dist, platform, "registryctl"), "verify-release", dist, "--public-key", public)
	}
	sums := func() (string, error) { return try(t, dist, "sha256sum", "--check", "--quiet", "SHA256SUMS") }
	all := len(files(t, dist)) - 1
	want := fmt.Sprintf("%d of %d files are here, as asset-registry.example/release signed them\n", all, all)
	expect.Value(t, want, "verify-release")(verify())
	if got, err := sums(); err != nil {
		t.Errorf("sha256sum: got %q, %v, want success", got, err)
	}
	changed := filepath.Join(dist, "clients", "asset_registry.py")
	text := readFile(t, changed)
	write(t, changed, append(bytes.Clone(text), '\n'), 0o644)
	for name, check := range map[string]func() (string, error){"verify-release": verify, "sha256sum": sums} {
		if got, err := check(); err == nil || !strings.Contains(got, "clients/asset_registry.py") {
			t.Errorf("%s of a changed file: got %q, %v, want a failure that names it", name, got, err)
		}
	}
	write(t, changed, text, 0o644)
}

// unpack returns the files of an archive.
func unpack(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := r.Next()
		if err == io.EOF {
			return all
		}
		expect.OK(t, err)
		all[header.Name], err = io.ReadAll(r)
		expect.OK(t, err)
	}
}

// checkImage follows the checksums in an image, from the list at its top to the program.
func checkImage(t *testing.T, dist, name string) {
	image := unpack(t, readFile(t, filepath.Join(dist, "images", name+"-"+platform+".tar")))
	type part struct{ Digest string }
	// The function `at` returns a part of the image. The name of a part is its checksum.
	at := func(p part) []byte {
		t.Helper()
		text, found := image["blobs/sha256/"+strings.TrimPrefix(p.Digest, "sha256:")]
		if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(text)); !found || sum != p.Digest {
			t.Fatalf("%s: got a part with the checksum %s, want %s", name, sum, p.Digest)
		}
		return text
	}
	decode := func(text []byte, into any) {
		t.Helper()
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v: %s", name, err, text)
		}
	}
	var index struct{ Manifests []part }
	decode(image["index.json"], &index)
	var manifest struct {
		Config part
		Layers []part
	}
	decode(at(index.Manifests[0]), &manifest)
	var config struct {
		Architecture string
		Config       struct {
			User       string
			Entrypoint []string
		}
		RootFS struct {
			IDs []string `json:"diff_ids"`
		}
	}
	decode(at(manifest.Config), &config)
	layer := manifest.Layers[0]
	got := []any{config.Architecture, config.Config.User, config.Config.Entrypoint, config.RootFS.IDs}
	want := []any{runtime.GOARCH, "65532:65532", []string{"/service"}, []string{layer.Digest}}
	expect.NoDiff(t, cmp.Diff(want, got), "%s", name)
	program := unpack(t, at(layer))["service"]
	if !bytes.Equal(program, readFile(t, filepath.Join(dist, platform, name))) {
		t.Errorf("%s: got another program in the image, want the release's program", name)
	}
	var former []struct {
		Config   string
		RepoTags []string
	}
	decode(image["manifest.json"], &former)
	if tag := "asset-registry/" + name + ":0.1.7"; len(former) != 1 || former[0].RepoTags[0] != tag || image[former[0].Config] == nil {
		t.Errorf("%s: got the list %v for Docker, want one image with the tag %s", name, former, tag)
	}
}

// upgrade installs a release in an empty root directory, upgrades it to the next release, and goes back to the
// first one.
func upgrade(t *testing.T, dist, next string) {
	if os.Geteuid() != 0 {
		needtest.Missing(t, "chroot", "only root may")
	}
	bare := t.TempDir()
	commit := strings.TrimSpace(run(t, root, "git", "rev-parse", "HEAD"))
	addr := freeAddr(t)
	s := newStory(t, "http://"+addr, false)
	for _, c := range []struct{ when, dist, version string }{
		{"installed", dist, "0.1.7"}, {"upgraded", next, "0.1.8"}, {"taken back", dist, "0.1.7"},
	} {
		for _, name := range []string{"registry", "registryctl"} {
			write(t, filepath.Join(bare, name+".new"), readFile(t, filepath.Join(c.dist, platform, name)), 0o755)
			expect.OK(t, os.Rename(filepath.Join(bare, name+".new"), filepath.Join(bare, name)))
			if got := run(t, ".", "chroot", bare, "/"+name, "--version"); !strings.HasPrefix(got, name+" "+c.version+", revision "+commit) {
				t.Errorf("%s: got %q, want version %s of %s", c.when, got, c.version, commit)
			}
		}
		output := &processes.Output{}
		p, err := processes.Start(t.Context(), addr, output, "chroot", bare, "/registry", "serve", "--sandbox", "--no-limits",
			"--addr", addr, "--data", "/data")
		expect.Must(t, err, "%s", c.when)
		s.goOn(c.when)
		run(t, ".", "chroot", bare, "/registry", "health", "http://"+addr+"/readyz")
		if err := p.Stop(); err != nil {
			t.Errorf("%s: got %v at the end, want exit code 0; the output is %s", c.when, err, output)
		}
		run(t, ".", "chroot", bare, "/registry", "check", "--data", "/data")
	}
}
