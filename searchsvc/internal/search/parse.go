package search

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"asset-registry/shared/fault"
	"asset-registry/shared/isotime"
	"asset-registry/shared/ukrainian"
)

// The parameters of a search (docs/contract.md, "Search").
const (
	textParam          = "q"
	exactParam         = "exact"
	publishedFromParam = "published_from"
	publishedToParam   = "published_to"
	modifiedFromParam  = "modified_from"
	modifiedToParam    = "modified_to"
	quantityFromParam  = "quantity_from"
	quantityToParam    = "quantity_to"
	quantityUnitParam  = "quantity_unit"
	sortParam          = "sort"
	limitParam         = "limit"
	afterParam         = "search_after"
	facetsParam        = "facets"
	facetLimitParam    = "facet_limit"
)

// Parse reads the parameters of a search. A list is written as a repeated parameter; facets may also have several
// names with commas between them. A date without a time stands for a day in the given time zone; nil: UTC. Parse
// ignores unknown and empty parameters. The error is a fault.Invalid that lists the given faults, those of the query
// string, and every faulty parameter.
func Parse(values url.Values, zone *time.Location, faults ...fault.Detail) (Query, error) {
	p := parser{values: values, zone: cmp.Or(zone, time.UTC), faults: faults}
	q := Query{Text: p.text(), Exact: p.flag(exactParam), Zone: zone}
	f := &q.Filters
	for _, property := range Properties {
		if property.IsFilter {
			*f = f.With(property.Name, p.filter(property))
		}
	}
	f.Published = p.times(publishedFromParam, publishedToParam)
	f.Modified = p.times(modifiedFromParam, modifiedToParam)
	f.Quantity = Quantities{p.number(quantityFromParam), p.number(quantityToParam), p.unit()}
	q.Limit = p.count(limitParam, DefaultLimit, MaxLimit)
	q.FacetLimit = p.count(facetLimitParam, DefaultFacetLimit, MaxFacetLimit)
	q.Facets = p.facets()
	q.Sort = p.sort(q.Text)
	q.Also = q.Sort == ByRelevance && !q.Exact
	q.After = p.after(q.Sort)
	if len(p.faults) > 0 {
		return Query{}, &fault.Error{Kind: fault.Invalid, Details: p.faults}
	}
	return q, nil
}

// parser collects the faults of parameters.
type parser struct {
	values url.Values
	zone   *time.Location // time zone of days
	faults []fault.Detail
}

func (p *parser) fault(name, format string, args ...any) {
	p.faults = append(p.faults, fault.Detail{
		Location: fault.Query, Name: name, Description: fmt.Sprintf(format, args...),
	})
}

// The method `one` returns the first value of a parameter without blanks around it.
func (p *parser) one(name string) string { return strings.TrimSpace(p.values.Get(name)) }

// flag returns whether a parameter is 1. It may also be 0 or absent.
func (p *parser) flag(name string) bool {
	switch p.one(name) {
	case "", "0":
		return false
	case "1":
		return true
	}
	p.fault(name, "Value must be 1 or 0.")
	return false
}

func (p *parser) text() string {
	text := p.one(textParam)
	switch {
	case utf8.RuneCountInString(text) > MaxText:
		p.fault(textParam, "The text may have %d characters.", MaxText)
	case len(ukrainian.Ask(text)) > MaxWords: // words are counted as in the index: one character may be several words
		p.fault(textParam, "The text may have %d words.", MaxWords)
	default:
		return text
	}
	return ""
}

// filter returns the values of the filter by a property.
func (p *parser) filter(by Property) []string {
	list, fault := by.Read(p.values[string(by.Name)])
	if fault != "" {
		p.fault(string(by.Name), "%s", fault)
	}
	return list
}

// times returns the range between two parameters. A date stands for its whole day, which may have 23 or 25
// hours.
func (p *parser) times(from, to string) Times {
	start, _ := p.time(from)
	end, isDay := p.time(to)
	switch {
	case end.IsZero():
	case isDay:
		end = end.AddDate(0, 0, 1)
	default:
		end = end.Add(time.Microsecond)
	}
	if !start.IsZero() && !end.IsZero() && !start.Before(end) {
		p.fault(from, "The start must be before the end, %s.", to)
	}
	return Times{start, end}
}

// time returns the time of a parameter. The parameter may have any form that an offset of the feed may have
// (docs/contract.md, "Offsets").
func (p *parser) time(name string) (at time.Time, isDay bool) {
	text := p.one(name)
	if text == "" {
		return time.Time{}, false
	}
	at, err := isotime.ParseOffset(text, p.zone)
	if err != nil {
		p.fault(name, "Could not parse %.64q. Should be ISO8601. For example: 2026-11-20", text)
		return time.Time{}, false
	}
	return at, isotime.IsDate(text)
}

