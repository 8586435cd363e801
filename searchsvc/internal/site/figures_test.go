package site_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/index"
	"asset-registry/searchsvc/internal/meaning"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

// indexed is a searcher with a real index.
type indexed struct{ *index.Index }

func (indexed) Turn(context.Context, string) (func(), error) { return func() {}, nil }
func (x indexed) State() search.State                        { return search.State{Ready: true} }

const indexedAssets = 300

// newIndexed returns a searcher with random assets. Many have several regions and kinds of property, or lack a value.
// Two custodians have the same name.
func newIndexed(t *testing.T) indexed {
	t.Helper()
	x := expect.Get(index.Open(t.TempDir(), expect.Get(meaning.NewSynonyms(""))(t), codenames.Lists{}))(t)
	t.Cleanup(func() { expect.OK(t, x.Close()) })
	r := rand.New(rand.NewPCG(64, 2))
	change := replica.Change{State: replica.State{Position: client.Position{Offset: "2026-11-22T13:00:00.000001+00:00"}, Complete: true}}
	for n := range indexedAssets {
		asset := map[string]any{"id": fmt.Sprintf("%032x", n), "dateModified": fmt.Sprintf("2026-11-22T12:00:00.%06d+02:00", n+1),
			"status": []string{"pending", "active", "complete"}[r.IntN(3)], "title": []string{"Будинок", "Гараж"}[r.IntN(2)]}
		if n%7 > 0 { // some of the times are of another month in Kyiv than in UTC
			at := time.Date(2024, time.Month(6+r.IntN(29)), 1, 0, 0, 0, 0, time.UTC).Add(-time.Hour * time.Duration(r.IntN(4)))
			asset["rectificationPeriod"] = map[string]any{"startDate": at.Format("2006-01-02T15:04:05.000000+00:00")}
		}
		if n%11 > 0 {
			number := r.IntN(15)
			asset["assetCustodian"] = map[string]any{"name": fmt.Sprintf("Установа %d", max(2, number)),
				"identifier": map[string]any{"scheme": "UA-EDR", "id": fmt.Sprintf("%08d", number)}}
		}
		var items []any
		for range r.IntN(4) {
			one := map[string]any{"quantity": 5, "unit": map[string]any{"code": []string{"MTK", "H87"}[r.IntN(2)]}}
			if r.IntN(8) > 0 {
				one["classification"] = map[string]any{"id": []string{"04121000-2", "04220000-3", "06110000-6", "08110000-0"}[r.IntN(4)]}
			}
			if r.IntN(8) > 0 {
				one["address"] = map[string]any{"region": fmt.Sprintf("Край%c", 'а'+rune(r.IntN(32)))}
			}
			items = append(items, one)
		}
		asset["items"] = items
		text := expect.Get(json.Marshal(asset))(t)
		change.Entries = append(change.Entries, replica.Entry{ID: asset["id"].(string), Position: int64(n + 1), JSON: text})
	}
	expect.OK(t, x.Apply(change))
	expect.OK(t, x.Refresh())
	return indexed{x}
}

var foundAssets = regexp.MustCompile(`<h2 id="found">(?:Found|The registry has) ([0-9,]+)`)

