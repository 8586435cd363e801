package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"asset-registry/gateway"
	"asset-registry/searchsvc"
	"asset-registry/shared/testing/expect"
)

// forger changes answers between the registry and its readers, as an attacker on the network could. By default it
// changes nothing.
type forger struct {
	mu    sync.Mutex
	paths []string            // paths whose answers the forger changes
	forge func([]byte) []byte // nil as its result: the answer is 503
}

func (f *forger) set(forge func([]byte) []byte, paths ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paths, f.forge = paths, forge
}

// The method `between` returns a handler that passes requests to the handler `next`, and forges the answers.
func (f *forger) between(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		paths, forge := f.paths, f.forge
		f.mu.Unlock()
		if !slices.Contains(paths, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding")
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		body := forge(answer.Body.Bytes())
		if body == nil && answer.Code != http.StatusNotModified {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body) // fails if the browser has closed the connection
	})
}

// publicSite is a registry with assets, and a search service that serves the site.
type publicSite struct {
	*registry
	base   string
	asset  string // id of the asset that `fill` creates last
	forger *forger
}

// startSite starts a registry, fills it, and starts a search service with the site.
func startSite(t *testing.T) *publicSite {
	t.Helper()
	s := &publicSite{registry: startRegistry(t), forger: &forger{}}
	s.asset = s.fill(t)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	registry := httptest.NewServer(s.forger.between(s.gateway)) // the registry alone, which serves no pages
	t.Cleanup(registry.Close)
	searcher, err := searchsvc.New(t.Context(), searchsvc.Config{
		Of: registry.URL, Dir: filepath.Join(t.TempDir(), "index"), Log: log,
		LogKeys: []string{s.logKey}, Links: searchsvc.Links{
			Map: "https://maps.example/?at={latitude},{longitude}", Search: "https://maps.example/?q={address}",
			Sale: "https://sales.example/{type}/{identifier}",
		},
	})
	expect.OK(t, err)
	closeAtEnd(t, searcher.Close)
	edge, err := gateway.New(t.Context(), gateway.Config{Auth: s.toAuth, Assets: s.assets, Files: s.files, Search: searcher.Handler(),
		Secrets: secrets, Log: log})
	expect.OK(t, err)
	closeAtEnd(t, edge.Close)
	public := httptest.NewServer(s.forger.between(edge.Handler()))
	t.Cleanup(public.Close)
	s.base = public.URL
	s.await(t, "/api/2.5/search", func(body []byte) bool {
		return bytes.Contains(body, fmt.Appendf(nil, `"total":%d`, len(properties)))
	})
	s.awaitLog(t)
	return s
}

// awaitLog waits until the log has the newest change of the asset.
func (s *publicSite) awaitLog(t *testing.T) {
	t.Helper()
	var record struct{ Data struct{ DateModified string } }
	expect.OK(t, json.Unmarshal(s.send(t, "GET", "/assets/"+s.asset, "broker", ""), &record))
	s.await(t, "/api/2.5/assets/"+s.asset+"/proof", func(body []byte) bool {
		return bytes.Contains(body, []byte(`"dateModified":"`+record.Data.DateModified+`"`))
	})
}

// await repeats a request until the function isRight accepts the body of the answer.
func (s *publicSite) await(t *testing.T, path string, isRight func(body []byte) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(s.base + path)
		expect.OK(t, err)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK && isRight(body) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: got %d %s, %v, want another answer", path, resp.StatusCode, body, err)
		}
	}
}

// mustBeSmall checks that a page and all files that it loads have at most 60,000 bytes together, without
// compression.
func (b *browser) mustBeSmall(name string) {
	b.t.Helper()
	bytes := evaluate[int](b, `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
		.reduce((sum, e) => sum + (e.name.includes("/api/") ? 0 : e.decodedBodySize), 0)`)
	if bytes > 60_000 {
		b.t.Errorf("%s: got %d bytes, want at most 60,000", name, bytes)
	}
}

