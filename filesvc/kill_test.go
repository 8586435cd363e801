package filesvc

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

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
	out := expect.Get(cmd.StdoutPipe())(t)
	expect.OK(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	expect.FatalIf(t, err != nil, "got %v, want the address of the process", err)
	return child{strings.TrimSpace(line), cmd}
}

func (c child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // returns an error, because the process was killed
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
