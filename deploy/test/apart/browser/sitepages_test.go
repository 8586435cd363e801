package browser

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// addGarages publishes one asset for each number in a range. Each title is the same text, followed by the number.
func (s *publicSite) addGarages(t *testing.T, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		p := properties[len(properties)-1]
		p.title, p.quantity = fmt.Sprintf("Бокс %03d гаражного кооперативу", n), "20.5"
		p.custodian = properties[0].custodian // a custodian with a long name
		s.make(t, p)
	}
	s.await(t, "/api/2.5/search?q=%D0%B1%D0%BE%D0%BA%D1%81+"+fmt.Sprintf("%03d", to), func(body []byte) bool {
		return regexp.MustCompile(`"total":1[,}]`).Match(body)
	})
}

// titles returns the titles of the hits on the page, and adds them to the set in the parameter `seen`.
func (b *browser) titles(seen map[string]bool) (all []string) {
	b.t.Helper()
	all = evaluate[[]string](b, `[...document.querySelectorAll(".hits h3")].map(e => e.textContent)`)
	for _, title := range all {
		seen[title] = true
	}
	return all
}

// TestResultsLeadForwardsAndBack goes without script to the last page of a search, and back, while assets are
// added. Both on the way forwards and on the way back, each asset that existed at the beginning must be on some
// page.
func TestResultsLeadForwardsAndBack(t *testing.T) {
	s := startSite(t)
	s.addGarages(t, 1, 45)
	b := open(t, s.base)
	b.withoutScript()
	forwards, back := map[string]bool{}, map[string]bool{}
	number := func() string { return evaluate[string](b, `document.querySelector(".pages > span").textContent`) }
	b.goTo("/uk/?q=%D0%B1%D0%BE%D0%BA%D1%81&sort=-modified")
	var pages [][]string
	for n := 1; ; n++ {
		if got, want := number(), fmt.Sprintf("Сторінка %d з 3", n); got != want {
			t.Fatalf("got the number %q, want %q", got, want)
		}
		pages = append(pages, b.titles(forwards))
		if n == 3 {
			break
		}
		b.click(".pages [rel=next]")
	}
	last := b.path()
	b.click(".hits li:nth-child(2) h3 a")
	b.click(".languages a[hreflang=en]")
	b.click(".crumbs a")
	b.mustSay("Page 3 of 3", "First page")
	b.click(".languages a[hreflang=uk]")
	if got := b.path(); got != last || !slices.Equal(b.titles(back), pages[2]) {
		t.Errorf("got the page %s back from an asset, want %s", got, last)
	}
	b.click(".pages [rel=prev]")
	if got := b.titles(back); !slices.Equal(got, pages[1]) || number() != "Сторінка 2 з 3" {
		t.Errorf("got %q on %s back, want %q on page 2", got, number(), pages[1])
	}
	s.addGarages(t, 46, 48)
	b.click(".pages [rel=prev]")
	if got := b.titles(back); !slices.Equal(got, pages[0]) || number() != "Сторінка 2 з 4" {
		t.Errorf("got %q on %s back after three others came, want %q on page 2 of 4", got, number(), pages[0])
	}
	b.click(".pages [rel=prev]")
	b.mustSay("Сторінка 1 з 3", "Бокс 048")
	if len(forwards) != 46 || len(back) < 46 { // 45 added garages, and one that the site always has
		t.Errorf("got %d assets forwards and %d back, want 46", len(forwards), len(back))
	}
	b.mustBeContent()
}

