package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"asset-registry/shared/testing/expect"
)

// stock creates brokers, keys and usage, so that pages look as in real use. It returns the path of one key's page.
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
		{"broker": "ProZorro.Sale", "name": "verification",
			"expires": time.Now().UTC().AddDate(1, 0, 0).Format("2006-01-02T15:04:05")},
		{"broker": "acme", "name": "a very long name of a key that somebody has thought of to be entirely clear"},
		{"broker": "acme", "name": "production", "limit-write": "5/1s, 100/1m", "allow": "192.0.2.0/24\n2001:db8::/32"},
	} {
		b.goTo("/new-key")
		b.fill(key)
		b.untick("2", "4")
		b.submit()
		b.shown()
		b.follow(chromedp.Reload())
		path = b.path()
	}
	r.use(b.t, strings.TrimPrefix(path, "/keys/"))
	return path
}

func TestEveryPageFitsEveryScreen(t *testing.T) {
	r := startRegistry(t)
	b := open(t, r.console)
	b.signIn(r.operator(t))
	key, id := b.stock(r), r.publish(t)
	gone := b.revoked(r)
	hook := r.webhook(t, "broker", deaf(t)+"/a/long/path/of/a/receiver/that/somebody/has/thought/of?with=a&long=query")
	r.webhook(t, "administrator", "https://registry.example/hook")
	r.awaitError(t, hook)
	pages := []struct{ name, path string }{
		{"start", "/"}, {"find", "/find?text=acme"}, {"sessions", "/sessions"}, {"broker-remove", "/remove-broker?name=acme"},
		{"keys", "/keys"}, {"key", key}, {"key-year", key + "?days=365"}, {"key-form", "/new-key"},
		{"key-edit", key + "/edit"}, {"rotate", key + "/rotate"}, {"revoke", key + "/revoke"},
		{"key-revoked", gone}, {"keys-all", "/keys?state=any&sort=name"}, {"key-form-broker", "/new-key?broker=acme"},
		{"brokers", "/brokers"}, {"broker", "/broker?name=acme"}, {"broker-form", "/edit-broker?name=acme"},
		{"broker-unused", "/broker?name=ProZorro.Sale"}, {"audit-search", "/audit?broker=acme&action=key.create&days=7"},
		{"audit", "/audit"}, {"check", "/audit/check"}, {"empty", "/keys?q=nothing"}, {"missing", "/none"},
		{"log", "/log"}, {"asset", "/asset?id=" + id},
		{"webhooks", "/webhooks"}, {"webhook", "/webhooks/" + hook}, {"webhook-remove", "/webhooks/" + hook + "/remove"},
	}
	background := map[bool]string{}
	for _, screen := range []struct {
		name  string
		phone bool
		dark  bool
		axe   bool // whether to run axe-core, which takes a second; true once for each layout, colour and language
		lang  string
	}{{"wide-light", false, false, true, "en"}, {"wide-dark", false, true, false, "en"},
		{"phone-light", true, false, true, "uk"}, {"phone-dark", true, true, true, "en"}} {
		t.Run(screen.name, func(t *testing.T) {
			if screen.phone {
				b.phone()
			}
			b.dark(screen.dark)
			command(b, network.SetExtraHTTPHeaders,
				network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": screen.lang}})
			for _, page := range pages {
				b.goTo(page.path)
				b.mustFit(page.name)
				b.mustBeLegible(page.name)
				if screen.axe {
					b.mustBeAccessible(page.name)
				}
				b.screenshot(screen.name + "-" + page.name)
			}
			expect.Equal(t, evaluate[string](b, "document.documentElement.lang"), screen.lang, "the language")
			if screen.lang == "en" {
				b.newKeys(screen.name)
			}
			if screen.phone {
				b.goTo("/keys")
				b.mustBeShort()
			}
			background[screen.dark] = evaluate[string](b, "getComputedStyle(document.body).backgroundColor")
		})
	}
	if background[true] == background[false] {
		t.Errorf("got the background %s in light and dark mode, want two colours", background[true])
	}
	b.mustBeContent()
}

// revoked creates a key of the broker acme, revokes it, and returns the path of its page.
func (b *browser) revoked(r *registry) string {
	b.t.Helper()
	b.goTo("/new-key?broker=acme")
	b.fill(map[string]string{"name": "retired"})
	b.submit()
	b.shown()
	b.follow(chromedp.Reload())
	path := b.path()
	b.goTo(path + "/revoke")
	b.submit()
	b.mustSay("The key is revoked.")
	return path
}

// newKeys checks two pages that answer the form for a new key: the page with problems, and the page with the
// secret.
func (b *browser) newKeys(screen string) {
	b.t.Helper()
	b.goTo("/new-key")
	b.fill(map[string]string{"limit-read": "fast", "allow": "nowhere"})
	b.submit()
	b.mustSay("Nothing was saved yet", "Name: This field is required.", "fast", "nowhere")
	for _, name := range []string{"key-form-refused", "secret"} {
		b.mustFit(name)
		b.mustBeLegible(name)
		b.mustBeAccessible(name)
		b.screenshot(screen + "-" + name)
		if name == "secret" {
			break
		}
		b.fill(map[string]string{"broker": "acme", "name": "of a " + screen, "limit-read": "5/1s", "allow": "192.0.2.0/24"})
		b.submit()
		b.shown()
	}
}

// mustBeShort checks that a key takes at most 107 pixels of height in a narrow list. If the list showed each key as
// a table of labels, a key would be twice as high.
func (b *browser) mustBeShort() {
	b.t.Helper()
	for _, height := range evaluate[[]float64](b, `[...document.querySelectorAll(".rows tbody tr")]
		.filter(row => row.querySelector("th").innerText.length < 40).map(row => row.offsetHeight)`) {
		if height > 107 {
			b.t.Errorf("got a key of %v pixels in the list, want at most 107", height)
		}
	}
}

// mustFit checks that a page needs no horizontal scrolling, that its ids are unique, and
// that each field has a label.
func (b *browser) mustFit(name string) {
	b.t.Helper()
	wide := evaluate[[]string](b, `[
		document.documentElement.scrollWidth > innerWidth ? "the page: " + document.documentElement.scrollWidth : null,
		...[...document.querySelectorAll("main *, header *")].map(
			e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".rows thead")
				? e.outerHTML.slice(0, 200) : null),
	].filter(Boolean)`)
	if len(wide) > 0 {
		b.t.Errorf("%s: got elements beyond the screen, want none: %q", name, wide)
	}
	nameless := evaluate[[]string](b, `[
		...[...document.querySelectorAll("input:not([type=hidden], [hidden]), select, textarea")]
			.filter(e => e.labels.length === 0).map(e => e.outerHTML),
		...[...document.querySelectorAll("[id]")].map(e => e.id).filter((id, at, all) => all.indexOf(id) !== at),
	]`)
	if len(nameless) > 0 {
		b.t.Errorf("%s: got fields without a label or duplicate ids, want none: %q", name, nameless)
	}
}

// mustBeLegible checks that every text has enough contrast (WCAG 2.2, 1.4.3, level AA).
func (b *browser) mustBeLegible(name string) {
	b.t.Helper()
	faint := evaluate[[]string](b, contrast)
	if len(faint) > 0 {
		b.t.Errorf("%s: got texts with a contrast below 4.5, want none: %q", name, faint)
	}
}

// contrast is a script that returns each text whose contrast with its background is below 4.5.
const contrast = `(() => {
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
	const over = colours => {
		canvas.clearRect(0, 0, 1, 1);
		for (const c of colours) { canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); }
		return [...canvas.getImageData(0, 0, 1, 1).data];
	};
	const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
	const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
	const faint = [];
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		const e = texts.currentNode.parentElement;
		const text = texts.currentNode.textContent.trim();
		if (!text || !e.checkVisibility() || ["TITLE", "DESC", "OPTION"].includes(e.tagName)) continue;
		const ground = [];
		for (let at = e; at; at = at.parentElement) ground.unshift(getComputedStyle(at).backgroundColor);
		ground.unshift("white");
		const style = getComputedStyle(e), colour = e.closest("svg") ? style.fill : style.color;
		const [a, b] = [light(over(ground)), light(over([...ground, colour]))].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5) faint.push(text.slice(0, 40) + " " + ratio.toFixed(2));
	}
	return faint;
})()`
