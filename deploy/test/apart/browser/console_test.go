package browser

import (
	"os/exec"
	"strings"
	"testing"

	permission "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"asset-registry/shared/testing/expect"
)

func TestSigningInAndOut(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.goTo("/keys")
	if b.path() != "/sign-in?next=%2Fconsole%2Fkeys" {
		t.Fatalf("got the page %s without a session, want the sign-in", b.location())
	}
	b.screenshot("sign-in")
	b.fill(map[string]string{"key": "ark_guess"})
	b.submit()
	b.mustSay("This key does not open the console.")
	b.screenshot("sign-in-refused")
	key := r.operator(t)
	b.fill(map[string]string{"key": key})
	b.submit()
	b.mustSay("Keys", "Ольга", "operator")
	if b.path() != "/keys" || strings.Contains(b.cookies(), key) {
		t.Errorf("got the page %s with the cookies %s, want /keys and no key in a cookie", b.location(), b.cookies())
	}
	expect.Equal(t, evaluate[string](b, "document.cookie"), "", "the cookie in script")
	b.click(".account button")
	b.mustSay("You are signed out.")
	b.goTo("/audit")
	b.mustSay("Sign in")
	b.mustBeContent()
}

// acme creates the broker acme with the console.
func (b *browser) acme() {
	b.t.Helper()
	b.goTo("/new-broker")
	b.fill(map[string]string{"name": "acme", "title": "ТОВ «Акме»", "contact": "keys@acme.example"})
	b.submit()
	b.mustSay("Created.", "ТОВ «Акме»")
}

// TestANewSecretIsCopiedAndHidden creates a key. Buttons must copy its secret, and neither going back nor reloading may
// show it again.
func TestANewSecretIsCopiedAndHidden(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.signIn(r.operator(t))
	b.acme()
	b.screenshot("broker-created")
	first := b.createKey(r)
	b.checkCopyButton()
	b.checkHidden(first)
	b.mustBeContent()
}

// createKey creates a key of the broker acme, and returns its secret.
func (b *browser) createKey(r *registry) (first string) {
	b.t.Helper()
	b.click(`a[href="/console/new-key?broker=acme"]`)
	b.fill(map[string]string{"name": "production", "limit-write": "5/1s, 100/1m",
		"allow": "127.0.0.0/8\n2001:db8::/32"})
	b.untick("2", "4")
	b.screenshot("key-form")
	b.submit()
	first = b.shown()
	b.mustSay("It is shown this once")
	b.screenshot("secret")
	if address := b.location(); !strings.Contains(address, "/console/keys/key-") || strings.Contains(address, first) ||
		strings.Contains(b.cookies(), first) {
		b.t.Errorf("got the page %s with the cookies %s, want the key's page and no secret in either", address,
			b.cookies())
	}
	r.mustKnow(b.t, first, 200)
	return first
}

// untick unticks levels in the form for a new key, in which the levels 1 to 4 are ticked.
func (b *browser) untick(levels ...string) {
	b.t.Helper()
	for _, level := range levels {
		b.run(chromedp.Click(chromedp.CSS(`[name=levels][value="` + level + `"]`)))
	}
}

// checkCopyButton checks that the button copies the secret.
func (b *browser) checkCopyButton() {
	b.t.Helper()
	for _, name := range []string{"clipboard-write", "clipboard-read"} {
		if _, err := chromedp.CallBrowser(b.ctx, permission.SetPermission,
			permission.SetPermissionParams{Permission: &permission.PermissionDescriptor{Name: name},
				Setting: permission.PermissionSettingGranted}); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, id := range []string{"try", "secret"} {
		b.run(chromedp.Click(chromedp.CSS(`[data-copy="`+id+`"]`)),
			chromedp.Poll[chromedp.Void](`navigator.clipboard.readText().then(
				text => text === document.getElementById("`+id+`").textContent)`),
			chromedp.Poll[chromedp.Void](`document.getElementById("copied").textContent === "Copied."`))
	}
	b.tryLine()
}

// tryLine takes the command that the page shows, and runs it in a shell.
func (b *browser) tryLine() {
	b.t.Helper()
	line := ask(b, chromedp.Text(chromedp.CSS("#try")))
	answer, err := exec.Command("sh", "-c", line+" --silent --fail").Output()
	if err != nil || !strings.Contains(string(answer), `"broker":"acme"`) {
		b.t.Errorf("%s: got %s, %v; want the broker acme", line, answer, err)
	}
}

// checkHidden checks that the browser cannot show a secret again by going back or reloading.
func (b *browser) checkHidden(first string) {
	b.t.Helper()
	b.follow(chromedp.Reload())
	b.mustSay("Usage")
	b.mustNotSay(first)
	b.run(chromedp.NavigateBack())
	b.mustNotSay(first)
	b.goTo("/keys?q=PROD&broker=acme")
	expect.Equal(b.t, evaluate[int](b, "document.querySelectorAll('.rows tbody tr').length"), 1, "keys")
	b.mustNotSay(first)
}

// asksName reports whether the page asks for the name of a key.
func (b *browser) asksName() bool {
	b.t.Helper()
	return evaluate[bool](b, `document.querySelector("#confirm") !== null`)
}

func TestAReloadWithoutScriptRepeatsNothing(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.withoutScript()
	b.signIn(r.operator(t))
	b.acme()
	b.goTo("/new-key?broker=acme")
	b.fill(map[string]string{"name": "quiet"})
	b.submit()
	if b.path() != "/new-key?broker=acme" {
		t.Fatalf("got the page %s, want the form's, because script is off", b.location())
	}
	first := b.shown()
	r.mustKnow(t, first, 200)
	b.follow(chromedp.Reload()) // sends the form a second time
	b.mustSay("Nothing was done again", "quiet")
	b.mustNotSay(first, "ark_")
	b.goTo("/keys?broker=acme")
	expect.Equal(t, evaluate[int](b, "document.querySelectorAll('.rows tbody tr').length"), 1, "keys")
	b.click(".rows tbody a")
	b.click(`a[href$="/revoke"]`)
	for range 2 { // a reported use makes the console ask for the key's name, so the first try may fail
		if b.asksName() {
			b.fill(map[string]string{"confirm": "quiet"})
		}
		b.submit()
		if !b.asksName() {
			break
		}
	}
	b.mustSay("The key is revoked.")
	r.mustKnow(t, first, 401)
	b.mustBeContent()
}
