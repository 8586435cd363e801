package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/meaning"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/fault"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

// simple is an asset of the tests. The index must find the same assets as a loop over all of them.
type simple struct {
	n                   int
	position, published int64
	status              client.Status
	test                bool
	title, text, code   string
	regions             []string
	quantities          []int
	units               []string
	custodian           string
}

func idOf(n int) string { return fmt.Sprintf("%032x", n) }

func stamp(micro int64) client.Timestamp { return client.At(time.UnixMicro(micro).UTC()) }

func (s simple) entry(t testing.TB) replica.Entry {
	t.Helper()
	a := client.Asset{
		ID: idOf(s.n), DateModified: stamp(s.position), Status: s.status, Title: s.title, Description: s.text,
		Owner: "broker", AssetType: "bounce",
		AssetCustodian: client.Organisation{
			Name: "Фонд " + s.custodian, Identifier: client.Identifier{Scheme: "UA-EDR", ID: client.Text(s.custodian)},
		},
	}
	if s.test {
		a.Mode = client.TestMode
	}
	if s.published != 0 {
		a.RectificationPeriod = &client.Period{StartDate: stamp(s.published)}
	}
	for i, region := range s.regions {
		a.Items = append(a.Items, client.Item{
			Description: "річ", Quantity: client.Decimal(fmt.Sprint(s.quantities[i])),
			Unit:           client.Unit{Code: s.units[i]},
			Classification: client.Classification{ID: s.code, Description: "Код " + s.code},
			Address:        client.Address{Region: region},
		})
	}
	text := expect.Get(a.MarshalJSON())(t)
	return replica.Entry{ID: a.ID, Position: s.position, Test: s.test, JSON: text}
}

var (
	vocabularyWords = strings.Fields("альфа бета гамма дельта епсилон дзета ета тета йота капа")
	codes           = []string{"04121000-2", "04122000-9", "04210000-3", "06110000-6"}
	regions         = []string{"Київська", "Львівська", "Одеська"}
)

func random(r *rand.Rand, n int, position int64) simple {
	words := func(most int) string {
		var list []string
		for range 1 + r.IntN(most) {
			list = append(list, vocabularyWords[r.IntN(len(vocabularyWords))])
		}
		return strings.Join(list, " ")
	}
	s := simple{
		n: n, position: position, status: []client.Status{client.Pending, client.Active, client.Complete, client.Deleted}[r.IntN(4)],
		test: r.IntN(10) == 0, title: words(2), text: words(4), code: codes[r.IntN(len(codes))],
		custodian: fmt.Sprintf("%08d", r.IntN(3)),
	}
	if r.IntN(5) > 0 {
		s.published = int64(1+r.IntN(90)) * 86400e6
	}
	for range r.IntN(4) {
		region := regions[r.IntN(len(regions))]
		if r.IntN(4) == 0 { // gives the column more different values than mostSets
			region = fmt.Sprintf("Край%02d", r.IntN(2*mostSets))
		}
		s.regions = append(s.regions, region)
		s.quantities = append(s.quantities, r.IntN(10))
		s.units = append(s.units, []string{"MTK", "HAR", "H87", "LTR"}[r.IntN(4)])
	}
	return s
}

func synonyms(t testing.TB) *meaning.Synonyms {
	t.Helper()
	s := expect.Get(meaning.NewSynonyms(""))(t)
	return s
}

func openIndex(t testing.TB, dir string) *Index {
	t.Helper()
	x := expect.Get(Open(dir, synonyms(t), codenames.Lists{}))(t)
	return x
}

func apply(t testing.TB, x *Index, state replica.State, list ...simple) {
	t.Helper()
	c := replica.Change{State: state}
	for _, s := range list {
		c.Entries = append(c.Entries, s.entry(t))
	}
	expect.OK(t, x.Apply(c))
}

func stateAt(position int64) replica.State {
	return replica.State{Position: client.Position{Offset: stamp(position), ServerID: "one"}, Complete: true}
}

func mustSearch(t testing.TB, x *Index, q search.Query) search.Result {
	t.Helper()
	result := expect.Get(x.Search(t.Context(), q))(t)
	return result
}

