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
	"asset-registry/filesvc"
	"asset-registry/gateway"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/testing/expect"
)

// startDocs starts a complete registry in the process of the test, and returns its address.
func startDocs(t *testing.T, sandbox bool) string {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	dir := t.TempDir()
	auth, err := authsvc.New(t.Context(), authsvc.Config{Store: "file:" + filepath.Join(dir, "tokens.db"),
		Secrets: secrets, Sandbox: sandbox, Log: log})
	expect.OK(t, err)
	closeAtEnd(t, auth.Close)
	toAuth := httpserver.InProcess(auth.Handler())
	assets, err := assetsvc.New(t.Context(), assetsvc.Config{Store: "file:" + filepath.Join(dir, "assets.db"),
		Auth: toAuth, Secrets: secrets, Zone: time.UTC, AssetTypes: []string{"bounce"}, Sandbox: sandbox, Log: log})
	expect.OK(t, err)
	closeAtEnd(t, assets.Close)
	files, err := filesvc.New(t.Context(), filesvc.Config{Store: "file:" + filepath.Join(dir, "files.db"),
		Bytes: filepath.Join(dir, "files"), Assets: httpserver.InProcess(assets.Handler()), Secrets: secrets, Log: log})
	expect.OK(t, err)
	closeAtEnd(t, files.Close)
	edge, err := gateway.New(t.Context(), gateway.Config{Auth: toAuth, Assets: assets.Handler(), Files: files.Handler(),
		Secrets: secrets, Limits: gateway.Limits{}.OrDefault(sandbox), Log: log})
	expect.OK(t, err)
	closeAtEnd(t, edge.Close)
	server := httptest.NewServer(edge.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

func closeAtEnd(t *testing.T, close func() error) {
	t.Helper()
	t.Cleanup(func() { expect.Try(t, close()) })
}

// hosts records the host of every request that the browser's pages make.
type hosts struct {
	mu  sync.Mutex
	all []string
}

func (h *hosts) hear(event any) {
	sent, ok := event.(*network.EventRequestWillBeSent)
	if !ok || strings.HasPrefix(sent.Request.URL, "data:") { // skip a picture that is inside the page
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
	expect.OK(b.t, chromedp.Listen(b.ctx, h.hear))
	return h
}

// mustBeOnly checks that the pages have sent requests only to the given host.
func (h *hosts) mustBeOnly(t *testing.T, host string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.all, []string{host}) {
		t.Errorf("got requests to %q, want some to %s only", h.all, host)
	}
}

// openDocs opens a page of the documentation, and waits until its script has run.
func (b *browser) openDocs(path string) {
	b.t.Helper()
	b.goTo(path)
	b.wait(`document.querySelector("main .row") !== null`)
}

// wait waits until a JavaScript expression is true.
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
	for _, screen := range screens {
		t.Run(screen.name, func(t *testing.T) {
			screen.show(b)
			b.openDocs("/docs")
			b.mustFit("docs")
			b.mustBeLegible("docs")
			b.screenshot(screen.name + "-docs")
			b.openOperation("post-/assets")
			b.mustFit("an operation")
			b.screenshot(screen.name + "-docs-operation")
			b.openDocs("/docs/uk")
			b.mustFit("docs in Ukrainian")
			b.mustBeLegible("docs in Ukrainian")
			b.screenshot(screen.name + "-docs-uk")
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
	evaluate[chromedp.Void](b, operation(id)+`.open = true; undefined`)
}

// operation returns a JavaScript expression for the element that shows an operation.
func operation(id string) string {
	return fmt.Sprintf(`document.getElementById(%q).closest("details")`, id)
}

// step returns a JavaScript expression for an example in the first guide. The number n counts from 0.
func step(n int) string {
	return fmt.Sprintf(`document.querySelectorAll("[aria-labelledby=first-asset] .send")[%d]`, n)
}

// enter puts a value into a field of a form.
func (b *browser) enter(form, name, value string) {
	b.t.Helper()
	evaluate[chromedp.Void](b, fmt.Sprintf(`{
		const field = %s.querySelector("[name=%s]");
		field.value = %q;
		field.dispatchEvent(new Event("input", {bubbles: true}));
	} undefined`, form, name, value))
}

// try presses the button of a form, which belongs to an operation or to a step of a guide. It returns the status and
// the answer that the page shows.
func (b *browser) try(form string) (status, answer string) {
	b.t.Helper()
	evaluate[chromedp.Void](b, form+`.querySelector("button:not([type])").click(); undefined`)
	b.wait(`/^(\d|No answer)/.test(` + form + `.querySelector("[role=status]").textContent)`)
	return evaluate[string](b, form+`.querySelector("[role=status]").textContent`),
		evaluate[string](b, form+`.querySelector(".answer").textContent`)
}

// TestTheFirstGuideIsSentFromThePage sends the requests of the first guide with the buttons of the page. The page
// must show the answers.
// Promises: docs-sent
func TestTheFirstGuideIsSentFromThePage(t *testing.T) {
	base := startDocs(t, true)
	b := open(t, base)
	asked := b.watch()
	b.openDocs("/docs/uk")
	b.mustSay("Надіслати", "Копіювати")
	if status, answer := b.try(step(0)); !strings.HasPrefix(status, "201") {
		t.Errorf("in Ukrainian: got %s: %s; want 201", status, answer)
	}
	b.mustBeAccessible("the first guide with an answer in Ukrainian")
	b.openDocs("/docs")
	if evaluate[bool](b, step(1)+`.checkValidity()`) {
		t.Error("got a step that can be sent without an id, want it refused")
	}
	for n, want := range []struct{ status, answer string }{
		{"201", `"owner":"broker"`}, {"200", `"status": "draft"`}, {"200", `"status": "pending"`},
	} {
		if status, answer := b.try(step(n)); !strings.Contains(status, want.status) || !strings.Contains(answer, want.answer) {
			t.Fatalf("step %d: got %s: %s; want %s and %s", n, status, answer, want.status, want.answer)
		}
	}
	b.screenshot("docs-try")
	b.mustBeAccessible("the first guide with answers")
	if status, answer := b.try(operation("get-/assets/-id-/revisions")); !strings.Contains(status, "200") ||
		!strings.Contains(answer, `"pending"`) {
		t.Errorf("got %s: %s; want 200 and the revisions of the asset", status, answer)
	}
	b.mustBeContent()
	asked.mustBeOnly(t, base)
}

func TestTheReferenceSendsRequestsWithTheSandboxKey(t *testing.T) {
	base := startDocs(t, true)
	b := open(t, base)
	asked := b.watch()
	b.openDocs("/docs")
	all := evaluate[[]string](b, `[...document.querySelectorAll(".operation")].filter(o =>
		(o.querySelector(".method").textContent === "GET") !== (o.querySelector(".send") !== null)).map(o => o.innerText)`)
	if len(all) > 0 {
		t.Errorf("got the operations %q, want a way to send each GET and nothing else", all)
	}
	for _, want := range []struct{ operation, field, value, status, answer string }{
		{"get-/me", "", "", "200", `"broker":"broker"`},
		{"get-/me", "'API key'", "broker3", "200", `"broker":"broker3"`},
		{"get-/me", "'API key'", "невідомий", "401", `"errors"`},
		{"get-/assets", "opt_fields", "title,status", "200", `"next_page"`},
		{"get-/assets", "offset", "a&b=ї", "404", `"offset"`},
		{"get-/assets/-id-", "id", "../me", "404", `"errors"`},
		{"get-/openapi.yaml", "", "", "200", "openapi: 3.1"},
		{"get-/get", "limit", "x", "400", `"limit"`},
	} {
		b.openOperation(want.operation)
		if want.field != "" {
			b.enter(operation(want.operation), want.field, want.value)
		}
		status, answer := b.try(operation(want.operation))
		if !strings.Contains(status, want.status) || !strings.Contains(answer, want.answer) {
			t.Errorf("%s with %q: got %s: %s; want %s and %s",
				want.operation, want.value, status, answer, want.status, want.answer)
		}
	}
	b.mustBeAccessible("the reference with answers, also refused ones")
	command := evaluate[string](b, operation("get-/assets")+`.querySelector(".curl").textContent`)
	want := "curl -s -u broker: \\\n  \"" + base + `/api/2.5/assets?offset=a%26b%3D%D1%97&opt_fields=title%2Cstatus&opt_pretty=1"`
	expect.Equal(t, command, want, "the command")
	b.mustBeContent()
	asked.mustBeOnly(t, base)
}

func TestEveryPartOfTheDocumentationIsAccessible(t *testing.T) {
	b := open(t, startDocs(t, true))
	for _, dark := range []bool{false, true} {
		b.dark(dark)
		for _, path := range []string{"/docs", "/docs/uk", "/docs/2.4"} {
			b.openDocs(path)
			evaluate[chromedp.Void](b, `document.querySelectorAll("details").forEach(d => d.open = true); undefined`)
			b.mustBeAccessible(fmt.Sprintf("%s with all operations open, dark: %t", path, dark))
		}
	}
	b.phone()
	b.openDocs("/docs/uk")
	b.mustBeAccessible("the documentation in Ukrainian on a phone")
}

// TestTheDocumentationIsSearched types queries into the search field of the page, and checks the results.
// Promises: docs-search
func TestTheDocumentationIsSearched(t *testing.T) {
	b := open(t, startDocs(t, false))
	b.openDocs("/docs")
	const results = `[...document.querySelectorAll(".found:not([hidden]) a")].map(a => a.getAttribute("href"))`
	for _, c := range []struct {
		query, status string
		first         string // the link of the first result
		count         int
	}{
		{"ownership", "", "#tokens", 0},                        // found in the title of a guide
		{"GET /me/assets", "Results: 2", "#get-/me/assets", 2}, // found by method and path
		{"published by Mistake", "", "#deletion", 0},           // found in the text of a guide
		{"a", "the first are shown: 10", "", 10},               // found in nearly every text
		{"<b>none</b>", "No result", "", 0},                    // shown as text, not as markup
		{"  ", "", "", 0},                                      // an empty query
	} {
		evaluate[chromedp.Void](b, fmt.Sprintf(`{
			const field = document.querySelector(".search input");
			field.value = %q;
			field.dispatchEvent(new Event("input", {bubbles: true}));
		} undefined`, c.query))
		status := evaluate[string](b, `document.querySelector(".search [role=status]").textContent`)
		found := evaluate[[]string](b, results)
		if !strings.Contains(status, c.status) || c.first != "" && (len(found) == 0 || found[0] != c.first) ||
			c.count > 0 && len(found) != c.count {
			t.Errorf("%q: got %q and %q, want %q, %d results and %q first", c.query, status, found, c.status, c.count, c.first)
		}
		if c.first == "" && c.count == 0 && (len(found) > 0 || status != c.status) {
			t.Errorf("%q: got %q and %q, want %q and no results", c.query, status, found, c.status)
		}
		if c.status == "No result" {
			b.mustBeAccessible("a search without a result")
		}
	}
	b.tabTo(".search input")
	b.run(chromedp.KeyEvent("revisions of an asset"))
	b.wait(results + `.length > 0`)
	b.mustBeAccessible("the results of a search")
	b.mustFit("the results of a search")
	b.screenshot("docs-search")
	b.phone()
	b.mustFit("the results of a search on a phone")
	b.tabTo(`.found a[href="#get-/assets/-id-/revisions"]`)
	b.run(chromedp.KeyEvent("\r"))
	b.wait(operation("get-/assets/-id-/revisions") + `.open`)
	b.openDocs("/docs/uk")
	b.tabTo(".search input")
	b.run(chromedp.KeyEvent("передати актив іншому"))
	b.wait(results + `.includes("#tokens")`)
	b.mustSay("Знайдено")
	b.mustBeAccessible("the results of a search in Ukrainian on a phone")
	b.mustBeContent()
}

func TestExamplesAreCopied(t *testing.T) {
	b := open(t, startDocs(t, false))
	b.openDocs("/docs")
	b.openOperation("post-/transfers")
	evaluate[chromedp.Void](b, `window.copied = ""; navigator.clipboard.writeText = async text => { copied = text }; undefined`)
	evaluate[chromedp.Void](b, operation("post-/transfers")+`.querySelector("button").click(); undefined`)
	b.wait(operation("post-/transfers") + `.querySelector("button").textContent === "Copied"`)
	want := evaluate[string](b, operation("post-/transfers")+`.querySelector(".curl").textContent`)
	if got := evaluate[string](b, "copied"); got != want || !strings.HasPrefix(got, "curl -s -X POST") {
		t.Errorf("got %q, want %q", got, want)
	}
	b.mustBeContent()
}

func TestTheDocumentationNeedsNoScript(t *testing.T) {
	base := startDocs(t, true)
	b := open(t, base)
	b.withoutScript()
	b.goTo("/docs")
	b.mustSay("First asset in five minutes", "Following the feed", "address-read", // from the guides
		"/assets/{id}/related_processes/{part}", "Create an asset", "AssetInput") // from the reference
	b.mustFit("docs without script")
	b.mustBeLegible("docs without script")
	b.phone()
	b.goTo("/docs/2.4#post-/assets")
	b.mustSay("Idempotency-Key", "curl -s -X POST -u broker:") // the fragment of the address has opened the operation
	b.mustFit("docs without script on a phone")
	b.screenshot("docs-without-script")
	b.mustBeContent()
}

func TestTheDocumentationWorksByKeyboard(t *testing.T) {
	b := open(t, startDocs(t, true))
	b.openDocs("/docs")
	b.tabTo(".skip")
	b.tabTo(`.contents a[href="#reference"]`)
	b.run(chromedp.KeyEvent("\r"))
	b.wait(`location.hash === "#reference"`)
	b.tabTo(`.routes a[href="#get-/me"]`)
	b.run(chromedp.KeyEvent("\r"))
	b.wait(operation("get-/me") + `.open`)
	evaluate[chromedp.Void](b, operation("get-/me")+`.id = "me"; undefined`)
	b.tabTo("#me input")
	b.run(chromedp.KeyEvent("\r")) // sends the form
	b.wait(operation("get-/me") + `.querySelector("[role=status]").textContent.startsWith("200")`)
	b.tabTo("#me .answer")
	b.mustBeContent()
}
