package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	permission "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

func TestSigningInAndOut(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.goTo("/keys")
	if b.path() != "/sign-in?next=%2Fconsole%2Fkeys" {
		t.Fatalf("a stranger is led to %s", b.location())
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
		t.Errorf("at %s with the cookies %s", b.location(), b.cookies())
	}
	if readable := evaluate[string](b, "document.cookie"); readable != "" {
		t.Errorf("scripts can read %s", readable)
	}
	b.click(".account button")
	b.mustSay("You are signed out.")
	b.goTo("/audit")
	b.mustSay("Sign in")
	b.mustBeContent()
}

// acme makes a broker of that name.
func (b *browser) acme() {
	b.t.Helper()
	b.goTo("/new-broker")
	b.fill(map[string]string{"name": "acme", "title": "ТОВ «Акме»", "contact": "keys@acme.example"})
	b.submit()
	b.mustSay("Created.", "ТОВ «Акме»")
}

func TestTheLifeOfAKey(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.signIn(r.operator(t))
	b.acme()
	b.screenshot("broker-created")

	b.click(`a[href="/console/new-key?broker=acme"]`)
	b.fill(map[string]string{"name": "production", "limit-write": "5/1s, 100/1m", "allow": "127.0.0.0/8\n2001:db8::/32"})
	b.run(chromedp.Click(chromedp.CSS(`[name=levels][value="1"]`)), chromedp.Click(chromedp.CSS(`[name=levels][value="3"]`)))
	b.screenshot("key-form")
	b.submit()
	first := b.shown()
	b.mustSay("It is shown this once")
	b.screenshot("secret")
	if address := b.location(); !strings.Contains(address, "/console/keys/key-") || strings.Contains(address, first) || strings.Contains(b.cookies(), first) {
		t.Errorf("the page of the secret is at %s, with the cookies %s", address, b.cookies())
	}
	id := strings.TrimPrefix(b.path(), "/keys/")
	r.mustKnow(t, first, 200)

	for _, name := range []string{"clipboard-write", "clipboard-read"} {
		if _, err := chromedp.CallBrowser(b.ctx, permission.SetPermission, permission.SetPermissionParams{Permission: &permission.PermissionDescriptor{Name: name}, Setting: permission.PermissionSettingGranted}); err != nil {
			t.Fatal(err)
		}
	}
	b.run(chromedp.Click(chromedp.CSS("[data-copy]")), chromedp.Poll[chromedp.Void](`document.getElementById("copied").textContent === "Copied."`))

	b.follow(chromedp.Reload())
	b.mustSay("Usage")
	b.mustNotSay(first)
	b.follow(chromedp.NavigateBack())
	b.mustNotSay(first)
	b.goTo("/keys?q=PROD&broker=acme")
	if rows := evaluate[int](b, "document.querySelectorAll('.rows tbody tr').length"); rows != 1 {
		t.Errorf("there are %d keys", rows)
	}
	b.mustNotSay(first)

	r.use(t, id)
	b.goTo("/keys/" + id)
	b.mustSay("production", "1, 3", "write: 5/1s, 100/1m", "127.0.0.0/8", "192.0.2.17", "requests in 30 days")
	b.screenshot("key")
	b.goTo("/keys/" + id + "?days=90")
	b.run(chromedp.Click(chromedp.CSS("details summary")))
	b.screenshot("key-90-days")

	b.goTo("/keys/" + id + "/rotate")
	b.fill(map[string]string{"grace": "1h"})
	b.screenshot("rotate")
	b.submit()
	second := b.shown()
	b.mustSay("The secret before is good until")
	r.mustKnow(t, second, 200)
	r.mustKnow(t, first, 200)
	b.follow(chromedp.Reload())
	b.mustSay("No. 2")
	b.mustNotSay(first, second, "No. 3")

	b.goTo("/keys/" + id + "/edit")
	b.fill(map[string]string{"name": "production, new", "limit-read": "fast", "allow": "nowhere"})
	b.submit()
	b.mustSay("Nothing was saved yet", "is not of the form 100/1m")
	b.screenshot("key-form-refused")
	b.fill(map[string]string{"limit-read": "50/1s", "allow": "192.0.2.0/24"})
	b.submit()
	b.mustSay("The changes are saved", "production, new", "read: 50/1s")
	r.mustKnow(t, second, 403) // from here it may not be used any more

	b.click(`a[href$="/revoke"]`)
	b.mustSay("this cannot be undone")
	b.screenshot("revoke")
	b.submit()
	b.mustSay("The key is revoked.")
	b.screenshot("key-revoked")
	r.mustKnow(t, second, 401)

	b.goTo("/audit")
	b.mustSay("broker.create", "key.create", "key.rotate", "key.change", "key.revoke", "Ольга")
	b.mustNotSay(first, second)
	b.run(chromedp.Click(chromedp.CSS("details summary")))
	b.screenshot("audit")
	b.click(`a[href="/console/audit/check"]`)
	b.mustSay("The log is as it was written")
	b.screenshot("audit-checked")
	b.mustBeContent()
}