// finds reports whether a question finds an asset. It specifies, as simple code, what the index must find.
func (s simple) finds(q search.Query) bool {
	if s.test || s.status == client.Deleted {
		return false
	}
	all := " " + s.title + " " + s.text + " "
	for _, word := range strings.Fields(q.Text) {
		if !strings.Contains(all, " "+word+" ") {
			return false
		}
	}
	f := q.Filters
	if len(f.ValuesOf(search.ByStatus)) > 0 && !slices.Contains(f.ValuesOf(search.ByStatus), string(s.status)) ||
		len(f.ValuesOf(search.ByCustodian)) > 0 && !slices.Contains(f.ValuesOf(search.ByCustodian), "UA-EDR-"+s.custodian) ||
		!f.Published.From.IsZero() && (s.published == 0 || s.published < f.Published.From.UnixMicro()) ||
		!f.Modified.Until.IsZero() && s.position >= f.Modified.Until.UnixMicro() {
		return false
	}
	some := func(values []string, has func(want string, i int) bool) bool {
		return len(values) == 0 || slices.ContainsFunc(values, func(want string) bool {
			return slices.ContainsFunc(slices.Collect(maps.Keys(slicesMap(s.regions))), func(i int) bool { return has(want, i) })
		})
	}
	return some(f.ValuesOf(search.ByRegion), func(want string, i int) bool { return s.regions[i] == want }) &&
		some(f.ValuesOf(search.ByClassification), func(want string, _ int) bool { return strings.HasPrefix(s.code, strings.TrimRight(want, "0")) }) &&
		(f.Quantity == search.Quantities{} || some([]string{""}, func(_ string, i int) bool { return s.isIn(i, f.Quantity) }))
}

// isIn reports whether the quantity of an item is in a range.
func (s simple) isIn(i int, in search.Quantities) bool {
	n := float64(s.quantities[i])
	switch s.units[i] + " " + string(in.Unit) {
	case "MTK m2", "HAR ha", "H87 pieces":
	case "HAR m2":
		n *= 10_000
	case "MTK ha":
		n /= 10_000
	default:
		return in.Unit == "" && n >= *in.From
	}
	return n > 0 && (in.From == nil || n >= *in.From)
}

// area returns the area of an asset in square metres.
func (s simple) area() (sum int64) {
	for i, unit := range s.units {
		sum += int64(s.quantities[i]) * map[string]int64{"MTK": 1, "HAR": 10_000}[unit]
	}
	return sum
}

func slicesMap(list []string) map[int]bool {
	m := map[int]bool{}
	for i := range list {
		m[i] = true
	}
	return m
}

func randomQuery(r *rand.Rand) search.Query {
	q := search.Query{
		Exact: true, Limit: 10 + r.IntN(50), Facets: []search.FacetName{search.ByStatus, search.ByRegion, search.ByMonth, search.ByClassification},
		FacetLimit: 100,
	}
	for range r.IntN(3) {
		q.Text += vocabularyWords[r.IntN(len(vocabularyWords))] + " "
	}
	q.Sort = search.Sorts[r.IntN(len(search.Sorts))]
	if q.Text == "" && q.Sort == search.ByRelevance {
		q.Sort = search.NewestFirst
	}
	if r.IntN(3) == 0 {
		q.Filters = q.Filters.With(search.ByStatus, []string{"active", "complete"}[:1+r.IntN(2)])
	}
	if r.IntN(3) == 0 {
		q.Filters = q.Filters.With(search.ByRegion, []string{regions[r.IntN(len(regions))]})
	}
	if r.IntN(4) == 0 {
		q.Filters = q.Filters.With(search.ByClassification, []string{[]string{"04", "0412", "06110000"}[r.IntN(3)]})
	}
	if r.IntN(4) == 0 {
		q.Filters.Published.From = time.UnixMicro(int64(r.IntN(60)) * 86400e6)
	}
	if r.IntN(4) == 0 {
		at := float64(r.IntN(12))
		q.Filters.Quantity.From = &at
	}
	if r.IntN(4) == 0 {
		q.Filters.Quantity.Unit = search.Units[r.IntN(len(search.Units))]
	}
	if r.IntN(6) == 0 {
		q.Filters = q.Filters.With(search.ByCustodian, []string{"UA-EDR-00000001"})
	}
	return q
}

