package site

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/query"
)

// statisticsOf are the facets on the page of statistics. The last one is shown as the column chart.
var statisticsOf = []search.FacetName{
	search.ByStatus, search.ByRegion, search.ByClassification, search.ByCustodian, search.ByKyivMonth,
}

const (
	figuresFor = 30 * time.Second // time for which the counts of all assets are used before they are made again
	maxMonths  = 24
)

// figures keeps the counts of all assets for a while.
type figures struct {
	turn  turns // only one request at a time counts the assets
	until time.Time
	found search.Result
}

// count counts all assets, unless that was done lately. The caller must have a turn, so it never waits for a turn while
// others wait for its count.
func (s *Site) count(ctx context.Context) (search.Result, error) {
	end, err := s.figures.turn.take(ctx)
	if err != nil {
		return search.Result{}, err
	}
	defer end()
	if s.config.Now().Before(s.figures.until) {
		return s.figures.found, nil
	}
	found, err := s.config.Searcher.Search(ctx, countsOf(search.Query{}))
	if err == nil {
		s.figures.found, s.figures.until = found, s.config.Now().Add(figuresFor)
	}
	return found, err
}

// countsOf returns the query that counts the hits of q by property. The counts of a property ignore the filter of q by
// this property. So each number equals the number of hits of the search to which it links.
func countsOf(q search.Query) search.Query {
	q.Facets, q.FacetLimit, q.Apart, q.Sums, q.Limit, q.After = statisticsOf, mostShown, true, true, 0, nil
	return q
}

// countFound counts what a search finds. The caller must have a turn. For a search without conditions, it uses the
// counts of all assets. If whole is true, it returns as many values of each property as a page may show.
func (s *Site) countFound(ctx context.Context, q search.Query, whole bool) (search.Result, error) {
	if queryOf(q) == "" && !whole {
		return s.count(ctx)
	}
	q = countsOf(q)
	if whole {
		q.FacetLimit = search.MaxFacetLimit
	}
	return s.config.Searcher.Search(ctx, q)
}

// statisticsPage is the body of the page of statistics.
type statisticsPage struct {
	Total  int64
	Text   string // words of the search; "": no words
	Active []chip
	Found  string // path of the search; "": all assets are counted
	Charts []bars
	Months columns
}

// bars is a chart with a row for each value.
type bars struct {
	Name string
	Rows []bar
	More bool
	All  string // path of the page with more rows; "": there are no more
}

// bar is a row of a chart, for one value.
type bar struct {
	Name  string
	Link  string // path of the search for the value; "": the path is too long
	Count int64
	Width string // percent of the longest bar
	Sums  []to   // the area and the number of pieces of the assets
}

// to is a text, and the path to which it links. If Link is "", the text is not a link.
type to struct{ Name, Link string }

func (s *Site) statistics(w http.ResponseWriter, r request) error {
	sent, faults := query.Read(r.URL.RawQuery, ofPage)
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
	found, err := s.countFound(r.Context(), q, whole != "")
	if err != nil {
		return err
	}
	p := statisticsPage{Total: found.Total, Text: q.Text}
	if of := queryOf(q); of != "" {
		p.Found = "/" + string(r.lang) + "/" + of
		p.Active = chips(r.lang, statisticsPath, q, found.Facets)
	}
	for _, f := range found.Facets {
		if f.Name == search.ByKyivMonth {
			p.Months = newColumns(r.lang, q, f.Values)
			continue
		}
		p.Charts = append(p.Charts, newBars(r.lang, q, f, whole))
	}
	v := s.view(r, texts["statistics.title"].in(r.lang), p)
	v.About, v.Section = texts["statistics.about"].in(r.lang), "statistics"
	v.State.At = timeOf(found.Position.Offset)
	if v.NoIndex = p.Found != "" || whole != ""; !v.NoIndex {
		v.Linked = linkedData(r.lang, r.base, v.State.At)
	}
	v.addQuery(v.Rest, queryOf(q))
	return s.show(w, r, http.StatusOK, "statistics", v)
}

// statisticsPath is the path of the statistics after the language.
const statisticsPath = "/statistics"

