package index

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

var showMissed = flag.Bool("missed", false, "show the questions of the tuned part that miss their asset")

// others is the number of assets in the index besides the assets of the list.
const others = 600

// Minimum fractions of the questions that must find their asset.
const (
	leastInTen = 0.92 // among the first ten hits
	leastFirst = 0.80 // as the first hit
	leastKind  = 0.75 // among the first ten hits, for each kind of question
)

// listedQuestion is a question of the list, with the assets that it should find.
type listedQuestion struct {
	kind, text string
	wanted     []string // ids
}

// isTuned reports whether the question was used to improve the search. A third of the questions was never used. They
// show how well the search handles questions that it was not made for.
func (a listedQuestion) isTuned() bool {
	hash := fnv.New32()
	hash.Write([]byte(a.text))
	return hash.Sum32()%3 != 0
}

// lines returns the lines of a file of the list.
func lines(t *testing.T, name string) (all [][]string) {
	t.Helper()
	file := expect.Get(os.Open(filepath.Join("testdata", "recall", name)))(t)
	defer file.Close()
	for rows := bufio.NewScanner(file); rows.Scan(); {
		all = append(all, strings.Split(rows.Text(), "|"))
	}
	return all
}

func madeID(kind, n string) string {
	sum := sha256.Sum256([]byte(kind + " " + n))
	return hex.EncodeToString(sum[:16])
}

func numberOfAsset(n string) string { return fmt.Sprintf("UA-AR-P-2026-11-20-%06s", n) }

var placeholder = regexp.MustCompile(`\{([a-z0-9]+):(\d+)\}`)

// filled returns a question in which the ids and numbers of assets are filled in.
func filled(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		m := placeholder.FindStringSubmatch(found)
		switch m[1] {
		case "id8":
			return madeID("asset", m[2])[:8]
		case "num":
			return numberOfAsset(m[2])
		case "lot":
			return madeID("lot", m[2])
		}
		return madeID("asset", m[2])
	})
}

var unitCodes = map[string]string{"м²": "MTK", "га": "HAR", "шт": "H87"}

// listed returns an asset of the list as an entry of the feed.
func listed(t *testing.T, f []string) replica.Entry {
	t.Helper()
	position := int64(1764000000000000)
	n := expect.Get(strconv.Atoi(f[0]))(t)
	position -= int64(n) * 3_600_000_000 // makes this asset older than all assets from the function `other`
	text := expect.Get(json.Marshal(map[string]any{
		"id": madeID("asset", f[0]), "dateModified": stamp(position), "status": "active", "assetID": numberOfAsset(f[0]),
		"title": f[1], "description": f[2], "assetType": "bounce",
		"assetCustodian": map[string]any{"name": f[8], "identifier": map[string]any{"scheme": "UA-EDR", "id": f[9]}},
		"relatedProcesses": []any{map[string]any{
			"id": madeID("process", f[0]), "type": "lot", "relatedProcessID": madeID("lot", f[0]),
		}},
		"items": []any{map[string]any{
			"description": f[1], "classification": map[string]any{"scheme": "CAV-PS", "id": f[3], "description": f[4]},
			"address":  map[string]any{"region": f[5], "locality": f[6], "streetAddress": f[7]},
			"quantity": json.Number(f[10]), "unit": map[string]any{"code": unitCodes[f[11]], "name": f[11]},
		}},
	}))(t)
	return replica.Entry{ID: madeID("asset", f[0]), Position: position, JSON: text}
}

var otherWords = strings.Fields(`окремий стан задовільний площа загальна вхід корпус частина комплекс майно обладнання лінія цех
	підприємство відділення управління власність ремонт фасад покрівля мережі опалення каналізація історія споруда інвентар
	приміщення будівля нежитлове виробниче поверх площею колишнього адміністративна`)

