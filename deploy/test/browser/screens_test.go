package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

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
		{"broker": "ProZorro.Sale", "name": "verification",
			"expires": time.Now().UTC().AddDate(1, 0, 0).Format("2006-01-02T15:04:05")},
		{"broker": "acme", "name": "a very long name of a key that somebody has thought of to be entirely clear"},
		{"broker": "acme", "name": "production", "limit-write": "5/1s, 100/1m", "allow": "192.0.2.0/24\n2001:db8::/32"},
	} {
		b.goTo("/new-key")
		b.fill(key)
		b.run(chromedp.Click(chromedp.CSS(`[name=levels][value="1"]`)),
			chromedp.Click(chromedp.CSS(`[name=levels][value="3"]`)))
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
		"keys": "/keys", "key": key, "key-year": key + "?days=365", "key-form": "/new-key", "key-edit": key + "/edit",
		"rotate": key + "/rotate", "revoke": key + "/revoke",
		"brokers": "/brokers", "broker": "/broker?name=acme", "broker-form": "/edit-broker?name=acme",
		"audit": "/audit", "check": "/audit/check",
		"empty": "/keys?q=nothing", "missing": "/none",
	}
	background := map[bool]string{}
	for _, screen := range []struct {
		name  string
		phone bool
		dark  bool
	}{{"wide-light", false, false}, {"wide-dark", false, true}, {"phone-light", true, false},
		{"phone-dark", true, true}} {
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
