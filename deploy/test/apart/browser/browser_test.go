package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"asset-registry/shared/testing/expect"
)

const (
	patience    = 8 * time.Minute // longest time of one test on a busy machine
	screenshots = "../../../../bin/screenshots"
)

// browser is a Chromium process with one page.
type browser struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu       sync.Mutex
	problems []string // messages in the browser's console
}

// open starts a browser. It resolves every name under ".test" to 127.0.0.1.
func open(t *testing.T, base string) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.Flag("host-resolver-rules", "MAP *.test 127.0.0.1"),
		chromedp.WindowSize(1280, 900),
	)
	if os.Geteuid() == 0 { // Chromium's sandbox does not work for root
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, base: base}
	if err := chromedp.Do(ctx); err != nil { // starts the browser
		t.Fatal(err)
	}
	expect.OK(t, chromedp.Listen(ctx, b.hear))
	command(b, cdplog.Enable, cdp.Empty{})
	command(b, network.Enable, network.EnableParams{})
	command(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return b
}

// hear is called for every event of the browser, and records messages.
func (b *browser) hear(event any) {
	var problem string
	switch e := event.(type) {
	case *cdplog.EventEntryAdded:
		if e.Entry.Source == cdplog.EntrySourceNetwork { // skip failed requests, because some tests expect a 401
			return
		}
		problem = fmt.Sprint(e.Entry.Source, ": ", e.Entry.Text)
	case *runtime.EventConsoleAPICalled:
		problem = fmt.Sprint("console: ", e.Type)
	case *runtime.EventExceptionThrown:
		problem = e.ExceptionDetails.Text
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, problem)
}

// complaints returns the messages that the browser has reported since the last call.
func (b *browser) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.problems
	b.problems = nil
	return found
}

// mustBeContent checks that the browser has reported no message since the last call of `complaints`.
func (b *browser) mustBeContent() {
	b.t.Helper()
	if found := b.complaints(); len(found) > 0 {
		b.t.Errorf("got the messages %q in the console, want none", found)
	}
}

// mustComplain waits until the browser has reported messages that contain each of the texts.
func (b *browser) mustComplain(of ...string) {
	b.t.Helper()
	told := ""
	for slices.ContainsFunc(of, func(text string) bool { return !strings.Contains(told, text) }) {
		select {
		case <-b.ctx.Done():
			b.t.Fatalf("got the messages %q in the console, want %q", told, of)
		case <-time.After(20 * time.Millisecond):
			told += strings.Join(b.complaints(), "; ")
		}
	}
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v; the page at %s says: %s", err, b.location(), b.text())
	}
}

// follow runs actions that lead to another page, and waits for that page.
func (b *browser) follow(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if _, err := chromedp.RunResponse(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v; the page at %s says: %s", err, b.location(), b.text())
	}
}

func (b *browser) goTo(path string) { b.t.Helper(); b.run(chromedp.Navigate(b.base + path)) }

func (b *browser) click(selector string) {
	b.t.Helper()
	b.follow(chromedp.Click(chromedp.CSS(selector)))
}

// fill fills in fields of a form. The keys are their names. It first waits until the field with autofocus has the
// focus. If a different field had the focus at that moment, the browser would log a message.
func (b *browser) fill(fields map[string]string) {
	b.t.Helper()
	for !evaluate[bool](b,
		`document.querySelector("[autofocus]") === null || document.activeElement !== document.body`) {
		time.Sleep(10 * time.Millisecond)
	}
	for name, value := range fields {
		b.run(chromedp.SetValue(chromedp.CSS(fmt.Sprintf("[name=%q]", name)), value))
	}
}

func (b *browser) submit() { b.t.Helper(); b.click("main form[method=post] button[type=submit]") }

// ask runs an action that returns a value.
func ask[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	got, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.t.Fatalf("%v; the page at %s says: %s", err, b.location(), b.text())
	}
	return got
}

func evaluate[T any](b *browser, script string) T {
	b.t.Helper()
	return ask(b, chromedp.Evaluate[T](script))
}

// command sends a command of the DevTools protocol.
func command[P, R any](b *browser, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	got, err := chromedp.Call(b.ctx, command, params)
	expect.OK(b.t, err)
	return got
}

func (b *browser) location() string {
	url, _ := chromedp.Run(b.ctx, chromedp.Location()) // after an error, url is "", which no test expects
	return url
}

func (b *browser) path() string { return strings.TrimPrefix(b.location(), b.base) }

// text returns the visible text of the page. It returns "" if there is no text, or after an error.
func (b *browser) text() string {
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	return text
}

func (b *browser) mustSay(texts ...string) {
	b.t.Helper()
	said := b.text()
	for _, text := range texts {
		if !strings.Contains(said, text) {
			b.t.Fatalf("%s: got no %q in %s, want it there", b.location(), text, said)
		}
	}
}

func (b *browser) mustNotSay(texts ...string) {
	b.t.Helper()
	page := evaluate[string](b, "document.documentElement.outerHTML")
	for _, text := range texts {
		if text == "" || strings.Contains(page, text) {
			b.t.Errorf("%s: got %q in the page, want it left out: %s", b.location(), text, page)
		}
	}
}

func (b *browser) signIn(key string) {
	b.t.Helper()
	b.goTo("/sign-in")
	b.fill(map[string]string{"key": key})
	b.submit()
	if b.path() != "/" {
		b.t.Fatalf("got the page %s after signing in, want /: %s", b.location(), b.text())
	}
}

// shown returns the secret that the page shows.
func (b *browser) shown() string {
	b.t.Helper()
	secret := ask(b, chromedp.Text(chromedp.CSS("#secret")))
	if !strings.HasPrefix(secret, "ark_") {
		b.t.Fatalf("got %q, want a secret", secret)
	}
	return secret
}

func (b *browser) screenshot(name string) {
	b.t.Helper()
	picture := ask(b, chromedp.FullScreenshot(100))
	expect.OK(b.t, os.MkdirAll(screenshots, 0o755))
	expect.OK(b.t, os.WriteFile(filepath.Join(screenshots, name+".png"), picture, 0o644))
}

func (b *browser) dark(dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	command(b, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: scheme}}})
}

func (b *browser) phone() {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulateScale(2)))
}

// screen is a width and a colour of pages.
type screen struct {
	name        string
	phone, dark bool
}

var screens = []screen{{"wide-light", false, false}, {"wide-dark", false, true}, {"phone-light", true, false}, {"phone-dark", true, true}}

// show sets the screen. A phone stays a phone.
func (s screen) show(b *browser) {
	b.t.Helper()
	if s.phone {
		b.phone()
	}
	b.dark(s.dark)
}

func (b *browser) withoutScript() {
	b.t.Helper()
	command(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// cookies returns all cookies of the browser as JSON.
func (b *browser) cookies() string {
	b.t.Helper()
	text, err := json.Marshal(command(b, network.GetCookies, network.GetCookiesParams{}))
	expect.OK(b.t, err)
	return string(text)
}
