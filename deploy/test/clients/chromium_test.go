package clients

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// page is a web page that runs the scenario. When the scenario has ended, the page reports the result to the test.
const page = `<!doctype html>
<title>scenario</title>
<script type="importmap">{"imports": {"asset-registry": "/client/index.js"}}</script>
<script type="module">
const finish = (error) => fetch("/finish", { method: "POST", body: error });
try {
	const { run } = await import("/scenario.mjs");
	await run(%q, %q, false);
	await finish("");
} catch (error) {
	await finish(String(error.stack));
}
</script>
`

// TestTypeScriptClientPassesTheScenarioInChromium runs the scenario in a page whose origin is not the registry's.
func TestTypeScriptClientPassesTheScenarioInChromium(t *testing.T) {
	needtest.Commands(t, "node", "npm", "chromium")
	_, installed := compiled(t)
	s := newStage(t, 0)
	mux := s.site(page, "scenario.mjs")
	mux.Handle("GET /client/", http.StripPrefix("/client/",
		http.FileServer(http.Dir(filepath.Join(installed, "dist")))))
	finish(t, mux)
	want := wanted()
	at := slices.IndexFunc(want, func(s step) bool { return s.Step == refusedPage.Step })
	want[at] = refusedPage
	s.check(want)
}

// site serves a page and its script. The page gets the addresses of the registry and of the test.
func (s *stage) site(page, script string) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, page, s.api.URL, s.control.URL)
	})
	mux.HandleFunc("GET /"+script, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		http.ServeFile(w, r, script)
	})
	return mux
}

// finish opens a site in Chromium, and waits until its page has reported the result.
func finish(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	finished := make(chan string, 1)
	mux.HandleFunc("POST /finish", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		finished <- fmt.Sprint(string(text), err)
	})
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	said := browse(t, site.URL)
	select {
	case got := <-finished:
		if got != "<nil>" {
			t.Fatalf("got %s, want the end of the page; Chromium says: %s", got, said.String())
		}
	case <-time.After(timeout):
		t.Fatalf("got no end within %v, want one; Chromium says: %s", timeout, said.String())
	}
}

// browse opens a page in Chromium until the test ends, and returns Chromium's output.
func browse(t *testing.T, url string) *processes.Output {
	t.Helper()
	args := []string{"--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--user-data-dir=" + t.TempDir()}
	if os.Geteuid() == 0 { // Chromium's sandbox does not work for root
		args = append(args, "--no-sandbox")
	}
	said := &processes.Output{}
	cmd := exec.Command("chromium", append(args, url)...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	expect.OK(t, cmd.Start())
	t.Cleanup(func() {
		expect.Err(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL), nil, "kill Chromium")
		if err := cmd.Wait(); err == nil {
			t.Error("got the end of Chromium before the test's, want it to run until it is killed")
		}
	})
	return said
}