func TestWithoutScriptAReloadRepeatsNothingEither(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.withoutScript()
	b.signIn(r.operator(t))
	b.acme()
	b.goTo("/new-key?broker=acme")
	b.fill(map[string]string{"name": "quiet"})
	b.submit()
	if b.path() != "/new-key?broker=acme" {
		t.Fatalf("script runs: at %s", b.location())
	}
	first := b.shown()
	r.mustKnow(t, first, 200)
	b.follow(chromedp.Reload()) // sends the form again
	b.mustSay("Nothing was done again", "quiet")
	b.mustNotSay(first, "ark_")
	b.goTo("/keys?broker=acme")
	if rows := evaluate[int](b, "document.querySelectorAll('.rows tbody tr').length"); rows != 1 {
		t.Errorf("there are %d keys", rows)
	}
	b.click(".rows tbody a")
	b.click(`a[href$="/revoke"]`)
	b.submit()
	b.mustSay("The key is revoked.")
	r.mustKnow(t, first, 401)
	b.mustBeContent()
}

func TestABrokerIsBlocked(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.signIn(r.operator(t))
	b.acme()
	b.goTo("/new-key?broker=acme")
	b.fill(map[string]string{"name": "n"})
	b.submit()
	key := b.shown()
	r.mustKnow(t, key, 200)
	b.goTo("/brokers")
	b.screenshot("brokers")
	b.click(".rows tbody a")
	b.click(`a[href="/console/edit-broker?name=acme"]`)
	b.run(chromedp.Click(chromedp.CSS("[name=blocked]")))
	b.screenshot("broker-form")
	b.submit()
	b.mustSay("blocked", "None of the broker's keys is good")
	b.screenshot("broker-blocked")
	r.mustKnow(t, key, 401)
	b.click(`a[href="/console/edit-broker?name=acme"]`)
	b.run(chromedp.Click(chromedp.CSS("[name=blocked]")))
	b.submit()
	r.mustKnow(t, key, 200)
	b.mustBeContent()
}

func TestAnAuditorSeesNoButtons(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.signIn(r.operator(t))
	b.acme()
	b.goTo("/new-key")
	b.fill(map[string]string{"name": "Аудитор"})
	b.run(chromedp.Click(chromedp.CSS("[name=role][value=auditor]")))
	b.submit()
	key := b.shown()
	id := strings.TrimPrefix(b.path(), "/keys/")
	b.click(".account button")
	b.signIn(key)
	for _, path := range []string{"/keys", "/keys/" + id, "/brokers", "/broker?name=acme", "/audit", "/audit/check"} {
		b.goTo(path)
		if buttons := evaluate[int](b, "document.querySelectorAll('main form[method=post], .head .button:not([href^=\"/console/audit\"])').length"); buttons != 0 {
			t.Errorf("%s has %d buttons", path, buttons)
		}
	}
	b.goTo("/new-broker")
	b.mustSay("Your key may read here and change nothing.")
	b.screenshot("auditor-refused")
	b.mustBeContent()
}

func TestNamesAreShownAsText(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.signIn(r.operator(t))
	evil := `<script>window.owned = 1</script>"'><img src=x onerror="window.owned = 1">`
	broker := strings.ReplaceAll(evil, "/", "")
	b.goTo("/new-broker")
	b.fill(map[string]string{"name": broker, "title": evil, "contact": "javascript:window.owned=1"})
	b.submit()
	b.mustSay(broker)
	b.goTo("/new-key")
	b.fill(map[string]string{"broker": broker, "name": evil})
	b.submit()
	b.shown()
	b.follow(chromedp.Reload())
	key := b.path()
	for _, path := range []string{key, key + "/edit", key + "/rotate", key + "/revoke", "/keys", "/keys?q=%22%3E%3Cscript%3E", "/brokers", "/audit", "/sign-in?next=%22%3E%3Cscript%3Ewindow.owned=1%3C/script%3E"} {
		b.goTo(path)
		owned := evaluate[bool](b, "window.owned === 1")
		made := evaluate[bool](b, "document.querySelector('main script, main img') !== null")
		if owned || made {
			t.Errorf("%s runs what is a name: %v %v", path, owned, made)
		}
	}
	b.goTo("/keys")
	b.mustSay(evil)
	b.screenshot("names")
	b.mustBeContent()
}

