package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// firefox is a Firefox process with one page. The test controls it with Mozilla's protocol Marionette: JSON
// messages, each preceded by its length and a colon.
type firefox struct {
	t    *testing.T
	base string
	conn net.Conn
	from *bufio.Reader
	sent int
}

// openFirefox starts Firefox with an empty profile.
func openFirefox(t *testing.T, base string) *firefox {
	t.Helper()
	needtest.Commands(t, "firefox-esr")
	home := t.TempDir()
	settings := `user_pref("marionette.port", 0); user_pref("app.normandy.enabled", false);`
	expect.OK(t, os.WriteFile(filepath.Join(home, "user.js"), []byte(settings), 0o600))
	cmd := exec.CommandContext(t.Context(), "firefox-esr", "--headless", "--no-remote", "--marionette", "--profile", home)
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	expect.OK(t, cmd.Start())
	f := &firefox{t: t, base: base}
	t.Cleanup(func() {
		if f.conn != nil {
			f.conn.Close()
		}
		_ = cmd.Process.Kill() // a kill is fine, because nothing has to be saved
		_ = cmd.Wait()         // the error only says that Firefox was killed
	})
	for deadline := time.Now().Add(2 * time.Minute); f.conn == nil; time.Sleep(100 * time.Millisecond) {
		port, err := os.ReadFile(filepath.Join(home, "MarionetteActivePort"))
		if err == nil {
			f.conn, err = net.Dial("tcp", "127.0.0.1:"+strings.TrimSpace(string(port)))
		}
		if err != nil && time.Now().After(deadline) {
			t.Fatalf("firefox does not listen: %v", err)
		}
	}
	expect.OK(t, f.conn.SetDeadline(time.Now().Add(patience)))
	f.from = bufio.NewReader(f.conn)
	f.read() // skip the message in which Marionette introduces itself
	f.send("WebDriver:NewSession", map[string]any{})
	return f
}

func (f *firefox) read() []byte {
	f.t.Helper()
	length, err := f.from.ReadString(':')
	expect.OK(f.t, err)
	n, err := strconv.Atoi(strings.TrimSuffix(length, ":"))
	expect.OK(f.t, err)
	message := make([]byte, n)
	expect.Get(io.ReadFull(f.from, message))(f.t)
	return message
}

// send sends a WebDriver command, and returns the value of its answer.
func (f *firefox) send(command string, parameters map[string]any) json.RawMessage {
	f.t.Helper()
	f.sent++
	text, err := json.Marshal([]any{0, f.sent, command, parameters})
	expect.OK(f.t, err)
	expect.Get(fmt.Fprintf(f.conn, "%d:%s", len(text), text))(f.t)
	var answer [4]json.RawMessage // message type, message id, error, result
	expect.OK(f.t, json.Unmarshal(f.read(), &answer))
	if string(answer[2]) != "null" {
		f.t.Fatalf("%s: got %s", command, answer[2])
	}
	var result struct{ Value json.RawMessage }
	if err := json.Unmarshal(answer[3], &result); err != nil {
		return nil // the command returns no value
	}
	return result.Value
}

// The function `in` evaluates a JavaScript expression on the page.
func in[T any](f *firefox, expression string) (value T) {
	f.t.Helper()
	text := f.send("WebDriver:ExecuteScript", map[string]any{"script": "return " + expression, "args": []any{}})
	if err := json.Unmarshal(text, &value); err != nil {
		f.t.Fatalf("%s: got %s: %v", expression, text, err)
	}
	return value
}

// picture returns a screenshot of an element.
func (f *firefox) picture(selector string) []byte {
	f.t.Helper()
	var found map[string]string
	text := f.send("WebDriver:FindElement", map[string]any{"using": "css selector", "value": selector})
	expect.OK(f.t, json.Unmarshal(text, &found))
	for _, id := range found {
		var shot []byte
		if err := json.Unmarshal(f.send("WebDriver:TakeScreenshot", map[string]any{"id": id, "full": false}), &shot); err != nil {
			f.t.Fatal(err)
		}
		return shot
	}
	f.t.Fatalf("got %s, want the element %s", text, selector)
	return nil
}

func (f *firefox) goTo(path string) {
	f.t.Helper()
	f.send("WebDriver:Navigate", map[string]any{"url": f.base + path})
}