// The function `other` returns an asset that no question of the list looks for.
func other(t *testing.T, r *rand.Rand, n int) replica.Entry {
	t.Helper()
	some := func(count int) string {
		var all []string
		for range count {
			all = append(all, otherWords[r.IntN(len(otherWords))])
		}
		return strings.Join(all, " ")
	}
	places := lines(t, "places.txt")
	place := places[r.IntN(len(places))]
	position := int64(1764000000000000) + int64(n)*1_000_000
	text := expect.Get(json.Marshal(map[string]any{
		"id": madeID("other", fmt.Sprint(n)), "dateModified": stamp(position), "status": "active",
		"title": some(3), "description": some(12), "assetID": fmt.Sprintf("UA-AR-P-2025-03-%02d-%06d", 1+n%28, n),
		"assetCustodian": map[string]any{"name": "Управління майна", "identifier": map[string]any{
			"scheme": "UA-EDR", "id": fmt.Sprintf("5%07d", n),
		}},
		"items": []any{map[string]any{
			"description": some(4), "quantity": 1000 + n,
			"address": map[string]any{"region": place[0], "locality": place[1], "streetAddress": "вул. Лугова, " + fmt.Sprint(300+n)},
		}},
	}))(t)
	return replica.Entry{ID: madeID("other", fmt.Sprint(n)), Position: position, JSON: text}
}

// openList returns an index with the assets of the list and other assets.
func openList(t *testing.T) *Index {
	t.Helper()
	change := replica.Change{State: stateAt(1765000000000000)}
	r := rand.New(rand.NewPCG(1, 2))
	for n := range others {
		change.Entries = append(change.Entries, other(t, r, n))
	}
	for _, f := range slices.Concat(lines(t, "assets.txt"), lines(t, "notices-assets.txt")) {
		change.Entries = append(change.Entries, listed(t, f))
	}
	x := openIndex(t, t.TempDir())
	t.Cleanup(func() { expect.Try(t, x.Close()) })
	expect.OK(t, x.Apply(change))
	return x
}

// firstTen returns the ids of the first ten hits of a question. It parses the question as if a client had sent it.
func firstTen(t *testing.T, x *Index, text string) (ids []string) {
	t.Helper()
	q, err := search.Parse(url.Values{"q": {text}, "limit": {"10"}}, nil)
	if err != nil {
		return nil
	}
	for _, hit := range mustSearch(t, x, q).Hits {
		ids = append(ids, hit.ID)
	}
	return ids
}

// tally counts how well questions find their assets.
type tally struct {
	asked, inTen, first int
	reciprocal          float64
}

func (c *tally) add(place int) {
	c.asked++
	if place >= 0 {
		c.inTen++
		c.reciprocal += 1 / float64(place+1)
	}
	if place == 0 {
		c.first++
	}
}

func (c *tally) part(n int) float64 { return float64(n) / float64(max(1, c.asked)) }

func (c *tally) String() string {
	return fmt.Sprintf("%d questions, %.3f in ten, %.3f first, mean reciprocal rank %.3f", c.asked, c.part(c.inTen),
		c.part(c.first), c.reciprocal/float64(max(1, c.asked)))
}

