package site_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestThePageShowsPictures has a readable illustration, and further documents that differ from it in one property
// each. The page must show only pictures of illustrations that can be read.
func TestThePageShowsPictures(t *testing.T) {
	file := func(n int) string { return fmt.Sprintf("%032x", n) }
	document := func(n int, more ...string) map[string]any {
		d := map[string]any{"id": fmt.Sprint(n), "documentType": "illustration", "title": fmt.Sprintf("Фасад %d \"схід\"", n),
			"format": "image/jpeg", "url": "https://registry.example/get/" + file(n), "sha256": strings.Repeat("b", 64),
			"dateModified": "2026-11-22T13:00:00+00:00"}
		for i := 0; i < len(more); i += 2 {
			d[more[i]] = more[i+1]
			if more[i+1] == "" {
				delete(d, more[i])
			}
		}
		return d
	}
	r := newRegistry(changed(t, func(asset map[string]any) {
		asset["documents"] = []any{
			document(1), document(2), document(3, "documentType", "notice"), document(4, "format", "application/pdf"),
			document(5, "sha256", ""), document(6, "url", "https://registry.example/get/x"),
			document(7, "id", "8"), document(8), document(9), document(10, "title", "", "title_en", "Facade"),
			document(11),
		}
	}))
	r.pictures = map[string]int{}
	for n := range 12 {
		r.pictures["/get/"+file(n)+"/1200"] = 200
	}
	r.pictures["/get/"+file(2)+"/1200"] = 404 // no picture could be made of the file
	r.pictures["/get/"+file(9)+"/1200"] = 410
	r.isPage = "/get/" + file(11) + "/1200"
	s := newSite(t, r, newFound(), logKey)
	_, body := get(t, s, "/en/assets/"+id)
	got := regexp.MustCompile(`<img [^>]*>`).FindAllString(body, -1)
	want := []string{
		`<img src="/get/` + file(1) + `/1200" width="1200" height="675" alt="Фасад 1 &#34;схід&#34;" lang="uk">`,
		`<img src="/get/` + file(8) + `/320" width="320" height="320" loading="lazy" alt="Фасад 8 &#34;схід&#34;" lang="uk">`,
		`<img src="/get/` + file(10) + `/320" width="320" height="320" loading="lazy" alt="Facade">`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got the pictures\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	link := regexp.MustCompile(`<meta property="og:image" content="https?://[^/"]+/get/` + file(1) + `/1200">`)
	expect.ErrorIf(t, !link.MatchString(body), "got no absolute address of the first picture for those that get a link")
	clear(r.pictures) // like a mirror without files
	if _, body := get(t, s, "/en/assets/"+id); strings.Contains(body, "<img") || strings.Contains(body, "og:image") {
		t.Error("got a picture that is not there")
	}
}

// TestAPageAsksForFewPictures has an asset with 100 illustrations, of which the registry knows the first 12. The page
// must show all with their number, those behind the twelfth folded, and ask only for the first 12, before it reads the changes.
func TestAPageAsksForFewPictures(t *testing.T) {
	r := newRegistry(changed(t, func(asset map[string]any) {
		var all []any
		for n := range 100 {
			all = append(all, map[string]any{"id": fmt.Sprint(n), "documentType": "illustration", "title": "x",
				"format": "image/png", "url": fmt.Sprintf("https://registry.example/get/%032x", n), "sha256": "b"})
		}
		asset["documents"] = all
	}))
	r.pictures = map[string]int{}
	for n := range 12 {
		r.pictures[fmt.Sprintf("/get/%032x/1200", n)] = 200
	}
	_, body := get(t, newSite(t, r, newFound(), logKey), "/uk/assets/"+id)
	expect.Equal(t, strings.Count(body, "<img"), 100, "pictures")
	mustHave(t, body, "Зображення: 100<", "<summary>Ще 88</summary>", "/pictures.js")
	if first := slices.Index(r.asked, "/api/2.5/assets/"+id+"/proof"); first != 14 {
		t.Errorf("got %q, want a proof after the record, 12 pictures and the archive", r.asked)
	}
	clear(r.pictures)
	_, body = get(t, newSite(t, r, newFound(), logKey), "/uk/assets/"+id)
	expect.Equal(t, strings.Count(body, "<img"), 0, "pictures without files")
}

// TestThePageLeadsToTheArchive has an asset with a file, and answers about its archive. The page must have its number of
// files and its size, or say why there is none. Without a file of the registry, the page must not ask.
func TestThePageLeadsToTheArchive(t *testing.T) {
	r := newRegistry(changed(t, func(asset map[string]any) {
		asset["documents"] = []any{map[string]any{"id": "1", "title": "x", "url": fmt.Sprintf("https://r.example/get/%032x", 1),
			"sha256": "b"}}
	}))
	path := "/get/" + id + "/documents.zip"
	link := `<a href="` + path + `" download>`
	for status, want := range map[int]string{
		200: link + "Завантажити всі файли (ZIP)</a> файлів: 12, 34,6\u00a0МБ", 404: "", 413: "мають понад 1 ГіБ",
		429: "зараз недоступний", 503: "зараз недоступний",
	} {
		r.pictures = map[string]int{path: status}
		_, body := get(t, newSite(t, r, newFound(), logKey), "/uk/assets/"+id)
		if want != "" {
			mustHave(t, body, want)
		}
		expect.Equal(t, strings.Contains(body, link), status == 200, "a link for %d", status)
		expect.Equal(t, strings.Contains(strings.ToLower(body), "архів"), status != 404 && status != 200, "a reason for %d", status)
	}
	r = newRegistry(whole)
	r.pictures = map[string]int{path: 200}
	if _, body := get(t, newSite(t, r, newFound(), logKey), "/en/assets/"+id); strings.Contains(body, "documents.zip") {
		t.Error("got an archive of a record without files")
	}
}

// TestResultsHavePictures has a page of results in which one asset has an illustration. Only its hit must have a
// picture, and the site must not ask the registry for it.
func TestResultsHavePictures(t *testing.T) {
	f := newFound()
	with := f.result.Hits[0]
	with.Picture = fmt.Sprintf("%032x", 7)
	f.result.Hits = append(f.result.Hits, with)
	r := newRegistry(whole)
	s := newSite(t, r, f, logKey)
	_, body := get(t, s, "/en/")
	want := []string{`<img src="/get/` + with.Picture + `/320" width="320" height="320" loading="lazy" alt="">`}
	if got := regexp.MustCompile(`<img [^>]*>`).FindAllString(body, -1); !slices.Equal(got, want) {
		t.Errorf("got the pictures %q, want %q", got, want)
	}
	if !strings.Contains(body, "/pictures.js") {
		t.Error("got no script that takes away the marks of missing pictures")
	}
	if !regexp.MustCompile(`<a [^>]*><img [^>]*>[^<]`).MatchString(body) {
		t.Errorf("got\n%s\nwant the picture in the link of the title", body)
	}
	if _, feed := get(t, s, "/en/feed.atom"); strings.Contains(feed, with.Picture) {
		t.Errorf("got the picture in the feed:\n%s", feed)
	}
	expect.Equal(t, len(r.visitors), 0, "requests to the registry")
}
