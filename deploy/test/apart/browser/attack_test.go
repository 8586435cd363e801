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
