package browser

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"asset-registry/shared/testing/expect"
)

// trap starts a hostile site. When its page opens, the page sends a form to the console.
func trap(t *testing.T, r *registry, host string) (port string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<form method="post" action="http://%s:%s/console/new-broker">
			<input name="once" value="0.AAAAAAAAAAAAAAAAAAAAAAAAAA"><input name="name" value="evil">
			</form><script>document.forms[0].submit()</script>`, host, r.port)
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	expect.OK(t, err)
	return port
}

func TestAnotherSiteCannotUseTheSession(t *testing.T) {
	r := startRegistry(t)
	for _, c := range []struct {
		name, console, attacker, says string
	}{
		// The browser sends a cookie to all ports of a host. The header Sec-Fetch-Site shows that a form came from
		// another port.
		{"another port of the same host", "127.0.0.1", "127.0.0.1", "Another site has sent this request"},
		{"the same without Sec-Fetch", "console.test", "console.test", "Another site has sent this request"},
		{"another site", "127.0.0.1", "evil.test", "Another site has sent this request"},
		{"another site, plain names", "console.test", "evil.test", "Another site has sent this request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := open(t, "http://"+c.console+":"+r.port+"/console")
			b.signIn(r.operator(t))
			port := trap(t, r, c.console)
			b.run(chromedp.Navigate("http://" + c.attacker + ":" + port + "/"))
			b.run(chromedp.WaitVisible(chromedp.CSS("main h1")))
			b.mustSay(c.says)
			b.goTo("/brokers")
			b.mustSay("There are no brokers yet.")
			b.acme() // the console's own form still works
			b.goTo("/edit-broker?name=acme")
			b.goTo("/brokers")
			b.mustNotSay("evil")
		})
		r = startRegistry(t)
	}
}

func TestNoSiteCanFrameTheConsole(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.signIn(r.operator(t))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<iframe src="%s/keys"></iframe>`, r.console)
	}))
	t.Cleanup(server.Close)
	b.run(chromedp.Navigate(server.URL))
	b.mustComplain("frame-ancestors")
}

func TestNamesAreShownAsText(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.signIn(r.operator(t))
	evil := `<script>window.owned = 1</script>"'><img src=x onerror="window.owned = 1">`
	broker := "Evil (1)"
	b.goTo("/new-broker")
	b.fill(map[string]string{"name": strings.ReplaceAll(evil, "/", ""), "title": evil})
	b.submit()
	b.mustSay("Nothing was saved yet", "The name begins with")
	b.fill(map[string]string{"name": broker, "title": evil, "contact": "javascript:window.owned=1"})
	b.submit()
	b.mustSay(evil)
	b.goTo("/new-key")
	b.fill(map[string]string{"broker": broker, "name": evil})
	b.submit()
	b.shown()
	b.follow(chromedp.Reload())
	key := b.path()
	for _, path := range []string{key, key + "/edit", key + "/rotate", key + "/revoke", "/keys",
		"/keys?q=%22%3E%3Cscript%3E", "/brokers", "/audit",
		"/sign-in?next=%22%3E%3Cscript%3Ewindow.owned=1%3C/script%3E"} {
		b.goTo(path)
		owned := evaluate[bool](b, "window.owned === 1")
		made := evaluate[bool](b, "document.querySelector('main script, main img') !== null")
		if owned || made {
			t.Errorf("%s: got markup of a name in the page (script ran: %t, element made: %t), want text", path, owned,
				made)
		}
	}
	b.goTo("/keys")
	b.mustSay(evil)
	b.screenshot("names")
	b.mustBeContent()
}

// TestThePolicyForbidsInlineScript checks that the browser runs no inline script, and that it reports the attempt.
// The other tests need such reports to notice violations.
func TestThePolicyForbidsInlineScript(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.goTo("/sign-in")
	b.mustBeContent()
	evaluate[chromedp.Void](b, `document.body.insertAdjacentHTML("beforeend", '<p style="color:red">')`)
	evaluate[chromedp.Void](b,
		`(() => {
			const inline = document.createElement("script");
			inline.textContent = "window.owned = 1";
			document.body.append(inline);
		})()`)
	if owned := evaluate[bool](b, "window.owned === 1"); owned {
		t.Error("got inline script to run, want it blocked")
	}
	b.mustComplain("inline style", "inline script")
}
