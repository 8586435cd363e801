package browser

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"asset-registry/authsvc"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// office has two auth services on one Redis, behind one address, and a provider that others wrote.
type office struct {
	t        *testing.T
	console  string
	provider string
	process  *exec.Cmd
	ahead    atomic.Int64 // how far the clock of the auth services is ahead
	services []*authsvc.Server
}

// newOffice starts an office. The browser knows the provider as another site.
func newOffice(t *testing.T, scopes ...string) *office {
	t.Helper()
	o := &office{t: t}
	var next atomic.Int64
	var backends []*httputil.ReverseProxy
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		backends[next.Add(1)%int64(len(backends))].ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	o.console = strings.Replace(front.URL, "127.0.0.1", "localhost", 1)
	o.startProvider()
	store := redistest.Start(t, "--appendonly", "yes").URL() + "/0"
	file := filepath.Join(t.TempDir(), "secret")
	expect.OK(t, os.WriteFile(file, []byte("secret"), 0o600))
	for range 2 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		expect.OK(t, err)
		service, err := authsvc.New(t.Context(), authsvc.Config{
			Store: store, Secrets: secrets, Admin: listener, Timeout: time.Minute,
			Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
			Now: func() time.Time { return time.Now().Add(time.Duration(o.ahead.Load())) },
			Staff: authsvc.Staff{Issuer: o.provider, Name: "Example ID", Client: "console", SecretFile: file,
				Console: o.console, Scopes: scopes,
				Roles: []string{"groups=registry:operator", "groups=audit:auditor"}},
		})
		expect.OK(t, err)
		t.Cleanup(func() { expect.Try(t, service.Close()) })
		o.services = append(o.services, service)
		to, err := url.Parse("http://" + listener.Addr().String())
		expect.OK(t, err)
		backends = append(backends, httputil.NewSingleHostReverseProxy(to))
	}
	return o
}

func (o *office) startProvider() {
	o.t.Helper()
	program := filepath.Join(o.t.TempDir(), "provider")
	built, err := exec.Command("go", "build", "-o", program, "./provider").CombinedOutput()
	expect.OK(o.t, err)
	o.process = exec.Command(program, o.console+"/console/sign-in/back")
	o.process.Stderr = o.t.Output()
	told, err := o.process.StdoutPipe()
	expect.OK(o.t, err)
	expect.OK(o.t, o.process.Start())
	o.t.Cleanup(o.stopProvider)
	line, err := bufio.NewReader(told).ReadString('\n')
	if err != nil {
		o.t.Fatalf("got no address of the provider: %v %s", err, built)
	}
	o.provider = strings.TrimSpace(line)
}

func (o *office) stopProvider() {
	o.process.Process.Kill()
	o.process.Wait()
}

// change changes the provider.
func (o *office) change(query string) {
	o.t.Helper()
	resp, err := http.Post(o.provider+"/test?"+query, "", nil)
	expect.OK(o.t, err)
	defer resp.Body.Close()
	expect.Get(io.ReadAll(resp.Body))(o.t)
}

func (o *office) wait(of time.Duration) { o.ahead.Add(int64(of)) }

// open opens a browser with a person of the provider, who is signed in.
func (o *office) open() *browser {
	o.t.Helper()
	b := open(o.t, o.console+"/console")
	b.goTo("/audit?q=x")
	b.mustSay("Sign in with Example ID", "Key")
	b.signInAtProvider()
	b.waitFor("Audit log")
	expect.Equal(o.t, b.path(), "/audit?q=x", "the page after the sign-in")
	b.mustSay("Test User2")
	return b
}

func (b *browser) signInAtProvider() {
	b.t.Helper()
	b.click(`a[href^="/console/sign-in/start"]`)
	b.wait(`document.querySelector("#username") !== null`)
	b.run(chromedp.SetValue(chromedp.CSS("#username"), "test-user2"), chromedp.SetValue(chromedp.CSS("#password"), "verysecure"))
	b.click("button[type=submit]")
}