// TestFiguresAddUp reads the figures of searches as CSV. Each table must count the assets of the search: its lines add
// up to their number, unless assets have several values, and a line finds as many assets as it says.
func TestFiguresAddUp(t *testing.T) {
	x := newIndexed(t)
	s := newSite(t, newRegistry(whole), x)
	totals := map[int64]bool{}
	follow := rand.New(rand.NewPCG(64, 3)) // follows some of the links
	for _, asked := range []string{
		"", "q=будинок", "region=крайа&region=крайб", "status=active&classification=04", "classification=04&classification=06",
		"custodian=UA-EDR-00000001&custodian=UA-EDR-00000003", "published_from=2025-01-31&published_to=2025-12-31",
		"published_to=2024-09-01&quantity_from=2", "q=немає",
	} {
		resp, text := get(t, s, "/en/statistics.csv?"+asked)
		expect.Equal(t, resp.Header.Get("Content-Type"), "text/csv; charset=utf-8; header=present", "%q: the type", asked)
		rows := expect.Get(csv.NewReader(strings.NewReader(text)).ReadAll())(t)
		total := expect.Get(strconv.ParseInt(rows[1][3], 10, 64))(t)
		sent := expect.Get(url.ParseQuery(asked))(t)
		q := expect.Get(search.Parse(sent, nil))(t)
		q.Facets, q.FacetLimit, q.Limit = []search.FacetName{search.ByRegion, search.ByClassification}, 100, 0
		want := expect.Get(x.Search(t.Context(), q))(t)
		if asked != "published_from=2025-01-31&published_to=2025-12-31" && asked != "published_to=2024-09-01&quantity_from=2" { // Kyiv's days
			expect.Equal(t, total, want.Total, "%q: the assets in all", asked)
		}
		totals[total] = true
		sums := map[string]int64{}
		for _, row := range rows[2:] {
			count := expect.Get(strconv.ParseInt(row[3], 10, 64))(t)
			if sums[row[0]] += count; count < 0 || count > total && row[2] != "Others" {
				t.Errorf("%q: %q: got %d assets of %d", asked, row, count, total)
			}
			if count == 0 || row[6] == "" || follow.IntN(5) > 0 {
				continue
			}
			_, page := get(t, s, strings.TrimPrefix(row[6], "http://registry.example"))
			found := foundAssets.FindStringSubmatch(strings.ReplaceAll(html.UnescapeString(page), "\u00a0", " "))
			if found == nil || found[1] != row[3] {
				t.Errorf("%q: %q: got a page with %q, want the number of the line", asked, row, found)
			}
		}
		for table, sum := range sums {
			switch isList := table == "region" || table == "classification"; {
			case !isList && sum != total, isList && sum < total, isList && asked == "" && sum <= total:
				t.Errorf("%q: %s: got a sum of %d, want %d, or more if values repeat", asked, table, sum, total)
			}
		}
		_, page := get(t, s, "/en/statistics?more=classification&"+asked)
		if said := fmt.Sprintf("The lines add up to %d:", sums["classification"]); sums["classification"] > total {
			mustHave(t, page, said)
		} else {
			mustLack(t, page, said)
		}
	}
	expect.ErrorIf(t, len(totals) < 8, "got the totals %v, want different searches", totals)

	_, page := get(t, s, "/en/statistics?more=custodian")
	mustHave(t, page, "Установа 2 (UA-EDR-00000001)", "Установа 2 (UA-EDR-00000002)", ">Earlier</a>", "Not given")
	mustLack(t, page, "Установа 3 (")
	for _, path := range []string{"", "?classification=08", "?classification=081"} {
		_, shares := get(t, s, "/en/statistics.csv"+path)
		if !regexp.MustCompile(`(?m)^classification,08[0-9]*,.*,[0-9]+,[0-9]+,,http`).MatchString(shares) {
			t.Errorf("%q: got %s, want shares with an area and without pieces", path, shares)
		}
	}
	_, page = get(t, s, "/en/?more=custodian")
	mustHave(t, page, "Установа 2 (UA-EDR-00000001)")

	// The ends of a chosen time.
	_, csvText := get(t, s, "/en/statistics.csv?published_from=2023-12-15&published_to=2024-07-10")
	mustHave(t, csvText, "month_kyiv,2023-12,Dec 2023,0", "month_kyiv,2024-07,")
	_, csvText = get(t, s, "/en/statistics.csv?published_from=2026-09-15")
	mustHave(t, csvText, "month_kyiv,2026-09,", "month_kyiv,"+time.Now().Format("2006-01")+",")

	resp, file := get(t, s, "/uk/statistics.xlsx?q=будинок")
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(file, "PK\x03\x04") ||
		resp.Header.Get("Content-Disposition") != `attachment; filename="statistics.xlsx"` {
		t.Errorf("got %d, %v, want a spreadsheet", resp.StatusCode, resp.Header)
	}
	if resp, _ := get(t, s, "/uk/statistics.csv?regoin=a"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("got %d for an unknown filter, want 400", resp.StatusCode)
	}
}