func TestTheSiteFitsEveryScreen(t *testing.T) {
	s := startSite(t)
	b := open(t, s.base)
	asked := b.watch()
	pages := []struct{ name, path string }{
		{"search", "/uk/"}, {"search-en", "/en/"},
		{"found", "/uk/?q=%D0%B1%D1%83%D0%B4%D1%96%D0%B2%D0%BB%D1%8F&status=active"},
		{"nothing", "/en/?q=xyzzy"}, {"faulty", "/uk/?status=draft"},
		{"asset", "/uk/assets/" + s.asset}, {"asset-en", "/en/assets/" + s.asset},
		{"changes", "/uk/assets/" + s.asset + "/changes?from=4"},
		{"statistics", "/uk/statistics"}, {"about", "/en/about"}, {"about-uk", "/uk/about"}, {"missing", "/uk/none"},
	}
	background := map[bool]string{}
	for _, screen := range screens {
		t.Run(screen.name, func(t *testing.T) {
			screen.show(b)
			for _, page := range pages {
				b.goTo(page.path)
				b.mustFit(page.name)
				b.mustBeLegible(page.name)
				b.mustBeSmall(page.name)
				// Two of the four screens are enough: together they have both colours and both widths.
				if screen.phone == screen.dark {
					b.mustBeAccessible(page.name)
				}
				b.screenshot(screen.name + "-site-" + page.name)
			}
			background[screen.dark] = evaluate[string](b, "getComputedStyle(document.body).backgroundColor")
		})
	}
	if background[true] == background[false] {
		t.Errorf("got the background %s in light and dark mode, want two colours", background[true])
	}
	b.mustBeContent() // the browser reports each violation of the content policy as a message
	asked.mustBeOnly(t, s.base)
}

// check presses the button that checks a record, and returns the result that the page shows.
func (b *browser) check() string {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.CSS("#check-button")))
	b.wait(`!document.getElementById("check-button").disabled`)
	return evaluate[string](b, `document.querySelector("#check-result [data-result]:not([hidden])").dataset.result`)
}

func TestARecordIsCheckedInTheBrowser(t *testing.T) {
	s := startSite(t)
	b := open(t, s.base)
	record, page := "/api/2.5/assets/"+s.asset, "/uk/assets/"+s.asset
	proof := record + "/proof"
	swap := func(old, new string) func([]byte) []byte {
		return func(body []byte) []byte { return bytes.Replace(body, []byte(old), []byte(new), 1) }
	}
	member := func(name string, forged any) func([]byte) []byte {
		return func(body []byte) []byte {
			var answer struct {
				Data map[string]json.RawMessage `json:"data"`
			}
			if err := json.Unmarshal(body, &answer); err != nil || answer.Data[name] == nil {
				return body // the answer is not a proof, but says that this revision has none
			}
			value, err := json.Marshal(forged)
			expect.Try(t, err)
			return bytes.Replace(body, answer.Data[name], value, 1)
		}
	}
	for _, test := range []struct {
		name         string
		paths        []string
		forge        func([]byte) []byte
		result, step string // step is the step of the check that fails
	}{
		{"an honest record", nil, nil, "ok", ""},
		{"a forged title", []string{record}, swap("Нежитлова будівля", "Житлова будівля"), "failed", "page"},
		{"a forged quantity", []string{record}, swap("1284.6", "128.6"), "failed", "page"},
		{"a forged address of a document", []string{record}, swap("docs.example.org", "docs.example.com"), "failed", "page"},
		{"a forged fact at the top", []string{page}, swap(`data-copy="items.0.quantity" data-value="1284.6"`,
			`data-copy="items.0.quantity" data-value="128.6"`), "failed", "page"},
		{"a fact of no value", []string{page}, swap(`data-copy="items.0.quantity"`, `data-copy="items.0.mood"`), "failed", "page"},
		{"a field that is left out", []string{record}, swap(`,"assetType":"bounce"`, ""), "failed", "page"},
		{"a field that is added", []string{record}, swap(`"assetType"`, `"mood":"good","assetType"`), "failed", "page"},
		{"a proof that is forged as the record is", []string{record, proof}, swap("1284.6", "128.6"), "failed", "asset"},
		{"another number of the same value", []string{proof}, swap("1284.6", "1284.60"), "failed", "asset"},
		{"a salt", []string{proof}, member("salt", strings.Repeat("0", 64)), "failed", "asset"},
		{"an index", []string{proof}, member("index", 0), "failed", "included"},
		{"a path", []string{proof}, member("path", []string{}), "failed", "included"},
		{"a leaf", []string{proof}, swap(`"revision":`, `"revision":1`), "failed", "included"},
		{"the size of a checkpoint", []string{proof}, swap(`1a2b3c4d\n`, `1a2b3c4d\n1`), "failed", "signature"},
		{"an answer that is no proof", []string{proof}, func([]byte) []byte { return []byte(`{"data":{}}`) }, "failed", "signature"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.forger.set(test.forge, test.paths...)
			defer s.forger.set(nil)
			b.goTo(page)
			result := b.check()
			step := evaluate[string](b, `document.querySelector("#check-steps .no")?.dataset.step ?? ""`)
			if result != test.result || step != test.step {
				t.Errorf("got %q at the step %q, want %q at %q: %s", result, step, test.result, test.step,
					evaluate[string](b, `document.getElementById("check-run").dataset.why ?? ""`))
			}
			if test.step == "" || test.step == "page" {
				b.mustBeAccessible(test.name)
			}
		})
	}
	b.goTo("/en/assets/" + s.asset)
	script := evaluate[string](b, `(() => {
		const run = document.getElementById("check-run"), script = run.dataset.script;
		run.dataset.script = "/site/none.js";
		return script;
	})()`)
	expect.Equal(t, b.check(), "unreachable", "without the script")
	b.complaints() // discard the message that the script could not be loaded
	evaluate[string](b, `document.getElementById("check-run").dataset.script = "`+script+`"`)
	expect.Equal(t, b.check(), "ok", "once the script comes")
	b.run(chromedp.Click(chromedp.CSS("#check-run summary")))
	other := "registry.example/log+952bc5e7+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
	b.run(chromedp.SetValue(chromedp.CSS("#check-key"), other))
	expect.Equal(t, b.check(), "failed", "with the key of another log")
	b.goTo("/en/assets/" + s.asset)
	s.send(t, "PATCH", "/assets/"+s.asset, "concierge", `{"data":{"status":"complete"}}`)
	s.awaitLog(t)
	expect.Equal(t, b.check(), "newer", "for a record that has changed meanwhile")
	past := page + "/changes/2" // the publication
	b.goTo(past)
	expect.Equal(t, b.check(), "ok", "for a past record")
	b.mustBeAccessible("a past record")
	past = "/en/assets/" + s.asset + "/changes/2" // the browser has not kept this page
	s.forger.set(swap(`data-path="title_en">Non-residential`, `data-path="title_en">Residential`), past)
	b.goTo(past)
	expect.Equal(t, b.check(), "failed", "for a forged past record")
	s.forger.set(nil)
	b.mustBeContent()
}