// newBars returns the chart of a property. If the argument `whole` names this property, the chart has as many rows as a
// page may show.
func newBars(l Lang, q search.Query, f search.Facet, whole search.FacetName) bars {
	chart := bars{Name: string(f.Name), More: f.More}
	f.Values = namelessLast(f)
	most := firstShown
	switch f.Name {
	case whole:
		most = search.MaxFacetLimit
	case search.ByRegion:
		most = mostShown
	}
	if len(f.Values) > most {
		f.Values, chart.More = f.Values[:most], true
	}
	if chart.More && most == firstShown {
		sent := q.Values()
		sent.Set(moreParam, chart.Name)
		chart.All = "/" + string(l) + statisticsPath + "?" + sent.Encode() + "#by-" + chart.Name
	}
	longest := int64(1)
	for _, c := range f.Values {
		longest = max(longest, c.Count)
	}
	for _, c := range f.Values {
		q := q
		if search.PropertyOf(f.Name).IsFilter {
			q.Filters = q.Filters.With(f.Name, []string{c.Value})
		}
		row := bar{
			Name: valueName(l, f.Name, c), Link: repeated("/"+string(l)+"/", queryOf(q)), Count: c.Count,
			Width: percent(c.Count, longest),
		}
		if c.Area > 0 {
			row.Sums = append(row.Sums, sumOf(l, q, c.Area, search.SquareMetres, search.LargestFirst))
		}
		if c.Pieces > 0 {
			row.Sums = append(row.Sums, sumOf(l, q, c.Pieces, search.Pieces, defaultSort(q)))
		}
		chart.Rows = append(chart.Rows, row)
	}
	return chart
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

// Sizes of the column chart, in units of its SVG.
const (
	columnsWidth  = 640
	columnsHeight = 220
	columnsLeft   = 48
	columnsRight  = 36 // half of the width of the last label
	columnsTop    = 12
	columnsBottom = 28
)

// columns is a chart with a column for each month.
type columns struct {
	Width, Height, Left, Right int
	Columns                    []column
	Ticks                      []tick
}

// column is a column of the chart, for one month.
type column struct {
	Name, Short, Link   string
	Count               int64
	X, Y, Wide, High, M float64
	Labelled            bool
}

// tick is a horizontal line of the chart, and the number beside it.
type tick struct {
	Y     float64
	Count int64
}

// newColumns returns the chart of the newest months. A month without assets has a column of height 0.
func newColumns(l Lang, q search.Query, values []search.Count) columns {
	c := columns{Width: columnsWidth, Height: columnsHeight, Left: columnsLeft, Right: columnsWidth - columnsRight}
	counts := map[string]int64{}
	var names []string
	for _, v := range values {
		if _, err := time.Parse("2006-01", v.Value); err == nil {
			counts[v.Value] = v.Count
			names = append(names, v.Value)
		}
	}
	if len(names) == 0 {
		return c
	}
	slices.Sort(names)
	most := int64(1)
	last, _ := time.Parse("2006-01", names[len(names)-1]) // parsed above without an error
	for n := maxMonths - 1; n >= 0; n-- {
		at := last.AddDate(0, -n, 0)
		name := at.Format("2006-01")
		if name < names[0] {
			continue
		}
		c.Columns = append(c.Columns, column{
			Name: month(l, name), Short: shortMonths[at.Month()-1].in(l), Count: counts[name], Link: monthLink(l, q, at),
		})
		most = max(most, counts[name])
	}
	c.draw(most)
	return c
}

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

func (c *columns) draw(most int64) {
	step := niceStep(most)
	top := (most + step - 1) / step * step
	floor := float64(columnsHeight - columnsBottom)
	scale := func(n int64) float64 { return (floor - columnsTop) * float64(n) / float64(top) }
	for n := int64(0); n <= top; n += step {
		c.Ticks = append(c.Ticks, tick{floor - scale(n), n})
	}
	slot := float64(columnsWidth-columnsLeft-columnsRight) / float64(max(6, len(c.Columns)))
	every := max(1, (len(c.Columns)+5)/6)
	for i := range c.Columns {
		at := &c.Columns[i]
		x := columnsLeft + slot*float64(i)
		at.X, at.Wide, at.High = x+slot*0.15, slot*0.7, scale(at.Count)
		at.Y, at.M = floor-at.High, x+slot/2
		at.Labelled = (len(c.Columns)-1-i)%every == 0
	}
}

// niceStep returns the distance between the lines of a chart up to n. The distance is the smallest of 1, 2, 5, 10, 20,
// 50 and so on for which n/step is below 5.
func niceStep(n int64) int64 {
	for power := int64(1); ; power *= 10 {
		for _, digit := range []int64{1, 2, 5} {
			if step := digit * power; n/step < 5 {
				return step
			}
		}
	}
}