// TestTheIndexFindsWhatALoopFinds makes random changes and asks random questions. Sometimes it closes the index
// and opens it again. Each answer must be the answer of a loop over all assets.
// Promises: search-words, search-codes, search-filters, search-total, search-facets, second-tries, search-units, search-area, search-back
func TestTheIndexFindsWhatALoopFinds(t *testing.T) {
	for seed := range uint64(2) {
		r, dir := rand.New(rand.NewPCG(seed, 1)), t.TempDir()
		x, all, position := openIndex(t, dir), map[int]simple{}, int64(1e15)
		for range 20 {
			var changed []simple
			for range 1 + r.IntN(60) {
				position += 1 + r.Int64N(1e9)
				s := random(r, r.IntN(400), position)
				all[s.n] = s
				changed = append(changed, s)
			}
			apply(t, x, stateAt(position), changed...)
			if r.IntN(10) == 0 {
				expect.OK(t, x.setFormat(indexFormat))
				expect.OK(t, x.Close())
				x = openIndex(t, dir)
				if diff := gocmp.Diff(stateAt(position), x.State()); diff != "" {
					t.Fatalf("the state differs (-want +got):\n%s", diff)
				}
				expect.OK(t, x.Refresh())
			}
			for range 6 {
				q := randomQuery(r)
				compare(t, x, all, q)
				compareApart(t, x, q)
			}
		}
		expect.OK(t, x.Close())
	}
}

// differ returns the difference between two values, or "". Most values are equal, and reflect.DeepEqual finds this
// out faster.
func differ(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return gocmp.Diff(want, got)
}

// compareApart asks a question with Apart set. It then asks the question again for each facet, without the filter by
// the property of this facet. The facet must be the same.
func compareApart(t *testing.T, x *Index, q search.Query) {
	t.Helper()
	apart := q
	apart.Apart = true
	got := mustSearch(t, x, apart)
	for i, f := range got.Facets {
		without := q
		if f.Name != search.ByClassification { // the filter of codes stays, because codes are counted with it
			without.Filters = without.Filters.With(f.Name, nil)
		}
		want := mustSearch(t, x, without).Facets[i].Values
		if diff := differ(want, f.Values); diff != "" {
			t.Fatalf("%+v: the facet %s differs (-without its filter +apart):\n%s", q, f.Name, diff)
		}
	}
}

// compare compares all pages of a search with the results of a loop.
func compare(t *testing.T, x *Index, all map[int]simple, q search.Query) {
	t.Helper()
	var want []simple
	for _, s := range all {
		if s.finds(q) {
			want = append(want, s)
		}
	}
	result := mustSearch(t, x, q)
	expect.FatalIf(t, result.Total != int64(len(want)), "%+v: got %d assets, want %d", q, result.Total, len(want))
	compareFacets(t, x, want, q, result.Facets)
	compareSums(t, x, want, q)
	// Ask some of the questions again, with second tries allowed. These questions find assets without second tries, so
	// the answers must be the same.
	if free := q; q.Text != "" && result.Total%3 == 1 {
		asked := result
		asked.Facets, free.Facets, free.Exact = nil, nil, false
		again := mustSearch(t, x, free)
		asked.Work, again.Work = 0, 0 // facets are work
		if diff := differ(asked, again); diff != "" {
			t.Fatalf("%+v: a question that may be asked again has another answer (-exact +free):\n%s", q, diff)
		}
	}
	got := map[string]bool{}
	var before *search.Hit
	var pages []search.Result
	for page := result; ; page = mustSearch(t, x, q) {
		if page.Before != int64(len(got)) || (page.Prev == nil) != (page.Before == 0) {
			t.Fatalf("%+v: got %d assets before the page, and %v for those, want %d", q, page.Before, page.Prev, len(got))
		}
		pages = append(pages, page)
		for _, hit := range page.Hits {
			expect.FatalIf(t, got[hit.ID], "%+v: asset %s came twice", q, hit.ID)
			got[hit.ID] = true
			a, err := hit.Decode()
			if err != nil || a.ID != hit.ID {
				t.Fatalf("the hit %s: got %v, %v", hit.Asset, a.ID, err)
			}
			if before != nil && !inOrder(t, all, q.Sort, *before, hit) {
				t.Fatalf("%+v: %s came before %s", q, before.Asset, hit.Asset)
			}
			before = &hit
		}
		if q.After, q.Facets = page.Next, nil; q.After == nil {
			break
		}
	}
	for n := len(pages) - 1; n > 0; n-- {
		q.After = parsed(t, pages[n].Prev)
		if diff := differ(pages[n-1].Hits, mustSearch(t, x, q).Hits); diff != "" {
			t.Fatalf("%+v: the page before differs (-forwards +back):\n%s", q, diff)
		}
		pages[n-1] = mustSearch(t, x, q)
	}
	for _, s := range want {
		expect.FatalIf(t, !got[idOf(s.n)], "%+v: asset %+v is missing", q, s)
	}
	expect.FatalIf(t, len(got) != len(want), "%+v: got %d hits, want %d", q, len(got), len(want))
}