// TestTheSiteSuggestsWhileSomebodyTypes types the beginning of a title, and checks the browser's list of
// suggestions.
func TestTheSiteSuggestsWhileSomebodyTypes(t *testing.T) {
	s := startSite(t)
	b := open(t, s.base)
	b.goTo("/uk/")
	b.tabTo("#q")
	b.run(chromedp.KeyEvent("гараж"))
	b.wait(`[...document.getElementById("q").list.options].some(o => o.value === "гаражний")`)
	b.mustBeAccessible("the search with suggestions")
	b.press("\r")
	b.mustSay("Знайдено 1\u00a0актив", "Гаражний бокс № 7")
	expect.Equal(t, evaluate[string](b, `document.querySelector(".hits mark").textContent`), "Гаражний", "the mark")
	b.mustBeAccessible("a search with marks")
	b.mustBeContent()
}

func TestTheSiteNeedsNoScript(t *testing.T) {
	s := startSite(t)
	b := open(t, s.base)
	b.withoutScript()
	b.phone()
	b.goTo("/uk/")
	b.fill(map[string]string{"q": "кав'ярня"})
	if shown := evaluate[bool](b, `document.getElementById("filters").checkVisibility()`); shown {
		t.Error("got the filters before somebody opens them, want the results first on a phone")
	}
	b.run(chromedp.Click(chromedp.CSS(".to-filters")))
	b.run(chromedp.Click(chromedp.CSS(`[name=status][value=verification]`)))
	b.click(".filters > button")
	b.mustSay("Знайдено 1\u00a0актив", "Приміщення кав’ярні", "Застосовані фільтри", "Фільтри (1)")
	b.click(".hits a")
	b.mustSay("Перевірка запису", "Перевірити командою", "Запис оприлюднено", "86\u00a0м²")
	if shown := evaluate[bool](b, `!document.getElementById("check-run").hidden`); shown {
		t.Error("got the button that checks a record, want none without script")
	}
	b.screenshot("site-without-script")
	b.click(".languages a[hreflang=en]")
	b.mustSay("Check this record", "Under verification")
	b.click(".crumbs a")
	b.mustSay("Found 1\u00a0asset", "Filters in effect")
	b.click(`.sections a[href="/en/statistics"]`)
	b.mustSay("By region", "м. Київ")
	b.click(`.bars a[href*="status=active"]`)
	b.mustSay("Found 1\u00a0asset", "Non-residential building")
	b.mustBeContent()
}

