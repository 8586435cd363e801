package docs

import (
	"html"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// page returns the documentation page that a registry serves.
func (p place) page(t *testing.T) string {
	t.Helper()
	resp, err := http.Get("http://" + p.addr + "/docs")
	expect.OK(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	expect.OK(t, err)
	return string(page)
}

// pageExamples returns the shell examples of one class on a page, in their order. The class is "sh", "refused" for
// requests that must fail, or "curl" for the commands in the reference.
func pageExamples(page, class string) []string {
	var blocks []string
	tag := regexp.MustCompile(`<[^>]+>`)
	for _, match := range regexp.MustCompile(`(?s)<pre class="`+class+`"[^>]*><code>(.*?)</code></pre>`).
		FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, html.UnescapeString(tag.ReplaceAllString(match[1], "")))
	}
	return blocks
}

func TestExamplesOfTheDocumentationPageWork(t *testing.T) {
	p := newPlace(t)
	page := p.page(t)
	if strings.Contains(page, "127.0.0.1:8080") || !strings.Contains(page, p.addr) {
		t.Errorf("got a page with another address, want %s in its examples", p.addr)
	}
	blocks, refused := pageExamples(page, "sh"), pageExamples(page, "refused")
	if len(blocks) < 5 || len(refused) == 0 {
		t.Fatalf("got %d examples and %d of refused requests, want more", len(blocks), len(refused))
	}
	for _, block := range refused {
		blocks = append(blocks, block+" || [ $? = 22 ]") // curl exits with 22 when the status is 400 or more
	}
	text := p.run(t, append(blocks, `echo "ID=$ID"`))
	id := regexp.MustCompile(`ID=([0-9a-f]{32})`).FindStringSubmatch(text)
	if id == nil {
		t.Fatalf("got no id, want one in:\n%s", text)
	}
	for _, want := range []string{
		`"description": "Перший поверх, два входи"`,
		`"owner": "broker3"`,
		`"name":"colour"`,                       // an error names the faulty field
		`"broker": "broker"`,                    // the answer of /me
		"\nactive\ncomplete\n",                  // the last two states of a sale
		"\ncancellationDetails\ndeleted\n",      // the document and the state of a deletion
		`{"id":"` + id[1] + `","dateModified":`, // the asset's entry in the feed
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %s, want it in:\n%s", want, text)
		}
	}
}

// TestTheDiagramOfStatesIsTheContract compares the steps in the diagram of the documentation page with the table in
// docs/contract.md, "States".
func TestTheDiagramOfStatesIsTheContract(t *testing.T) {
	quoted := regexp.MustCompile("`([a-z]+)`")
	var want []string
	from := ""
	for _, row := range regexp.MustCompile(`(?m)^\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|$`).
		FindAllStringSubmatch(section(t, "States"), -1) {
		if name := quoted.FindStringSubmatch(row[1]); name != nil {
			from = name[1]
		}
		for _, to := range quoted.FindAllStringSubmatch(row[3], -1) {
			by, _, _ := strings.Cut(row[4], ",") // only the first role, because the administrator may take each step
			want = append(want, from+" to "+to[1]+" by "+strings.TrimSpace(by))
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "gateway/internal/docspage/examples/states.html"))
	expect.OK(t, err)
	var got []string
	for _, step := range regexp.MustCompile(`<g( class="owner")? data-from="([a-z]+)" data-to="([a-z]+)">`).
		FindAllStringSubmatch(string(text), -1) {
		by := "concierge"
		if step[1] != "" {
			by = "owner"
		}
		got = append(got, step[2]+" to "+step[3]+" by "+by)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("the diagram differs (-want +got):\n%s", diff)
	}
}

// TestCommandsOfTheReferenceAreAnsweredAsDocumented runs the first example of the page, and then the command of
// each operation in the reference.
func TestCommandsOfTheReferenceAreAnsweredAsDocumented(t *testing.T) {
	p := newPlace(t)
	page := p.page(t)
	blocks := pageExamples(page, "sh")[:1]
	blocks = append(blocks, `PART=$(jq -r '.data.items[0].id' created.json) TRANSFER=$PART WEBHOOK=$PART NUMBER=1 FILE=none SIDE=320; echo x > document.pdf`,
		`curl() { command curl -o answer.json -w '%{http_code} ' "$@"; jq -c '[.errors[]?.name]' answer.json 2>&1 || true; }`)
	operation := regexp.MustCompile(`(?s)<div id="((?:get|post|patch|put|delete)-/[^"]*)">(.*?)</details>`)
	statuses := map[string]string{}
	for _, o := range operation.FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, "echo; echo -n '"+o[1]+" '", pageExamples(o[2], "curl")[0])
		for _, status := range regexp.MustCompile(`<th scope="row"><code>(\d+)</code>`).FindAllStringSubmatch(o[2], -1) {
			statuses[o[1]] += status[1] + " "
		}
	}
	text := p.run(t, blocks)
	for id, documented := range statuses {
		got := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(id) + ` (\d+)(.*)$`).FindStringSubmatch(text)
		if got == nil || !strings.Contains(documented, got[1]) || strings.Contains(got[2], "method_not_allowed") {
			t.Errorf("%s: got %q, want one of the statuses %s", id, got, documented)
		}
	}
	for _, id := range []string{"post-/assets", "get-/assets/-id-", "patch-/assets/-id-", "put-/assets/-id-",
		"post-/assets/-id-/items", "get-/assets/-id-/revisions", "post-/transfers", "post-/webhooks", "get-/me", "post-/register",
		"post-/upload", "get-/get"} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(id) + ` 20\d `).MatchString(text) {
			t.Errorf("%s: got a refusal, want an answer of 200 or 201; it printed:\n%s", id, text)
		}
	}
}
