package site

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/export"
)

// statisticsOf are the facets on the page of statistics.
var statisticsOf = []search.FacetName{
	search.ByStatus, search.ByRegion, search.ByClassification, search.ByCustodian, search.ByKyivMonth,
}

const maxMonths = 24

// countsOf returns the query that counts the hits of q by property.
func countsOf(q search.Query) search.Query {
	q.Facets, q.FacetLimit, q.Sums, q.Limit, q.After = statisticsOf, mostShown, true, 0, nil
	return q
}

// statisticsPage is the body of the page of statistics.
type statisticsPage struct {
	Total  int64
	Text   string // words of the search; "": no words
	Active []chip
	Found  string // path of the search; "": all assets are counted
	Files  []link // files with the figures
	Charts []bars
	Months bars
}

// bars is a chart with a row for each value. The last rows are the other values, and the assets without a value.
type bars struct {
	Name string
	Rows []bar
	All  string // path of the page with more rows; "": there are no more
	Sum  int64  // sum of the rows, if it is larger than the number of assets; else 0
}

// bar is a row of a chart, for one value.
type bar struct {
	Value, Name  string
	Link         string // path of the search for the value; "": there is none, or the path is too long
	Count        int64
	Width        string // percent of the longest bar
	Area, Pieces float64
	Sums         []to // the area and the number of pieces of the assets
}

// to is a text, and the path to which it links. If Link is "", the text is not a link.
type to struct{ Name, Link string }

// statistics shows the page of statistics.
func (s *Site) statistics(w http.ResponseWriter, r request) error { return s.figuresIn("", w, r) }

// figuresIn answers with the figures of a search: with a file if there is an ending, else with the page.
func (s *Site) figuresIn(ending string, w http.ResponseWriter, r request) error {
	sent, faults := readQuery(r.lang, r.URL.RawQuery)
	q, err := search.Parse(sent, kyiv, faults...)
	if err != nil {
		return err
	}
	whole := search.FacetName(sent.Get(moreParam))
	if !slices.Contains(statisticsOf, whole) {
		whole = ""
	}
	q.Filters = tidied(q.Filters)
	q = feedQuery(q)
	q.Sort = defaultSort(q)
	if err := s.takeTurn(&r); err != nil {
		return err
	}
	defer r.end()
	counted := countsOf(q)
	if whole != "" || ending != "" {
		counted.FacetLimit = search.MaxFacetLimit
	}
	found, err := s.config.Searcher.Search(r.Context(), counted)
	if err != nil {
		return err
	}
	found.Facets = distinct(found.Facets)
	p := statisticsPage{Total: found.Total, Text: q.Text}
	of := queryOf(q)
	if of != "" {
		p.Found = "/" + string(r.lang) + "/" + of
		p.Active = chips(r.lang, statisticsPath, q, found.Facets)
	}
	for _, e := range tableEndings {
		p.Files = append(p.Files, link{"/" + string(r.lang) + statisticsPath + "." + e + of, strings.ToUpper(e)})
	}
	for _, f := range found.Facets {
		if f.Name == search.ByKyivMonth {
			p.Months = newMonths(r.lang, q, f, s.config.Now())
			continue
		}
		most := firstShown
		switch {
		case f.Name == whole || ending != "":
			most = search.MaxFacetLimit
		case f.Name == search.ByRegion:
			most = mostShown
		}
		p.Charts = append(p.Charts, newBars(r.lang, q, f, most, found.Total))
	}
	if ending != "" {
		return s.sendFigures(w, r, ending, p)
	}
	v := s.view(r, texts["statistics.title"].in(r.lang), p)
	v.About, v.Section = texts["statistics.about"].in(r.lang), "statistics"
	v.State.At = timeOf(found.Position.Offset)
	if v.NoIndex = p.Found != "" || whole != ""; !v.NoIndex {
		v.Linked = linkedData(r.lang, r.base, v.State.At)
	}
	v.addQuery(v.Rest, of)
	return s.show(w, r, http.StatusOK, "statistics", v)
}

// statisticsPath is the path of the statistics after the language.
const statisticsPath = "/statistics"

// tableEndings are the endings of the paths of files with figures.
var tableEndings = []string{"xlsx", "csv"}

