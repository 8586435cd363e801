package rehearse

import (
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

const whole = `{"assetType":"loan","title":"Склад","description":"Цех","sandboxParameters":"x",
	"items":[{"id":"lot1","description":"Цех","classification":{"scheme":"CAV-PS","id":"06111000-3","description":"Земля"},
	"unit":{"code":"MTK"},"quantity":"5","address":{"countryName":"Україна"},"registrationDetails":{}},
	{"description":"Двір","classification":{"scheme":"CAV-PS","id":"06111000-3","description":"Земля"},
	"unit":{"code":"MTK"},"quantity":"5","address":{"countryName":"Україна"},"registrationDetails":{}}],
	"decisions":[{"decisionDate":"2026-11-20","decisionID":"7"}],
	"assetCustodian":{"name":"Фонд","identifier":{"scheme":"UA-EDR","id":"1"},"address":{"countryName":"Україна"},
	"contactPoint":{"name":"Олена","email":"a@b.ua"}}}`

func TestFaultsOfAnAsset(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       []string // for each fault: the name of the field, ": ", and the beginning of the text
	}{
		{"a whole asset of any type", whole, nil},
		{"no item", strings.Replace(whole, `"items"`, `"relatedProcesses":[],"x":1,"item"`, 1),
			[]string{"x: Rogue field", "item: Rogue field"}},
		{"no decision", strings.Replace(whole, `[{"decisionDate":"2026-11-20","decisionID":"7"}]`, "[]", 1),
			[]string{"data: You cannot switch"}},
		{"a field of the registry", strings.Replace(whole, `{`, `{"owner":"me",`, 1), []string{"owner: The registry ignores"}},
		{"a wrong type", strings.Replace(whole, `"quantity":"5"`, `"quantity":"many"`, 1), []string{"items.0.quantity: Number 'many'"}},
		{"a repeated name", strings.Replace(whole, `{`, `{"title":"x",`, 1), []string{"title: "}},
		{"a list", `[]`, []string{"data: This must be an object"}},
		{"no JSON", `{`, []string{"data: "}},
		{"U+0000", strings.Replace(whole, `Склад`, `a\u0000b`, 1), []string{"title: String value has the character U+0000"}},
	} {
		t.Run(c.name, func(t *testing.T) { compare(t, Asset([]byte(c.data)), c.want) })
	}
}

func TestFaultsOfADocument(t *testing.T) {
	const url = `"url":"https://files.example/get/1","hash":"md5:00000000000000000000000000000000"`
	for _, c := range []struct {
		name, data string
		want       []string
	}{
		{"a document of a file", `{"documentType":"notice","title":"a.pdf","format":"application/pdf",` + url + `}`, nil},
		{"no type", `{"title":"a.pdf",` + url + `}`, []string{"documentType: This field is required"}},
		{"an unknown field", `{"documentType":"notice","title":"a","file":"x",` + url + `}`, []string{"file: Rogue field"}},
		{"no address", `{"documentType":"notice","title":"a"}`, []string{"url: This field is required"}},
		{"a field of the registry", `{"documentType":"notice","title":"a","author":"me",` + url + `}`,
			[]string{"author: The registry ignores"}},
	} {
		t.Run(c.name, func(t *testing.T) { compare(t, Document([]byte(c.data)), c.want) })
	}
}

func compare(t *testing.T, got []Fault, want []string) {
	t.Helper()
	same := slices.EqualFunc(got, want, func(f Fault, begins string) bool {
		return strings.HasPrefix(f.Name+": "+f.Text, begins)
	})
	expect.ErrorIf(t, !same, "got  %q\nwant %q", got, want)
}

// TestAChangeOfAStoredAsset changes an asset as the registry shows it, and its decision. Dates must get the zone of the
// registry's own dates.
func TestAChangeOfAStoredAsset(t *testing.T) {
	stored := strings.NewReplacer(`{"assetType"`, `{"id":"0","status":"pending","date":"2026-11-20T10:00:00+03:00","dateModified":"x","assetType"`,
		`"decisions":[{`, `"decisions":[{"id":"d1",`).Replace(whole)
	for _, c := range []struct {
		name, status, part, id, change string
		want                           []string
		has                            string // text of the asset afterwards
	}{
		{"a field", "pending", "", "", `{"title":"Гараж"}`, nil, `"title":"Гараж"`},
		{"a wrong value", "pending", "", "", `{"title":null}`, []string{"title: This field is required"}, `"title":"Склад"`},
		{"a field that never changes", "pending", "", "", `{"mode":"test"}`, []string{"mode: The registry ignores"}, `Склад`},
		{"a decision", "pending", "decisions", "d1", `{"decisionDate":"2026-12-01"}`, nil, `2026-12-01T00:00:00.000000+03:00`},
		{"a new decision", "pending", "decisions", "", `{"decisionDate":"2026-12-01","decisionID":"8"}`, nil, `"decisionID":"8"`},
		{"another state", "verification", "", "", `{"title":"Гараж"}`, []string{"data: Can't update asset in current (verification)"}, `Склад`},
		{"no asset", "", "", "", `{}`, []string{"data: "}, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			after, faults := Change([]byte(strings.Replace(stored, "pending", c.status, 1)), c.part, c.id, []byte(c.change))
			compare(t, faults, c.want)
			expect.ErrorIf(t, !strings.Contains(string(after), c.has), "got %s, want %q in it", after, c.has)
		})
	}
}
