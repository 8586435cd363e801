package filesvc

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// childDir is an environment variable. If it is set, this program serves the files in that directory until it is
// killed.
const childDir = "FILESVC_TEST_DIR"

func TestMain(m *testing.M) {
	if IsDrawing(os.Args[1:]) {
		os.Exit(Draw())
	}
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	empty := http.HandlerFunc(emptyPage)
	s, err := New(context.Background(), Config{
		Store: "file:" + dir + "/files.db", Bytes: dir + "/files", Secrets: secrets, BaseURL: base,
		Assets: httpserver.InProcess(empty), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if step := os.Getenv(childStep); step != "" {
		if err := s.dieAt(step); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fmt.Println(httptest.NewServer(s.Handler()).URL)
	select {}
}

// emptyPage answers as an asset service without changes.
func emptyPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"data":[]}`)
}

// child is a process of this program that serves files.
type child struct {
	url string
	cmd *exec.Cmd
}

func startChild(t *testing.T, dir string, environment ...string) child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = slices.Concat(os.Environ(), []string{childDir + "=" + dir}, environment), os.Stderr
	out, err := cmd.StdoutPipe()
	expect.OK(t, err)
	expect.OK(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	expect.FatalIf(t, err != nil, "got %v, want the address of the process", err)
	return child{strings.TrimSpace(line), cmd}
}

func (c child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // returns an error, because the process was killed
}

// TestKilledUploads kills the process in the middle of uploads (docs/files.md, D2). Each acknowledged upload
// must be served whole. Any other file must be there whole, or it must be possible to upload it again.
func TestKilledUploads(t *testing.T) {
	const rounds, clients, size = 6, 4, 300 << 10
	dir, random := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	signer, err := identity.NewSigner(secrets, time.Now)
	expect.OK(t, err)
	c := startChild(t, dir)
	defer func() { c.kill() }()
	var mu sync.Mutex
	acked, pending := map[string]string{}, map[string]string{} // the keys are upload_urls, the values are texts
	for round := range rounds {
		r := &rig{t: t, url: c.url, signer: signer}

		for n := range clients {
			text := strings.Repeat(fmt.Sprintf("%d-%d ", round, n), size/4)

			to := r.register(broker, `{"data":{"hash":"`+hash(text)+`"}}`).field(t, "upload_url")
			pending[to] = text
		}
		var wg sync.WaitGroup
		for to, text := range pending {
			wg.Go(func() {
				if status, err := r.tryUpload(to, text); err == nil && status == http.StatusOK {
					mu.Lock()
					acked[to] = text
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) // the process may be killed at any time
		c.kill()
		wg.Wait()
		c = startChild(t, dir)
	}
	r := &rig{t: t, url: c.url, signer: signer}
	for to, text := range pending {
		status, err := r.tryUpload(to, text)
		_, isAcked := acked[to]
		if err != nil || status != http.StatusForbidden && (isAcked || status != http.StatusOK) {
			t.Errorf("got %d, %v, want it repeated if it was not acknowledged (%t), or there", status, err, isAcked)
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(to, base+"/upload/"), "?")
		if got := r.get(broker, "/get/"+id); got.status != http.StatusOK || got.text != text {
			t.Errorf("got %d and %d bytes, want the %d bytes of the file", got.status, len(got.text), len(text))
		}
	}
	if len(acked) == 0 {
		t.Log("no upload was acknowledged before its process was killed")
	}
}

// tryUpload uploads a file to a process that may be killed meanwhile.
func (r *rig) tryUpload(to, text string) (status int, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("file", "a.txt")
	if err != nil {
		return 0, err
	}
	io.WriteString(part, text)
	if err := w.Close(); err != nil {
		return 0, err
	}
	q, err := http.NewRequest(http.MethodPost, r.url+strings.TrimPrefix(to, base), &b)
	if err != nil {
		return 0, err
	}
	signed, err := r.signer.Sign(broker)
	if err != nil {
		return 0, err
	}
	q.Header.Set(identity.Header, signed)
	q.Header.Set("Content-Type", w.FormDataContentType())
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
