package console

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// trap is a site whose page sends a form to the console as soon as it is opened.
func trap(t *testing.T, r *registry, host string) (port string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<form method="post" action="http://%s:%s/console/new-broker"><input name="once" value="0.AAAAAAAAAAAAAAAAAAAAAAAAAA"><input name="name" value="evil"></form><script>document.forms[0].submit()</script>`, host, r.port)
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestAnotherSiteCannotUseTheSession(t *testing.T) {
	r := startRegistry(t)
	for name, c := range map[string]struct{ console, attacker, says string }{
		// A cookie is sent to all ports of a host: here the browser tells whence the form comes.
		"another port of the same host": {"127.0.0.1", "127.0.0.1", "Another site has sent this request"},
		"the same without Sec-Fetch":    {"console.test", "console.test", "Another site has sent this request"},
		"another site":                  {"127.0.0.1", "evil.test", "Another site has sent this request"},
		"another site, plain names":     {"console.test", "evil.test", "Another site has sent this request"},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, "http://"+c.console+":"+r.port+"/console")
			b.signIn(r.operator(t))
			port := trap(t, r, c.console)
			b.run(chromedp.Navigate("http://" + c.attacker + ":" + port + "/"))
			b.run(chromedp.WaitVisible(chromedp.CSS("main h1")))
			b.mustSay(c.says)
			b.goTo("/brokers")
			b.mustSay("There are no brokers yet.")
			b.acme() // who is asked by the console itself may
			b.goTo("/edit-broker?name=acme")
			b.goTo("/brokers")
			b.mustNotSay("evil")
		})
		r = startRegistry(t)
	}
}

func TestNobodyFramesTheConsole(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.signIn(r.operator(t))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<iframe src="%s/keys"></iframe>`, r.console)
	}))
	t.Cleanup(server.Close)
	b.run(chromedp.Navigate(server.URL))
	if told := strings.Join(b.complaints(), "; "); !strings.Contains(told, "frame-ancestors") {
		t.Errorf("the browser frames it: %q", told)
	}
}