// TestTheFirstScreenOfAPhone checks that the most important facts are visible without scrolling. It then follows
// the list of sections by keyboard.
func TestTheFirstScreenOfAPhone(t *testing.T) {
	s := startSite(t)
	b := open(t, s.base)
	b.phone()
	for _, lang := range []string{"uk", "en"} {
		b.goTo("/" + lang + "/assets/" + s.asset)
		shown := evaluate[string](b, `[...document.querySelectorAll(".facts > div, main .state")]
			.filter(e => e.getBoundingClientRect().bottom <= innerHeight).map(e => e.innerText).join("|")`)
		for _, want := range []string{"Адміністративні будівлі", "284", "вул. Шевченка, 14", "Фонду державного майна", "+380440000000"} {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: got %q on the first screen, want %s on it", lang, shown, want)
			}
		}
		if call := evaluate[string](b, `document.querySelector(".facts a[href^=tel]").href`); call != "tel:+380440000000" {
			t.Errorf("%s: got the link %s, want one that calls", lang, call)
		}
	}
	b.tabTo(`.contents a[href="#check"]`)
	b.run(chromedp.KeyEvent("\r"))
	b.wait(`location.hash === "#check"`)
	b.run(chromedp.KeyEvent("\t"))
	b.mustFocus("#check-button") // the first element in the section that can have the focus
	b.mustBeContent()
}

// TestAnAssetIsAccessibleInEachState opens the pages of assets in all states, and unfolds all details. Each page
// must be accessible and fit on the screen.
func TestAnAssetIsAccessibleInEachState(t *testing.T) {
	s := startSite(t)
	b := open(t, s.base)
	b.goTo("/uk/")
	links := evaluate[[]string](b, `[...document.querySelectorAll(".hits a")].map(a => a.getAttribute("href"))`)
	seen := map[string]bool{}
	for i, link := range links {
		b.goTo(link + "?back=q%3Da")
		evaluate[int](b, `document.querySelectorAll("details").forEach(d => d.open = true) ?? 0`)
		state := evaluate[string](b, `document.querySelector("main .state").className`)
		b.mustFit(state)
		b.mustBeAccessible(state)
		seen[state] = true
		if i == 0 {
			b.run(chromedp.Click(chromedp.CSS("#copy-link")))
			b.wait(`document.getElementById("copied").textContent !== ""`)
			b.mustBeAccessible("a copied link")
		}
	}
	if len(seen) != 4 {
		t.Errorf("got the states %v, want four", seen)
	}
	b.mustBeContent()
}

func TestTheSiteWorksByKeyboard(t *testing.T) {
	s := startSite(t)
	b := open(t, s.base)
	b.goTo("/uk/")
	b.tabTo(".skip")
	b.run(chromedp.KeyEvent("\r"))
	b.tabTo("#q")
	b.run(chromedp.KeyEvent("будівлі"))
	b.press("\r")
	b.mustSay("Знайдено")
	b.tabTo(`[name=status][value=active]`)
	b.run(chromedp.KeyEvent(" "))
	b.tabTo("aside button[type=submit]")
	b.press("\r")
	b.mustSay("Застосовані фільтри")
	b.tabTo(".hits a")
	b.press("\r")
	b.tabTo("#copy-link")
	b.tabTo(`.facts a[href^="https://maps.example/"]`)
	b.tabTo(`.facts a[href^="https://sales.example/lot/"]`)
	b.tabTo(`.facts a[href^="tel:"]`)
	b.tabTo("#check-button")
	b.run(chromedp.KeyEvent("\r"))
	b.wait(`document.querySelector("[data-result=ok]:not([hidden])")`)
	// The button keeps the focus: a screen reader announces the result, so the focus need not move to it.
	b.mustFocus("#check-button")
	b.screenshot("site-keyboard")
	b.mustBeContent()
}