// The others would see no violation if none were told.
func TestThePolicyForbidsScriptInAPage(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.goTo("/sign-in")
	b.mustBeContent()
	evaluate[chromedp.Void](b, `document.body.insertAdjacentHTML("beforeend", '<p style="color:red">')`)
	evaluate[chromedp.Void](b, `(() => { const inline = document.createElement("script"); inline.textContent = "window.owned = 1"; document.body.append(inline) })()`)
	if owned := evaluate[bool](b, "window.owned === 1"); owned {
		t.Error("script of a page runs")
	}
	told := strings.Join(b.complaints(), "; ")
	if !strings.Contains(told, "Content Security Policy") {
		t.Errorf("the browser tells of no violation: %q", told)
	}
}

func TestTheKeyboardIsEnough(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	key := r.operator(t)
	b.goTo("/sign-in")
	b.mustFocus("#key") // at once
	b.run(chromedp.KeyEvent(key))
	b.press("\r")
	if b.path() != "/keys" {
		t.Fatalf("signing in leads to %s", b.location())
	}
	b.tabTo(".skip")
	b.screenshot("keyboard-skip")
	b.tabTo(`nav a[href="/console/brokers"]`)
	b.press("\r")
	b.tabTo(`a[href="/console/new-broker"]`)
	b.screenshot("keyboard-focus")
	b.press("\r")
	b.tabTo("#name")
	b.run(chromedp.KeyEvent("keys"))
	b.press("\r")
	b.mustSay("Created.")
	b.tabTo(`a[href="/console/new-key?broker=keys"]`)
	b.press("\r")
	b.tabTo("#name")
	b.run(chromedp.KeyEvent("typed"))
	b.tabTo(`[name=levels][value="3"]`)
	b.run(chromedp.KeyEvent(" "))
	b.tabTo("main button[type=submit]")
	b.press("\r")
	secret := b.shown()
	r.mustKnow(t, secret, 200)
	b.tabTo("main .button")
	b.press("\r")
	b.mustSay("typed", "Levels\n3")
	b.tabTo(`a[href$="/revoke"]`)
	b.press("\r")
	b.tabTo("main button[type=submit]")
	b.press("\r")
	b.mustSay("The key is revoked.")
	r.mustKnow(t, secret, 401)
	b.tabTo(".account button")
	b.press("\r")
	b.mustSay("You are signed out.")
	b.mustBeContent()
}

// tabTo presses Tab until an element has the focus, and checks that its user
// sees that it has.
func (b *browser) tabTo(selector string) {
	b.t.Helper()
	for range 80 {
		b.run(chromedp.KeyEvent("\t"))
		if there := evaluate[bool](b, fmt.Sprintf("document.activeElement === document.querySelector(%q)", selector)); there {
			b.mustFocus(selector)
			return
		}
	}
	b.t.Fatalf("Tab does not lead to %s at %s", selector, b.location())
}

func (b *browser) mustFocus(selector string) {
	b.t.Helper()
	there := evaluate[bool](b, fmt.Sprintf("document.activeElement === document.querySelector(%q)", selector))
	outline := evaluate[string](b, "getComputedStyle(document.activeElement).outlineStyle")
	if !there || outline == "none" {
		b.t.Errorf("%s has the focus: %v, and its outline is %s", selector, there, outline)
	}
}

// press presses a key that leads to another page.
func (b *browser) press(key string) {
	b.t.Helper()
	b.follow(chromedp.KeyEvent(key))
}

