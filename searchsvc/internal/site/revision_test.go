package site_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestARecordAsItWas requests the record after each of its changes. Only a change with a public content has a page.
func TestARecordAsItWas(t *testing.T) {
	const kept, removed = "77777777777777777777777777777777", "88888888888888888888888888888888"
	document := func(file string) map[string]any {
		return map[string]any{"id": file, "title": "Файл " + file[:1], "url": "https://registry.example/get/" + file,
			"sha256": strings.Repeat("0", 64), "documentType": "notice", "dateModified": "2026-11-22T13:00:00+02:00"}
	}
	second := changed(t, func(a map[string]any) {
		a["title"], a["title_en"] = "Друга назва", "Second title"
		a["documents"] = []any{document(kept), document(removed)}
	})
	r := newRegistry(whole, second, with(t, "2026-11-22", "2026-11-23"))
	r.revisions = append([]revision{{"draft", whole}}, r.revisions...)
	r.revisions = append(r.revisions, revision{"change", nil}, revision{"withdraw", nil}, revision{"change", whole})
	r.pictures = map[string]int{"/get/" + kept: http.StatusOK, "/get/" + removed: http.StatusGone}
	s := newSite(t, r, newFound(), logKey)
	for _, path := range []string{"1", "5", "6", "8", "0", "-1", "01", "x", "3x", "99999999999999999999"} {
		resp, _ := get(t, s, "/uk/assets/"+id+"/changes/"+path)
		expect.Equal(t, resp.StatusCode, http.StatusNotFound, "change %s", path)
	}
	resp, body := get(t, s, "/en/assets/"+id+"/changes/3")
	expect.Equal(t, resp.StatusCode, http.StatusOK, "the change")
	leaf, err := json.Marshal(map[string]any{"kind": "change", "position": 1795000000000000 + 3*3600_000_000, "revision": 3})
	expect.OK(t, err)
	hash := sha256.Sum256(append([]byte{0}, leaf...))
	body = html.UnescapeString(body)
	mustHave(t, body, `content="noindex, follow"`, "Second title", `data-proof="/api/2.5/assets/`+id+`/proof?revision=3"`,
		`download="`+id+`-3.json"`, "The record as it was after change 3", "18 November 2026", "change 3",
		hex.EncodeToString(hash[:]), "http://registry.example/en/assets/"+id+"/changes/3",
		`<del><bdi lang="uk">`, "the registry's own word", `<a href="/en/assets/`+id+`">To the record as it is now`)
	mustLack(t, body, "Follow this record", `href="#line"`, "/changes/2\"")
	_, list, _ := strings.Cut(body, `<ul class="documents">`)
	for file, want := range map[string]int{kept: 0, removed: 1} {
		_, one, _ := strings.Cut(list, "Файл "+file[:1])
		one, _, _ = strings.Cut(one, "</li>")
		expect.Equal(t, strings.Count(one, "The file was removed."), want, "the file %s", file)
	}
	_, first := get(t, s, "/uk/assets/"+id+"/changes/2")
	mustHave(t, first, "Нежитлове приміщення", "Запис оприлюднено")
	mustLack(t, first, "Друга назва")
	_, page := get(t, s, "/uk/assets/"+id)
	mustHave(t, page, `href="/uk/assets/`+id+`/changes/7"`)
	mustLack(t, page, "/changes/5\"", "/changes/6\"")

	r.status = http.StatusServiceUnavailable
	resp, _ = get(t, s, "/uk/assets/"+id+"/changes/3")
	expect.Equal(t, resp.StatusCode, http.StatusServiceUnavailable, "without an answer of the registry")
}

// TestAPastRecordAsksForFewFiles has a record with 60 files. A page asks about 20.
func TestAPastRecordAsksForFewFiles(t *testing.T) {
	r := newRegistry(changed(t, func(a map[string]any) {
		var all []any
		for n := range 60 {
			file := fmt.Sprintf("%032x", n+1)
			all = append(all, map[string]any{"id": file, "title": "Файл", "url": "https://registry.example/get/" + file, "sha256": "0"})
		}
		a["documents"] = all
	}))
	resp, _ := get(t, newSite(t, r, newFound()), "/uk/assets/"+id+"/changes/1", "X-Registry-Client", "192.0.2.1")
	expect.Equal(t, resp.StatusCode, http.StatusOK, "the status")
	if asked := len(r.visitors); asked > 25 {
		t.Errorf("got %d requests, want 20 for files and a few for proofs", asked)
	}
}
