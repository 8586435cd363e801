package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/s3test"
	"asset-registry/shared/testing/expect"
)

const (
	patience = 40 * time.Second // how long a test waits for something that should take a moment
	bucket   = "files"
)

var bin = flag.String("bin", "", "absolute path of the directory of the programs")

func TestMain(m *testing.M) {
	flag.Parse()
	if *bin == "" {
		fmt.Fprintln(os.Stderr, "name the directory of the programs: -bin DIR")
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// registry is a registry process with the sandbox keys. Its output must never contain the credentials of the store.
type registry struct {
	t          *testing.T
	addr, data string
	process    *processes.Process
	output     *processes.Output
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	addr, err := porttest.FreeAddr()
	expect.OK(t, err)
	r := &registry{t: t, addr: addr, data: filepath.Join(t.TempDir(), "data"), output: &processes.Output{}}
	t.Cleanup(func() {
		r.kill()
		r.mustHideCredentials("the registry", r.output.String())
		if t.Failed() {
			t.Logf("the registry printed %s", r.output.String())
		}
	})
	return r
}

func (r *registry) mustHideCredentials(what, text string) {
	r.t.Helper()
	for _, pair := range s3test.Environment {
		if _, value, _ := strings.Cut(pair, "="); strings.Contains(text, value) {
			r.t.Errorf("%s printed a credential of the store", what)
		}
	}
}

func (r *registry) start() {
	r.t.Helper()
	p, err := processes.Standalone(r.t.Context(), *bin, r.addr, r.data, r.output)
	expect.OK(r.t, err)
	r.process = p
}

func (r *registry) kill() {
	if r.process != nil {
		_ = r.process.Kill() // an error only means that the process has ended already
		r.process = nil
	}
}

func (r *registry) stop() {
	r.t.Helper()
	expect.OK(r.t, r.process.Stop())
	r.process = nil
}

// run runs the program registry on the data directory. It returns the output and the exit code.
func (r *registry) run(args ...string) (said string, code int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(*bin, "registry"), append(args, "--data", r.data)...).CombinedOutput()
	r.mustHideCredentials(strings.Join(args, " "), string(out))
	if exit, ended := errors.AsType[*exec.ExitError](err); ended {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		r.t.Fatalf("%q: %v", args, err)
	}
	return string(out), 0
}

// The method `must` runs the program registry and returns its output. The test fails if the exit code is not 0.
func (r *registry) must(args ...string) string {
	r.t.Helper()
	said, code := r.run(args...)
	if code != 0 {
		r.t.Fatalf("%q: got exit code %d and %s, want 0", args, code, said)
	}
	return said
}

// answer is an answer that was read to its end.
type answer struct {
	status int
	retry  string
	text   string
}

// ask sends a request. The parameter `by` is the API key; if it is empty, the request has no key.
func (r *registry) ask(by, method, to, contentType string, body io.Reader) (answer, error) {
	q, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.addr+to, body)
	if err != nil {
		return answer{}, err
	}
	if by != "" {
		q.SetBasicAuth(by, "")
	}
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
	}
	resp, err := (&http.Client{Timeout: 2 * patience}).Do(q)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("Retry-After"), string(text)}, err
}

func (r *registry) get(path string) answer {
	r.t.Helper()
	a, err := r.ask("broker", http.MethodGet, path, "", nil)
	expect.OK(r.t, err)
	return a
}

// form returns the content type and the body of a form with a file and further fields. The argument `fields` has
// the names of these fields, each followed by its value.
func (r *registry) form(name, text string, fields ...string) (contentType string, form io.Reader) {
	r.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("file", name)
	expect.OK(r.t, err)
	expect.Get(io.WriteString(part, text))(r.t)
	for i := 0; i < len(fields); i += 2 {
		expect.OK(r.t, w.WriteField(fields[i], fields[i+1]))
	}
	expect.OK(r.t, w.Close())
	return w.FormDataContentType(), &b
}

// upload uploads a file, and returns the path at which its broker can read it.
func (r *registry) upload(text string) (path string, a answer, err error) {
	contentType, form := r.form("a.bin", text)
	if a, err = r.ask("broker", http.MethodPost, "/upload", contentType, form); err != nil {
		return "", a, err
	}
	var stored struct {
		GetURL string `json:"get_url"`
	}
	_ = json.Unmarshal([]byte(a.text), &stored) // fails if the upload was refused; `stored` then stays empty
	return pathForm.FindString(stored.GetURL), a, nil
}

var pathForm = regexp.MustCompile(`/get/[0-9a-f]{32}`)

// mustUpload uploads a file, and returns its path.
func (r *registry) mustUpload(text string) string {
	r.t.Helper()
	path, a, err := r.upload(text)
	if err != nil || a.status != http.StatusOK || path == "" {
		r.t.Fatalf("upload: got %d %s and %v, want 200", a.status, a.text, err)
	}
	return path
}

// mustHave fails the test unless the registry serves each file as it was uploaded.
func (r *registry) mustHave(what string, files map[string]string) {
	r.t.Helper()
	if len(files) == 0 {
		r.t.Fatalf("%s: no file was acknowledged", what)
	}
	for path, text := range files {
		if got := r.get(path); got.status != http.StatusOK || got.text != text {
			r.t.Errorf("%s: %s: got %d and %d bytes, want 200 and %d bytes", what, path, got.status, len(got.text), len(text))
		}
	}
}

// await repeats a check until it returns true.
func await(t *testing.T, what string, isTrue func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !isTrue(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

var blobForm = regexp.MustCompile(`^[0-9a-f]{32}-[0-9a-f]{16}$`)

// blobs returns the paths of all stored files below a directory.
func blobs(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && blobForm.MatchString(entry.Name()) {
			paths = append(paths, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // the file was removed during the walk
		}
		return err
	})
	expect.OK(t, err)
	return paths
}