// await waits until a JavaScript expression is true.
func (f *firefox) await(expression string) {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); !in[bool](f, "document.readyState === 'complete' && !!("+expression+")"); {
		if time.Now().After(deadline) {
			f.t.Fatalf("got no %s on %s", expression, in[string](f, "location.href + document.body.innerText"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// The WebDriver codes of the keys Tab and Enter (W3C WebDriver, 17.4.2).
const tabKey, enterKey = "\ue004", "\ue007"

func (f *firefox) press(keys string) {
	f.t.Helper()
	var actions []any
	for _, key := range keys {
		for _, what := range []string{"keyDown", "keyUp"} {
			actions = append(actions, map[string]any{"type": what, "value": string(key)})
		}
	}
	f.send("WebDriver:PerformActions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "keys", "actions": actions}}})
}

// tabTo presses Tab until an element has the focus.
func (f *firefox) tabTo(selector string) {
	f.t.Helper()
	for range 150 {
		if in[bool](f, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			return
		}
		f.press(tabKey)
	}
	f.t.Fatalf("got no focus on %s after 150 times Tab", selector)
}

// mustBeAccessible checks a page with axe-core, and checks that it needs no horizontal scrolling.
func (f *firefox) mustBeAccessible(name string) {
	f.t.Helper()
	if wide := in[bool](f, "document.documentElement.scrollWidth > innerWidth"); wide {
		f.t.Errorf("%s: got a page that is wider than the screen", name)
	}
	if found := f.axeFindings(); len(found) > 0 {
		f.t.Errorf("%s: got the faults %q by axe-core, want none", name, found)
	}
}

func (f *firefox) axeFindings() (found []string) {
	f.t.Helper()
	script, err := axe()
	expect.OK(f.t, err)
	// In the sandbox, the page's content policy does not apply to the script.
	text := f.send("WebDriver:ExecuteAsyncScript", map[string]any{"args": []any{}, "sandbox": "axe",
		"script": script + "; const done = arguments[arguments.length - 1]; " + findings + ".then(done, e => done([String(e)]))"})
	expect.OK(f.t, json.Unmarshal(text, &found))
	return found
}

// TestTheSiteWorksInFirefox goes from a search to an asset, checks its record, and goes back, using only the
// keyboard.
func TestTheSiteWorksInFirefox(t *testing.T) {
	needtest.Commands(t, "firefox-esr")
	s := startSite(t)
	s.addGarages(t, 1, 21)
	f := openFirefox(t, s.base)
	for _, width := range []int{1280, 500} { // Firefox windows cannot be narrower than 500
		f.send("WebDriver:SetWindowRect", map[string]any{"width": width, "height": 900})
		f.goTo("/uk/")
		f.tabTo("#q")
		f.press("бокс")
		f.await(`[...document.getElementById("q").list.options].length > 0`)
		f.press(enterKey)
		f.await(`document.querySelector(".pages [rel=next]") && location.search.includes("q=")`)
		f.mustBeAccessible("results")
		f.tabTo(".pages [rel=next]")
		f.press(enterKey)
		f.await(`document.querySelector(".pages [rel=prev]")`)
		f.mustBeAccessible("the second page")
		f.tabTo(".hits a")
		f.press(enterKey)
		f.await(`document.getElementById("check-run")?.hidden === false`)
		f.tabTo("#check-button")
		f.press(enterKey)
		f.await(`document.querySelector("[data-result=ok]:not([hidden])")`)
		f.await(`document.activeElement.id === "check-button"`)
		f.mustBeAccessible("a checked record")
		back := in[string](f, `document.querySelector(".crumbs a").getAttribute("href")`)
		f.goTo(back)
		f.await(`document.querySelector(".pages > span").textContent === "Сторінка 2 з 2"`)
		f.goTo("/en/statistics?status=pending")
		f.await(`document.querySelector(".bars a[href*='region=']")`)
		f.mustBeAccessible("statistics")
	}
	in[*int](f, `document.querySelector("main").insertAdjacentHTML("beforeend", "<input type=text>")`)
	if found := f.axeFindings(); len(found) == 0 {
		t.Error("got no fault by axe-core in a page that has one")
	}
}

// TestTheConsoleWorksInFirefox signs in by keyboard, and chooses Ukrainian.
func TestTheConsoleWorksInFirefox(t *testing.T) {
	needtest.Commands(t, "firefox-esr")
	r := startRegistry(t)
	f := openFirefox(t, r.console)
	f.goTo("/sign-in")
	f.tabTo("#key")
	f.press(r.operator(t) + enterKey)
	f.await(`document.querySelector("nav [aria-current]")?.textContent === "Start"`)
	f.mustBeAccessible("the start page")
	f.tabTo("[hreflang=uk]")
	f.press(enterKey)
	f.await(`document.documentElement.lang === "uk"`)
	f.mustBeAccessible("the start page in Ukrainian")
}