func (b *browser) waitFor(heading string) {
	b.t.Helper()
	b.wait(`document.querySelector("h1") && document.querySelector("h1").innerText === "` + heading + `"`)
}

func (b *browser) waitSay(text string) {
	b.t.Helper()
	b.wait(`document.body && document.body.innerText.includes("` + text + `")`)
}

// TestStaffSignInAtAProvider signs a person in, asks for the role by refresh token, and takes it away.
func TestStaffSignInAtAProvider(t *testing.T) {
	o := newOffice(t, "offline_access")
	b := o.open()
	b.goTo("/new-broker")
	b.fill(map[string]string{"name": "acme", "title": "Acme"})
	o.wait(16 * time.Minute)
	o.change("rotate=1")
	b.submit()
	b.mustSay("Created.", "Acme")
	b.goTo("/audit")
	b.mustSay("oidc:id2 Test User2", "created the broker", "signed in")
	b.goTo("/audit/check")
	b.mustSay("The log is as it was written")
	o.change("groups=audit")
	o.wait(16 * time.Minute)
	b.goTo("/new-broker")
	b.mustSay("You may read here and change nothing.")
	o.change("groups=others")
	o.wait(16 * time.Minute)
	b.goTo("/keys")
	b.mustSay("Example ID knows you as id2, but you have no role here.")
	b.goTo("/keys")
	b.waitFor("Sign in")
	b.signInAtProvider()
	b.waitSay("you have no role here")
	b.mustBeContent()
}

// TestStaffAreAskedWithoutAPage has a provider without refresh tokens.
func TestStaffAreAskedWithoutAPage(t *testing.T) {
	o := newOffice(t)
	b := o.open()
	o.wait(16 * time.Minute)
	b.goTo("/keys?q=y")
	b.waitFor("Keys")
	expect.Equal(t, b.path(), "/keys?q=y", "the page after the silent sign-in")
	o.wait(16 * time.Minute)
	b.run(chromedp.SetValue(chromedp.CSS("[name=q]"), "other")) // the policy of pages forbids forms to lead to other sites
	b.click("main form button[type=submit]")
	b.wait(`location.search.includes("q=other")`)
	b.waitFor("Keys")

	b.goTo("/new-broker")
	b.fill(map[string]string{"name": "acme", "title": "Acme"})
	o.wait(16 * time.Minute)
	b.submit()
	b.mustSay("Nothing was done yet")
	b.mustBeAccessible("held")
	confirm := evaluate[string](b, `document.querySelector("a[target=_blank]").href`)
	evaluate[string](b, `document.querySelector("a[target=_blank]").click(), ""`) // opens a new tab
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		b.submit()
		if strings.Contains(b.text(), "Created.") || time.Now().After(deadline) {
			break
		}
	}
	b.mustSay("Created.", "Acme")
	expect.Equal(t, strings.HasPrefix(confirm, o.console+"/console/sign-in/start"), true, "the link %s", confirm)
	b.run(chromedp.Navigate(confirm))
	b.waitFor("Your role is confirmed")
	b.mustBeAccessible("signed-in")

	o.change("page=1")
	o.wait(16 * time.Minute)
	b.goTo("/keys")
	b.waitSay("Your sign-in at Example ID has ended")
	b.signInAtProvider()
	b.waitFor("Keys")
	b.mustBeContent()
}

// TestKeysOpenTheConsoleWithoutTheProvider stops the provider before anybody has signed in.
func TestKeysOpenTheConsoleWithoutTheProvider(t *testing.T) {
	o := newOffice(t)
	key := expect.Get(o.services[0].AdminKey(t.Context(), "Ольга"))(t)
	o.stopProvider()
	b := open(t, o.console+"/console")
	b.goTo("/keys")
	b.click(`a[href^="/console/sign-in/start"]`)
	b.mustSay("Example ID gives no answer that can be used. Try again, or sign in with a key.")
	b.signIn(key)
	b.mustSay("Keys", "Ольга")
}