// TestFiltersWorkByKeyboard uses a phone's screen and only the keyboard. It opens the filters, chooses areas of at
// least 0.002 hectares, goes to the next page, back, and to the statistics, and removes a filter there. The pages
// must show the chosen filters.
func TestFiltersWorkByKeyboard(t *testing.T) {
	s := startSite(t)
	s.addGarages(t, 1, 21)
	b := open(t, s.base)
	b.phone()
	b.goTo("/uk/")
	b.tabTo(".to-filters")
	b.run(chromedp.KeyEvent("\r"))
	b.wait(`document.getElementById("filters").checkVisibility()`)
	b.tabTo("details:has([name=quantity_from]) > summary")
	b.run(chromedp.KeyEvent("\r"))
	b.tabTo("[name=quantity_from]")
	b.run(chromedp.KeyEvent("0.002"))
	b.tabTo("[name=quantity_unit]")
	b.run(chromedp.KeyEvent("г"))
	b.tabTo("aside > button[type=submit]")
	b.press("\r")
	b.mustSay("Кількість від 0.002", "Одиниця га", "Фільтри (2)", "Знайдено 25\u00a0активів")
	b.tabTo(".pages [rel=next]")
	b.press("\r")
	b.tabTo(".pages [rel=prev]")
	b.press("\r")
	b.mustSay("Сторінка 1 з 2")
	b.tabTo(`.also a[href^="/uk/statistics"]`)
	b.press("\r")
	b.mustSay("Знайдено активів", "За областю")
	b.tabTo(".chips a")
	b.press("\r")
	if left := evaluate[string](b, `document.querySelector(".chips ul").textContent.trim()`); left != "Прибрати фільтр: Одиниця га ×" {
		t.Errorf("got the filters %q after one was removed, want the unit", left)
	}
	b.mustBeContent()
}

// TestEachStateOfTheSearchIsAccessible opens pages on which a reader has made choices, on both screens and in both
// colours. Each page must fit the screen, be legible and be accessible.
func TestEachStateOfTheSearchIsAccessible(t *testing.T) {
	s := startSite(t)
	s.addGarages(t, 1, 45)
	b := open(t, s.base)
	asked := b.watch()
	states := []struct{ name, path, click string }{
		{"filters-open", "/uk/?status=pending&region=%D0%BB%D1%8C%D0%B2%D1%96%D0%B2%D1%81%D1%8C%D0%BA%D0%B0#filters", ""},
		{"filter-whole", "/en/?more=locality", ""},
		{"quantity", "/uk/?quantity_from=1&quantity_to=50&quantity_unit=ha&sort=-area", ""},
		{"rows-50", "/en/?limit=50", ""}, {"rows-100", "/uk/?limit=100", ""},
		{"page-2", "/uk/?q=%D0%B1%D0%BE%D0%BA%D1%81", ".pages [rel=next]"},
		{"page-3", "/en/?sort=modified&status=pending", ".pages [rel=next]"},
		{"none-by-filters", "/uk/?quantity_from=99999999&quantity_unit=ha", ""},
		{"none-by-words", "/en/?q=xyzzy+garage&status=active", ""},
		{"faulty-filters", "/en/?quantity_unit=acre&published_from=x&region=", ""},
		{"statistics-of-a-search", "/uk/statistics?status=pending&q=%D0%B1%D0%BE%D0%BA%D1%81", ""},
		{"statistics-of-none", "/en/statistics?q=xyzzy", ""},
	}
	for _, screen := range screens {
		screen.show(b)
		for _, state := range states {
			name := screen.name + "-site-" + state.name
			b.goTo(state.path)
			if state.click != "" {
				b.click(state.click)
			}
			if !strings.HasPrefix(state.name, "rows-") { // readers choose so many rows themselves, so this page may be long
				b.mustBeReached(name)
			}
			evaluate[int](b, `document.querySelectorAll("details").forEach(d => d.open = true) ?? 0`)
			b.mustFit(name)
			b.mustBeLegible(name)
			b.mustBeAccessible(name)
			b.screenshot(name)
		}
	}
	b.mustBeContent()
	asked.mustBeOnly(t, s.base)
}

// mustBeReached checks that neither the open filters nor the rest of a page needs more than 6,000 pixels of scrolling.
func (b *browser) mustBeReached(name string) {
	b.t.Helper()
	far := evaluate[float64](b, `(() => {
		const filters = document.querySelector(".filters")?.offsetHeight ?? 0;
		return Math.max(filters, document.documentElement.scrollHeight - innerHeight - filters);
	})()`)
	if far > 6000 {
		b.t.Errorf("%s: got %v pixels to scroll, want at most 6,000", name, far)
	}
}