// stock fills a registry with what its pages look like in use, and returns the
// path of a key.
func (b *browser) stock(r *registry) string {
	b.t.Helper()
	b.acme()
	for _, name := range []string{"ProZorro.Sale", "Державна установа «Агентство з повернення активів»"} {
		b.goTo("/new-broker")
		b.fill(map[string]string{"name": name, "title": "ДП " + name, "contact": "office@example.org"})
		b.submit()
	}
	var path string
	for _, key := range []map[string]string{
		{"broker": "ProZorro.Sale", "name": "verification", "expires": time.Now().UTC().AddDate(1, 0, 0).Format("2006-01-02T15:04:05")},
		{"broker": "acme", "name": "a very long name of a key that somebody has thought of to be entirely clear"},
		{"broker": "acme", "name": "production", "limit-write": "5/1s, 100/1m", "allow": "192.0.2.0/24\n2001:db8::/32"},
	} {
		b.goTo("/new-key")
		b.fill(key)
		b.run(chromedp.Click(chromedp.CSS(`[name=levels][value="1"]`)), chromedp.Click(chromedp.CSS(`[name=levels][value="3"]`)))
		b.submit()
		b.shown()
		b.follow(chromedp.Reload())
		path = b.path()
	}
	r.use(b.t, strings.TrimPrefix(path, "/keys/"))
	return path
}

func TestEveryPageOnEveryScreen(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.signIn(r.operator(t))
	key := b.stock(r)
	pages := map[string]string{
		"keys": "/keys", "key": key, "key-year": key + "?days=365", "key-form": "/new-key", "key-edit": key + "/edit", "rotate": key + "/rotate", "revoke": key + "/revoke",
		"brokers": "/brokers", "broker": "/broker?name=acme", "broker-form": "/edit-broker?name=acme", "audit": "/audit", "check": "/audit/check",
		"empty": "/keys?q=nothing", "missing": "/none",
	}
	background := map[bool]string{}
	for _, screen := range []struct {
		name  string
		phone bool
		dark  bool
	}{{"wide-light", false, false}, {"wide-dark", false, true}, {"phone-light", true, false}, {"phone-dark", true, true}} {
		t.Run(screen.name, func(t *testing.T) {
			if screen.phone {
				b.phone()
			}
			b.dark(screen.dark)
			for name, path := range pages {
				b.goTo(path)
				b.mustFit(name)
				b.mustBeLegible(name)
				b.screenshot(screen.name + "-" + name)
			}
			background[screen.dark] = evaluate[string](b, "getComputedStyle(document.body).backgroundColor")
		})
	}
	if background[true] == background[false] {
		t.Errorf("light and dark are both %s", background[true])
	}
	b.mustBeContent()
}

// mustFit checks that a page needs no scrolling sideways, that its ids are its
// elements' own, and that each field has a label.
func (b *browser) mustFit(name string) {
	b.t.Helper()
	wide := evaluate[[]string](b, `[document.documentElement.scrollWidth > innerWidth ? "the page: " + document.documentElement.scrollWidth : null,
		...[...document.querySelectorAll("main *, header *")].map(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".rows thead") ? e.outerHTML.slice(0, 200) : null)].filter(Boolean)`)
	if len(wide) > 0 {
		b.t.Errorf("%s is too wide: %q", name, wide)
	}
	nameless := evaluate[[]string](b, `[...document.querySelectorAll("input:not([type=hidden], [hidden]), select, textarea")].filter(e => e.labels.length === 0).map(e => e.outerHTML)
		.concat([...document.querySelectorAll("[id]")].map(e => e.id).filter((id, at, all) => all.indexOf(id) !== at))`)
	if len(nameless) > 0 {
		b.t.Errorf("%s has fields without a label, or ids twice: %q", name, nameless)
	}
}

// mustBeLegible checks that texts stand out from what is behind them as WCAG
// 2.2 asks (1.4.3, level AA).
func (b *browser) mustBeLegible(name string) {
	b.t.Helper()
	faint := evaluate[[]string](b, contrast)
	if len(faint) > 0 {
		b.t.Errorf("%s is hard to read: %q", name, faint)
	}
}

const contrast = `(() => {
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
	const over = colours => { canvas.clearRect(0, 0, 1, 1); for (const c of colours) { canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); } return [...canvas.getImageData(0, 0, 1, 1).data]; };
	const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const faint = [];
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		const e = texts.currentNode.parentElement;
		if (!texts.currentNode.textContent.trim() || !e.checkVisibility() || ["TITLE", "DESC", "OPTION"].includes(e.tagName)) continue;
		const behind = [];
		for (let at = e; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
		const style = getComputedStyle(e), ground = ["white", ...behind];
		const [a, b] = [light(over(ground)), light(over([...ground, e.closest("svg") ? style.fill : style.color]))].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5) faint.push(texts.currentNode.textContent.trim().slice(0, 40) + " " + ratio.toFixed(2));
	}
	return faint;
})()`