// sendFigures answers with a file that has the rows of all charts.
func (s *Site) sendFigures(w http.ResponseWriter, r request, ending string, p statisticsPage) error {
	rows := [][]any{{"table", "value", "name", "assets", "area_m2", "pieces", "search"},
		{"", "", texts["statistics.count"].in(r.lang), p.Total, "", "", r.base + p.Found}}
	number := func(n float64) any {
		if n == 0 {
			return ""
		}
		return json.Number(strconv.FormatFloat(n, 'f', -1, 64))
	}
	for _, chart := range append(p.Charts, p.Months) {
		for _, b := range chart.Rows {
			search := b.Link
			if search != "" {
				search = r.base + search
			}
			rows = append(rows, []any{chart.Name, b.Value, b.Name, b.Count, number(b.Area), number(b.Pieces), search})
		}
	}
	var file bytes.Buffer
	contentType, err := export.WriteTable(&file, ending, "assets", rows)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="statistics.`+ending+`"`)
	return s.send(w, r, http.StatusOK, contentType, file.Bytes())
}

// newBars returns the chart of a property with at most so many values. The last argument is the number of assets.
func newBars(l Lang, q search.Query, f search.Facet, most int, total int64) bars {
	chart := bars{Name: string(f.Name)}
	f.Values = namelessLast(f)
	if f.More = f.More || len(f.Values) > most; len(f.Values) > most {
		f.Values = f.Values[:most]
	}
	if f.More && most == firstShown {
		sent := q.Values()
		sent.Set(moreParam, chart.Name)
		chart.All = "/" + string(l) + statisticsPath + "?" + sent.Encode() + "#by-" + chart.Name
	}
	for _, c := range f.Values {
		row := bar{Value: c.Value, Name: valueName(l, f.Name, c), Count: c.Count, Area: c.Area, Pieces: c.Pieces}
		if strings.HasPrefix(c.Value, sharesCode) {
			row.Pieces = 0
		}
		q, chosen := q, q.Filters.ValuesOf(f.Name)
		q.Filters = q.Filters.With(f.Name, []string{c.Value})
		row.Link = repeated("/"+string(l)+"/", queryOf(q))
		row.addSums(l, q)
		if !isWithin(f.Name, chosen, c.Value) {
			row.Link = ""
			for i := range row.Sums {
				row.Sums[i].Link = ""
			}
		}
		chart.Rows = append(chart.Rows, row)
	}
	chart.end(l, f, total)
	return chart
}

// sharesCode is the beginning of the codes of corporate rights. Their number of pieces is a number of shares.
const sharesCode = "08"

// isWithin reports whether all assets with a value meet a filter, so that a search can have the value as its filter
// instead.
func isWithin(of search.FacetName, chosen []string, value string) bool {
	return len(chosen) == 0 || slices.ContainsFunc(chosen, func(c string) bool {
		prefix, _ := assetfilter.CodePrefix(c)
		return c == value || of == search.ByClassification && strings.HasPrefix(value, prefix)
	})
}

// end adds the last rows, and the widths of all rows.
func (b *bars) end(l Lang, f search.Facet, total int64) {
	others, longest := f.All, int64(1)
	for _, row := range b.Rows {
		others -= row.Count
	}
	others = max(0, others)
	if len(b.Rows) > 0 || f.None > 0 {
		b.Rows = append(b.Rows, bar{Name: texts["statistics.others"].in(l), Count: others},
			bar{Name: texts["statistics.none"].in(l), Count: f.None})
	}
	for _, row := range b.Rows {
		longest = max(longest, row.Count)
		b.Sum += row.Count
	}
	for i := range b.Rows {
		b.Rows[i].Width = percent(b.Rows[i].Count, longest)
	}
	if b.Sum <= total {
		b.Sum = 0
	}
}

// distinct returns facets in which no two custodians have the same name: those have their codes, too.
func distinct(facets []search.Facet) []search.Facet {
	facets = slices.Clone(facets)
	for i, f := range facets {
		if f.Name != search.ByCustodian {
			continue
		}
		seen := map[string]int{}
		for _, c := range f.Values {
			seen[c.Name]++
		}
		facets[i].Values = slices.Clone(f.Values)
		for j, c := range f.Values {
			if c.Name != "" && seen[c.Name] > 1 {
				facets[i].Values[j].Name = c.Name + " (" + c.Value + ")"
			}
		}
	}
	return facets
}

// addSums adds the texts of the sums. The argument q is the search for the value.
func (b *bar) addSums(l Lang, q search.Query) {
	if b.Area > 0 {
		b.Sums = append(b.Sums, sumOf(l, q, b.Area, search.SquareMetres, search.LargestFirst))
	}
	if b.Pieces > 0 {
		b.Sums = append(b.Sums, sumOf(l, q, b.Pieces, search.Pieces, defaultSort(q)))
	}
}

// sumOf returns a sum of areas or of pieces, and a link to the assets that it covers. The query q is the search of the
// row.
func sumOf(l Lang, q search.Query, number float64, unit search.Unit, sort search.Sort) to {
	if q.Filters.Quantity == (search.Quantities{}) {
		q.Filters.Quantity.Unit = unit
	}
	q.Sort = sort
	return to{amountText(l, number, unit), repeated("/"+string(l)+"/", queryOf(q))}
}

// amountText returns a number of square metres or pieces for people. Large areas are in hectares, and no number
// has more digits than people need.
func amountText(l Lang, number float64, unit search.Unit) string {
	const hectare, manyHectares = 10_000, 100
	code := "H87"
	if unit == search.SquareMetres {
		if code = "MTK"; number >= manyHectares*hectare {
			code, number = "HAR", number/hectare
		}
	}
	if number < 100 {
		number = math.Round(number*100) / 100
	} else {
		number = math.Round(number)
	}
	said := strconv.FormatFloat(number, 'f', -1, 64)
	return decimal(l, said) + "\u00a0" + units[code].afterText(l, said)
}

// percent returns part/whole as a percentage, with one digit after the point.
func percent(part, whole int64) string {
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64)
}

// newMonths returns the chart of the newest months. If the search has a time, its months without assets are there.
// Other months stand between months with assets.
func newMonths(l Lang, q search.Query, f search.Facet, now time.Time) bars {
	c := bars{Name: string(f.Name)}
	counts, first, last := map[string]int64{}, time.Time{}, time.Time{}
	reach := func(at time.Time) {
		at = time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, kyiv)
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	for _, v := range f.Values {
		if at, err := time.ParseInLocation(monthForm, v.Value, kyiv); err == nil {
			counts[v.Value] = v.Count
			reach(at)
		}
	}
	chosen := q.Filters.Published
	if from := chosen.From.In(kyiv); !chosen.From.IsZero() && from.Before(now) {
		reach(from)
	}
	if until := chosen.Until.Add(-1).In(kyiv); !chosen.Until.IsZero() && until.Before(now) {
		reach(until)
	} else if chosen != (search.Times{}) {
		reach(now.In(kyiv))
	}
	for n := maxMonths - 1; n >= 0 && !last.IsZero(); n-- {
		at := last.AddDate(0, -n, 0)
		if at.Before(first) {
			continue
		}
		value := at.Format(monthForm)
		row := bar{Value: value, Name: month(l, value), Count: counts[value]}
		if row.Count > 0 {
			row.Link = monthLink(l, q, at)
		}
		c.Rows = append(c.Rows, row)
	}
	months := len(c.Rows)
	if c.end(l, f, math.MaxInt64); months > 0 {
		earlier := &c.Rows[months]
		if earlier.Name = texts["statistics.earlier"].in(l); earlier.Count > 0 {
			q.Filters.Published.Until = last.AddDate(0, 1-months, 0)
			earlier.Link = repeated("/"+string(l)+"/", queryOf(q))
		}
	}
	return c
}

const monthForm = "2006-01"

// monthLink returns the path of the search q within a month, in the time of Kyiv.
func monthLink(l Lang, q search.Query, month time.Time) string {
	from := time.Date(month.Year(), month.Month(), 1, 0, 0, 0, 0, kyiv)
	until := from.AddDate(0, 1, 0)
	in := &q.Filters.Published
	if in.From.Before(from) {
		in.From = from
	}
	if in.Until.IsZero() || in.Until.After(until) {
		in.Until = until
	}
	return repeated("/"+string(l)+"/", queryOf(q))
}