// TestPeopleFindWhatTheyMean asks the questions of both lists (docs/search.md, "The list"). A third of each list was not
// used to improve the search. In both parts of a list, enough questions must find their assets.
func TestPeopleFindWhatTheyMean(t *testing.T) {
	x := openList(t)
	for _, name := range []string{"questions.txt", "notices-questions.txt"} {
		parts := map[string]*tally{"tuned": {}, "held out": {}}
		kinds, heldOut := map[string]*tally{}, map[string]*tally{}
		for _, f := range lines(t, name) {
			q := listedQuestion{kind: f[0], text: filled(f[1])}
			for n := range strings.SplitSeq(f[2], ",") {
				q.wanted = append(q.wanted, madeID("asset", n))
			}
			found := firstTen(t, x, q.text)
			place := slices.IndexFunc(found, func(id string) bool { return slices.Contains(q.wanted, id) })
			if kinds[q.kind] == nil {
				kinds[q.kind], heldOut[q.kind] = &tally{}, &tally{}
			}
			kinds[q.kind].add(place)
			if !q.isTuned() {
				parts["held out"].add(place)
				heldOut[q.kind].add(place)
				continue
			}
			parts["tuned"].add(place)
			if *showMissed && place != 0 {
				t.Logf("%s: %q wants %s, which is at %d of %d", q.kind, q.text, f[2], place, len(found))
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			t.Logf("%s, %s: %s; held out: %s", name, kind, kinds[kind], heldOut[kind])
			if got := kinds[kind].part(kinds[kind].inTen); got < leastKind {
				t.Errorf("%s, %s: got %.3f in ten, want %.2f", name, kind, got, leastKind)
			}
		}
		for which, part := range parts {
			t.Logf("%s, %s: %s", name, which, part)
			if part.part(part.inTen) < leastInTen || part.part(part.first) < leastFirst {
				t.Errorf("%s, %s: got %s, want %.2f in ten and %.2f first", name, which, part, leastInTen, leastFirst)
			}
		}
	}
}

// TestStrangersAreNotFound asks questions with a number, place or word that an asset does not have. They must
// not find the asset.
func TestStrangersAreNotFound(t *testing.T) {
	x := openList(t)
	for _, f := range lines(t, "strangers.txt") {
		if slices.Contains(firstTen(t, x, f[0]), madeID("asset", f[1])) {
			t.Errorf("%q: got asset %s, want it not found", f[0], f[1])
		}
	}
}

// Promises: suggestions
func TestSuggestionsBeginAsTheQuestion(t *testing.T) {
	x := openList(t)
	for text, want := range map[string]string{
		"екскав": "екскаватор", "ЕКСК": "екскаватор", "гараж цег": "гараж цегляний", "ізм": "м. Ізмаїл", "0413": "04131000-2 Складські приміщення",
		"одес": "Одеська область", "авангард": "ФСТ «Авангард»",
		"управління освіти рівн": "Управління освіти Рівненської міської ради", "ТОВ «Таврія-А": "ТОВ «Таврія-Агро»",
	} {
		got, err := x.Suggest(t.Context(), search.Query{Text: text})
		if err != nil || !slices.Contains(got, want) || len(got) > search.MaxSuggestions {
			t.Errorf("%q: got %q, %v; want %q among at most %d", text, got, err, want, search.MaxSuggestions)
		}
	}
	for _, text := range []string{"", "е", "йцукен", "  ", "тов й"} {
		if got, err := x.Suggest(t.Context(), search.Query{Text: text}); err != nil || len(got) > 0 {
			t.Errorf("%q: got %q, %v; want none", text, got, err)
		}
	}
}

// TestSuggestionsAreOfAssetsThatCanBeFound replaces an asset. Its old texts stay in a segment, because the segment
// has a second asset that is not replaced. The old texts must not be suggested.
func TestSuggestionsAreOfAssetsThatCanBeFound(t *testing.T) {
	x := openList(t)
	f := slices.Clone(lines(t, "assets.txt")[0])
	for _, was := range []string{"Канаркознавство", "Синичкознавство"} {
		f[1], f[8] = was, "Музей «"+was+"»"
		change := replica.Change{State: stateAt(1765000000000001), Entries: []replica.Entry{listed(t, f)}}
		if was == "Канаркознавство" {
			change.Entries = append(change.Entries, listed(t, lines(t, "assets.txt")[1]))
		}
		expect.OK(t, x.Apply(change))
	}
	for text, want := range map[string][]string{
		"канарк": nil, "синич": {"синичкознавство", "Музей «Синичкознавство»"}, "музей": {"Музей «Синичкознавство»"},
	} {
		got, err := x.Suggest(t.Context(), search.Query{Text: text})
		if slices.Sort(got); err != nil || !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%q: got %q, %v; want %q", text, got, err, want)
		}
	}
}