func (p *parser) number(name string) *float64 {
	text := p.one(name)
	if text == "" {
		return nil
	}
	value, err := strconv.ParseFloat(text, 64)
	plain := strings.Trim(text, "0123456789.-") == "" // no hexadecimal digits, no words such as NaN
	if err != nil || !plain || len(text) > 40 {
		p.fault(name, "Value must be a decimal number such as 240.5.")
		return nil
	}
	return &value
}

func (p *parser) unit() Unit {
	unit := Unit(p.one(quantityUnitParam))
	if unit != "" && !slices.Contains(Units, unit) {
		p.fault(quantityUnitParam, "Value must be one of %s.", join(Units))
	}
	return unit
}

// count returns a parameter that must be a whole number, from 0 to the upper bound in the argument `most`. If the
// request does not have the parameter, it returns the default in the argument `without`.
func (p *parser) count(name string, without, most int) int {
	text := p.one(name)
	if text == "" {
		return without
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		p.fault(name, "Value must be a whole number from 0 to %d.", most)
	}
	return n
}

func (p *parser) facets() []FacetName {
	var names []FacetName
	for _, value := range p.values[facetsParam] {
		for name := range strings.SplitSeq(value, ",") {
			name := FacetName(strings.TrimSpace(name))
			switch {
			case name == "" || slices.Contains(names, name):
			case !slices.Contains(FacetNames(), name):
				p.fault(facetsParam, "Value must be one of %s.", join(FacetNames()))
				return nil
			case len(names) == MaxFacets:
				p.fault(facetsParam, "At most %d facets are counted.", MaxFacets)
				return nil
			default:
				names = append(names, name)
			}
		}
	}
	return names
}

func (p *parser) sort(text string) Sort {
	sort := Sort(p.one(sortParam))
	switch {
	case sort == "" && text != "":
		return ByRelevance
	case sort == "" || sort == ByRelevance && text == "":
		return NewestFirst
	case !slices.Contains(Sorts, sort):
		p.fault(sortParam, "Value must be one of %s.", join(Sorts))
	}
	return sort
}

func (p *parser) after(sort Sort) *Cursor {
	text := p.one(afterParam)
	if text == "" {
		return nil
	}
	c, err := ParseCursor(text)
	if err != nil || c.Sort != sort {
		p.fault(afterParam, "Value must come from next_page of an answer with the same sort.")
		return nil
	}
	return &c
}

func join[T ~string](names []T) string {
	return strings.Join(Texts(names), ", ")
}

// Values returns the parameters from which Parse returns the same question. It leaves out parameters that have
// their default.
func (q Query) Values() url.Values {
	v := url.Values{}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	f := q.Filters
	set(textParam, q.Text)
	if q.Exact {
		set(exactParam, "1")
	}
	for _, p := range Properties {
		if list := f.ValuesOf(p.Name); len(list) > 0 {
			v[string(p.Name)] = slices.Clone(list)
		}
	}
	set(publishedFromParam, timeText(f.Published.From, 0, q.Zone))
	set(publishedToParam, timeText(f.Published.Until, time.Microsecond, q.Zone))
	set(modifiedFromParam, timeText(f.Modified.From, 0, q.Zone))
	set(modifiedToParam, timeText(f.Modified.Until, time.Microsecond, q.Zone))
	set(quantityFromParam, numberText(f.Quantity.From))
	set(quantityToParam, numberText(f.Quantity.To))
	set(quantityUnitParam, string(f.Quantity.Unit))
	if q.Sort != NewestFirst && q.Sort != ByRelevance || q.Sort == NewestFirst && q.Text != "" && !q.Also {
		set(sortParam, string(q.Sort))
	}
	if q.Limit != DefaultLimit {
		set(limitParam, strconv.Itoa(q.Limit))
	}
	if q.After != nil {
		set(afterParam, q.After.String())
	}
	set(facetsParam, strings.ReplaceAll(join(q.Facets), " ", ""))
	if q.FacetLimit != DefaultFacetLimit && q.FacetLimit != 0 {
		set(facetLimitParam, strconv.Itoa(q.FacetLimit))
	}
	return v
}

// timeText returns a bound, minus the given unit, as the text of a parameter. The text is a date if the bound is
// the start of a day in the zone, and otherwise a time.
func timeText(bound time.Time, unit time.Duration, zone *time.Location) string {
	if bound.IsZero() {
		return ""
	}
	at := bound.Add(-unit).In(cmp.Or(zone, time.UTC))
	if day := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, at.Location()); unit == 0 && at.Equal(day) ||
		unit > 0 && bound.Equal(day.AddDate(0, 0, 1)) {
		return at.Format(time.DateOnly)
	}
	return at.UTC().Format(time.RFC3339Nano)
}

func numberText(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', -1, 64)
}