// parsed writes a cursor as text and parses it, as if a client had sent it back.
func parsed(t *testing.T, c *search.Cursor) *search.Cursor {
	t.Helper()
	back, err := search.ParseCursor(c.String())
	expect.Must(t, err, "the cursor %s", c)
	return &back
}

func inOrder(t *testing.T, all map[int]simple, sort search.Sort, a, b search.Hit) bool {
	t.Helper()
	first, err1 := a.Decode()
	second, err2 := b.Decode()
	expect.OK(t, errors.Join(err1, err2))
	start := func(a assetfilter.Asset) client.Timestamp { return a.Rectification.StartDate }
	areaOf := func(a assetfilter.Asset) int64 {
		n := expect.Get(strconv.ParseInt(a.ID, 16, 64))(t)
		area := all[int(n)].area()
		if area == 0 && sort == search.SmallestFirst {
			return math.MaxInt64
		}
		return area
	}
	switch sort {
	case search.LargestFirst:
		return cmp.Or(cmp.Compare(areaOf(first), areaOf(second)), cmp.Compare(first.DateModified, second.DateModified)) > 0
	case search.SmallestFirst:
		return cmp.Or(cmp.Compare(areaOf(first), areaOf(second)), cmp.Compare(first.DateModified, second.DateModified)) < 0
	case search.NewestFirst:
		return first.DateModified > second.DateModified
	case search.OldestFirst:
		return first.DateModified < second.DateModified
	case search.LatestPublished:
		return cmp.Or(cmp.Compare(start(first), start(second)), cmp.Compare(first.DateModified, second.DateModified)) > 0
	case search.FirstPublished:
		return cmp.Or(cmp.Compare(start(first), start(second)), cmp.Compare(first.DateModified, second.DateModified)) < 0
	}
	return true
}

func compareFacets(t *testing.T, x *Index, found []simple, q search.Query, got []search.Facet) {
	t.Helper()
	want := map[search.FacetName]map[string]int64{
		search.ByStatus: {}, search.ByRegion: {}, search.ByMonth: {}, search.ByClassification: {},
	}
	none := map[search.FacetName]int64{}
	level := q.Filters.CodeLevel()
	for _, s := range found {
		want[search.ByStatus][string(s.status)]++
		different := slices.Compact(slices.Sorted(slices.Values(s.regions)))
		for _, region := range different {
			want[search.ByRegion][strings.ToLower(region)]++
		}
		if s.published != 0 {
			want[search.ByMonth][time.UnixMicro(s.published).UTC().Format("2006-01")]++
		} else {
			none[search.ByMonth]++
		}
		if len(s.regions) == 0 {
			none[search.ByRegion]++
			none[search.ByClassification]++
			continue
		}
		if prefix, _ := assetfilter.CodePrefix(s.code); level == 8 {
			want[search.ByClassification][s.code]++
		} else if len(prefix) >= level {
			want[search.ByClassification][prefix[:level]]++
		} else {
			none[search.ByClassification]++
		}
	}
	for _, facet := range got {
		counts, all := map[string]int64{}, int64(0)
		for _, v := range facet.Values {
			counts[v.Value] = v.Count
			all += v.Count
			if facet.Name == search.ByRegion && strings.ToLower(v.Name) != v.Value {
				t.Errorf("the region %q: got the name %q", v.Value, v.Name)
			}
		}
		if diff := differ(want[facet.Name], counts); diff != "" {
			t.Fatalf("%+v: the facet %s differs (-want +got):\n%s", q, facet.Name, diff)
		}
		if facet.All != all || facet.None != none[facet.Name] {
			t.Fatalf("%+v: the facet %s: got %d in all and %d without a value, want %d and %d", q, facet.Name, facet.All,
				facet.None, all, none[facet.Name])
		}
	}
	q.Facets, q.FacetLimit, q.Limit = []search.FacetName{search.ByRegion}, 1, 0
	if few := mustSearch(t, x, q).Facets[0]; few.All != got[1].All {
		t.Fatalf("%+v: got %d regions in all if one is asked for, want %d", q, few.All, got[1].All)
	}
}

