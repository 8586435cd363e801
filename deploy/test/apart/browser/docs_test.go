package browser

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/gateway"
	"asset-registry/shared/httpserver"
)

// startDocs starts a whole registry in this process and returns its address.
func startDocs(t *testing.T, sandbox bool) string {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	dir := t.TempDir()
	auth, err := authsvc.New(t.Context(), authsvc.Config{Store: "file:" + filepath.Join(dir, "tokens.db"),
		Secrets: secrets, Sandbox: sandbox, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, auth.Close)
	toAuth := httpserver.InProcess(auth.Handler())
	assets, err := assetsvc.New(t.Context(), assetsvc.Config{Store: "file:" + filepath.Join(dir, "assets.db"),
		Auth: toAuth, Secrets: secrets, Zone: time.UTC, AssetTypes: []string{"bounce"}, Sandbox: sandbox, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, assets.Close)
	edge, err := gateway.New(t.Context(), gateway.Config{Auth: toAuth, Assets: assets.Handler(), Secrets: secrets,
		Limits: gateway.Limits{}.OrDefault(sandbox), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, edge.Close)
	server := httptest.NewServer(edge.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

func closeAtEnd(t *testing.T, close func() error) {
	t.Helper()
	t.Cleanup(func() {
		if err := close(); err != nil {
			t.Error(err)
		}
	})
}

// hosts records the host of every request that the browser's pages make.
type hosts struct {
	mu  sync.Mutex
	all []string
}

func (h *hosts) hear(event any) {
	sent, ok := event.(*network.EventRequestWillBeSent)
	if !ok || strings.HasPrefix(sent.Request.URL, "data:") { // a picture within the page
		return
	}
	host := sent.Request.URL
	if u, err := url.Parse(sent.Request.URL); err == nil {
		host = u.Scheme + "://" + u.Host
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.all, host) {
		h.all = append(h.all, host)
	}
}

// watch starts to record the hosts of requests.
func (b *browser) watch() *hosts {
	b.t.Helper()
	h := &hosts{}
	if err := chromedp.Listen(b.ctx, h.hear); err != nil {
		b.t.Fatal(err)
	}
	return h
}

// mustBeOnly checks that the pages have asked one host only.
func (h *hosts) mustBeOnly(t *testing.T, host string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.all, []string{host}) {
		t.Errorf("got requests to %q, want some to %s only", h.all, host)
	}
}

// openDocs opens the page and waits for its reference.
func (b *browser) openDocs(path string) {
	b.t.Helper()
	b.goTo(path)
	b.wait(`document.getElementById("plain") === null && !document.getElementById("explorer").hidden`)
}

// wait waits until an expression is true.
func (b *browser) wait(expression string) {
	b.t.Helper()
	for !evaluate[bool](b, "!!("+expression+")") {
		select {
		case <-b.ctx.Done():
			b.t.Fatalf("%s: got no %s; the console says %q", b.location(), expression, b.complaints())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestTheDocumentationFitsEveryScreen(t *testing.T) {
	base := startDocs(t, true)
	b := open(t, base)
	asked := b.watch()
	background := map[bool]string{}
	for _, screen := range []struct {
		name        string
		phone, dark bool
	}{{"wide-light", false, false}, {"wide-dark", false, true}, {"phone-light", true, false},
		{"phone-dark", true, true}} {
		t.Run(screen.name, func(t *testing.T) {
			if screen.phone {
				b.phone()
			}
			b.dark(screen.dark)
			b.openDocs("/docs")
			b.mustFit("docs")
			b.mustBeLegible("docs")
			b.screenshot(screen.name + "-docs")
			b.openOperation("post-/assets")
			b.mustFit("an operation")
			b.screenshot(screen.name + "-docs-operation")
			background[screen.dark] = evaluate[string](b, "getComputedStyle(document.body).backgroundColor")
		})
	}
	if background[true] == background[false] {
		t.Errorf("got the background %s in light and dark mode, want two colours", background[true])
	}
	b.mustBeContent()
	asked.mustBeOnly(t, base)
}

// openOperation opens an operation of the reference.
func (b *browser) openOperation(id string) {
	b.t.Helper()
	open := fmt.Sprintf(`document.querySelector("rapi-doc").shadowRoot.getElementById(%q)`, id)
	b.wait(open + " !== null")
	evaluate[bool](b, open+`.querySelector(".endpoint-head").click() ?? true`)
	b.wait(open + `.querySelector("api-request")?.shadowRoot.querySelector(".req-res-title") != null`)
}

// operation is the element of an open operation that sends its request.
func operation(id string) string {
	return fmt.Sprintf(`document.querySelector("rapi-doc").shadowRoot.getElementById(%q).querySelector("api-request")`, id)
}

// try sends the request of an open operation and returns its status and answer.
func (b *browser) try(id string) (status, answer string) {
	b.t.Helper()
	request := operation(id)
	evaluate[bool](b, request+`.shadowRoot.querySelector("[part~=btn-try]").click() ?? true`)
	// The status comes before the body.
	b.wait(request + `.shadowRoot.querySelector(".response-message")?.textContent.includes("Took") && ` +
		request + `.responseText !== "⌛"`)
	return evaluate[string](b, request+`.shadowRoot.querySelector(".response-message").textContent`),
		evaluate[string](b, request+`.responseText`)
}

func TestTheReferenceSendsRequestsWithTheSandboxKey(t *testing.T) {
	base := startDocs(t, true)
	b := open(t, base)
	asked := b.watch()
	b.openDocs("/docs")
	b.openOperation("post-/assets")
	if status, answer := b.try("post-/assets"); !strings.Contains(status, "201") || !strings.Contains(answer, `"owner": "broker"`) {
		t.Errorf("got %s: %s; want 201 and an asset of broker", status, answer)
	}
	b.screenshot("docs-try")
	b.openOperation("get-/me")
	if status, answer := b.try("get-/me"); !strings.Contains(status, "200") || !strings.Contains(answer, `"broker": "broker"`) {
		t.Errorf("got %s: %s; want 200 and the broker", status, answer)
	}
	b.mustBeContent()
	asked.mustBeOnly(t, base)
}

func TestTheReferenceSendsNothingWithoutASandbox(t *testing.T) {
	b := open(t, startDocs(t, false))
	b.openDocs("/docs/2.4")
	b.openOperation("get-/assets")
	if there := evaluate[bool](b, operation("get-/assets")+`.shadowRoot.querySelector("[part~=btn-try]") !== null`); there {
		t.Error("got a button to send the request, want none")
	}
	b.mustSay("version 2.4")
	b.mustNotSay("Sandbox keys are on")
	b.mustBeContent()
}

func TestTheDocumentationNeedsNoScript(t *testing.T) {
	base := startDocs(t, true)
	b := open(t, base)
	b.withoutScript()
	b.goTo("/docs")
	b.mustSay("First asset in five minutes", "Following the feed", "address-read", // guides
		"/assets/{id}/related_processes/{part}", "Create an asset", "AssetInput") // the reference
	b.mustFit("docs without script")
	b.mustBeLegible("docs without script")
	b.phone()
	b.goTo("/docs/2.4#post-/assets")
	b.mustSay("Idempotency-Key") // the address has opened the operation
	b.mustFit("docs without script on a phone")
	b.screenshot("docs-without-script")
	b.mustBeContent()
}

func TestTheDocumentationWorksByKeyboard(t *testing.T) {
	b := open(t, startDocs(t, false))
	b.openDocs("/docs")
	b.tabTo(".skip")
	b.tabTo(`.contents a[href="#states"]`)
	b.run(chromedp.KeyEvent("\r"))
	b.wait(`location.hash === "#states"`)
	b.tabTo(`.routes a[href="#get-/me"]`)
	b.run(chromedp.KeyEvent("\r"))
	b.wait(operation("get-/me") + `?.shadowRoot.querySelector(".req-res-title") != null`)
	const focused = `document.querySelector("rapi-doc").shadowRoot.activeElement`
	for range 80 {
		b.run(chromedp.KeyEvent("\t"))
		if evaluate[bool](b, focused+`?.closest("#get-\\/spore") != null`) {
			break
		}
	}
	if shadow := evaluate[string](b, `getComputedStyle(`+focused+`).boxShadow`); shadow == "none" {
		t.Error("got an operation with the focus and no mark of it, want a visible one")
	}
	b.run(chromedp.KeyEvent("\r"))
	b.wait(operation("get-/spore") + `?.shadowRoot.querySelector(".req-res-title") != null`)
	b.mustBeContent()
}