// compareSums asks the index for the area and the number of pieces of each code. It also computes these sums from
// the argument `found`. Both results must be equal.
func compareSums(t *testing.T, x *Index, found []simple, q search.Query) {
	t.Helper()
	q.Sums, q.Limit, q.Facets = true, 0, []search.FacetName{search.ByClassification}
	level := q.Filters.CodeLevel()
	for _, v := range mustSearch(t, x, q).Facets[0].Values {
		var area, pieces int64
		for _, s := range found {
			prefix, _ := assetfilter.CodePrefix(s.code)
			if level == 8 && s.code != v.Value || level < 8 && !strings.HasPrefix(prefix, v.Value) {
				continue
			}
			area += s.area()
			for i, unit := range s.units {
				if unit == "H87" {
					pieces += int64(s.quantities[i])
				}
			}
		}
		if v.Area != float64(area) || v.Pieces != float64(pieces) {
			t.Fatalf("%+v: %s: got %v m² and %v pieces, want %d and %d", q, v.Value, v.Area, v.Pieces, area, pieces)
		}
	}
}

func TestADamagedIndexIsRefusedOrEmpty(t *testing.T) {
	type damage struct {
		name       string
		spoil      func(dir string) error
		mayBeWhole bool // the damage may have no effect
	}
	all := []damage{
		{"a byte of a segment", func(dir string) error { return spoil(dir, "*.zap", 100) }, false},
		{"the list of segments", func(dir string) error { return spoil(dir, "root.bolt", 0) }, false},
		{"a segment is missing", func(dir string) error { return onFirst(dir, "*.zap", os.Remove) }, false},
		{"a segment is cut off", func(dir string) error {
			return onFirst(dir, "*.zap", func(name string) error { return os.Truncate(name, 50) })
		}, false},
	}
	// The index must notice a list that is too short. If it mapped such a list into memory, the process would crash.
	for tenths := range int64(10) {
		all = append(all, damage{fmt.Sprintf("the list of segments has %d tenths of its bytes", tenths), func(dir string) error {
			name := filepath.Join(dir, "root.bolt")
			info, err := os.Stat(name)
			if err != nil {
				return err
			}
			return os.Truncate(name, info.Size()*tenths/10)
		}, true})
	}
	whole := t.TempDir()
	x := openIndex(t, whole)
	apply(t, x, stateAt(1e15), simple{n: 1, position: 1e15, status: client.Active, title: "слово"})
	expect.OK(t, errors.Join(x.setFormat(indexFormat), x.Close()))
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			expect.OK(t, errors.Join(os.CopyFS(dir, os.DirFS(whole)), c.spoil(dir)))
			x, err := Open(dir, synonyms(t), codenames.Lists{})
			if errors.Is(err, ErrDamaged) {
				return
			}
			expect.FatalIf(t, err != nil, "got %v, want an index without a state, or %v", err, ErrDamaged)
			defer x.Close()
			if got := x.State(); got != (replica.State{}) && (!c.mayBeWhole || got != stateAt(1e15)) {
				t.Errorf("got an index at %+v, want one without a state, or %v", got, ErrDamaged)
			}
		})
	}
}

func onFirst(dir, pattern string, do func(string) error) error {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no file %s: %w", pattern, err)
	}
	return do(files[0])
}

// spoil changes bytes in the first file that matches a pattern.
func spoil(dir, pattern string, at int64) error {
	return onFirst(dir, pattern, func(name string) error {
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = file.WriteAt([]byte(strings.Repeat("x", 8192)), at)
		return err
	})
}

func TestAnIndexOfAnotherVersionIsRefused(t *testing.T) {
	dir := t.TempDir()
	x := openIndex(t, dir)
	expect.OK(t, x.setFormat("4"))
	expect.OK(t, x.Close())
	if _, err := Open(dir, synonyms(t), codenames.Lists{}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), `"4"`) {
		t.Errorf("got %v, want %v and the format", err, ErrDamaged)
	}
}

func TestOneProcessHasTheIndexOpen(t *testing.T) {
	dir := t.TempDir()
	x := openIndex(t, dir)
	defer x.Close()
	other, err := Open(dir, synonyms(t), codenames.Lists{})
	if err == nil {
		other.Close()
	}
	expect.ErrorIf(t, err == nil || errors.Is(err, ErrDamaged), "got %v, want another error than %v", err, ErrDamaged)
}

func TestASearchEndsWithItsContext(t *testing.T) {
	x := openIndex(t, t.TempDir())
	defer x.Close()
	apply(t, x, stateAt(1e15), simple{n: 1, position: 1e15, status: client.Active, title: "слово"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.FaultOf(t, fault.Unavailable, "")(x.Search(ctx, search.Query{Limit: 1}))
}

func TestTheNewestChangeIsKnown(t *testing.T) {
	x := openIndex(t, t.TempDir())
	defer x.Close()
	for _, c := range []struct{ upto, position, want int64 }{
		{2e15, 1e15, 2e15}, {3e15, 4e15, 4e15}, {5e15, 2e15, 5e15},
	} {
		apply(t, x, stateAt(c.upto), simple{n: int(c.position / 1e15), position: c.position, status: client.Active})
		expect.Value(t, c.want, "")(x.Newest())
	}
}

func TestAnEarlierStateDoesNotReplaceALaterOne(t *testing.T) {
	x := openIndex(t, t.TempDir())
	defer x.Close()
	apply(t, x, stateAt(2e15), simple{n: 1, position: 2e15, status: client.Active, title: "нове"})
	apply(t, x, stateAt(2e15+1), simple{n: 1, position: 1e15, status: client.Active, title: "старе"})
	expect.Equal(t, mustSearch(t, x, search.Query{Text: "нове", Limit: 1}).Total, 1, "assets of the later state")
}

// TestEachAnswerIsOfOneState gives all assets another status again and again, while searches run at the same
// time. All hits and facets of an answer must have the same status.
// Promises: search-position
func TestEachAnswerIsOfOneState(t *testing.T) {
	const assets, changes = 5, 60
	x := openIndex(t, t.TempDir())
	statuses := []client.Status{client.Pending, client.Verification, client.Active}
	change := func(n int) {
		list := make([]simple, assets)
		for i := range list {
			list[i] = simple{n: i, position: 1e15 + int64(n*assets+i), status: statuses[n%len(statuses)], title: "слово"}
		}
		apply(t, x, stateAt(list[assets-1].position), list...)
	}
	change(0)
	var done atomic.Bool
	var searching sync.WaitGroup
	for range 4 {
		searching.Go(func() {
			for !done.Load() && !t.Failed() {
				got, err := x.Search(t.Context(), search.Query{Text: "слово", Limit: 10, Facets: []search.FacetName{search.ByStatus}})
				if err != nil || len(got.Hits) != assets || len(got.Facets[0].Values) != 1 {
					t.Errorf("got %d hits of the states %v, %v, want %d of one", len(got.Hits), got.Facets, err, assets)
					return
				}
				var newest client.Timestamp
				for _, hit := range got.Hits {
					a, err := hit.Decode()
					if err != nil || string(a.Status) != got.Facets[0].Values[0].Value {
						t.Errorf("got the hit %s, %v, want it %s", hit.Asset, err, got.Facets[0].Values[0].Value)
					}
					newest = max(newest, a.DateModified)
				}
				if at := got.Position.Offset; newest < at {
					t.Errorf("got assets up to %s at the position %s, want every change up to there", newest, at)
				}
			}
		})
	}
	for n := 1; n < changes && !t.Failed(); n++ {
		change(n)
	}
	done.Store(true)
	searching.Wait()
	expect.OK(t, x.Close())
}
