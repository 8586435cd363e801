package site

import (
	"fmt"
	"html/template"
	"math/big"
	"slices"
	"strings"
)

// The bounds of the facts at the top of a page.
const (
	mostKinds = 2 // kinds of property that are named
	mostUnits = 3 // units whose sums are named
	mostAbout = 200
	maxDigits = 40 // characters of a quantity that is added to others
)

// fact is a line at the top of the page of an asset: something that people look for first. A part
// with a path repeats the value that the record has there; others are computed.
type fact struct {
	Label string
	Parts []part
	Map   template.URL // of a place; "": none
}

// facts returns what the property is, how large, where, and who answers for it. Without a value
// there is no line.
func facts(c cursor, to outwards) []fact {
	items, custodian := c.each("items"), c.in("assetCustodian")
	where, at := places(c.l, items)
	all := []fact{
		{Label: texts["fact.kind"].in(c.l), Parts: kinds(c.l, items)},
		{Label: label(c.l, "quantity"), Parts: quantities(c.l, items)},
		{Label: texts["fact.place"].in(c.l), Parts: where, Map: to.onMap(at)},
		{Label: texts["fact.sale"].in(c.l), Parts: sales(c.each("relatedProcesses"), to)},
		{Label: label(c.l, "assetCustodian"), Parts: custodian.repeat("name").all()},
		{Label: label(c.l, "telephone"), Parts: custodian.telephone().all()},
	}
	return slices.DeleteFunc(all, func(f fact) bool { return len(f.Parts) == 0 })
}

// about returns a sentence for search engines and for those that get a link: the kind, the quantity,
// the place and the sale, and as much of the description as there is room for.
func (r record) about() string {
	var all []string
	for _, f := range r.Facts[:min(len(r.Facts), 4)] {
		all = append(all, textOf(f.Parts))
	}
	all = append(all, strings.Join(strings.Fields(shorten(r.Lead.Text, mostAbout)), " "))
	return shorten(strings.Join(all, " · "), mostAbout)
}

// repeat returns the part of a text as first does, for a second place on the page.
func (c cursor) repeat(name string) part {
	at := c.in(name)
	if translated := c.in(name + "_" + string(c.l)); c.l != Ukrainian && translated.hasText() {
		at = translated
	}
	if !at.hasText() {
		return part{}
	}
	return newPart(c.l, at.path, at.v)
}

func (c cursor) hasText() bool { return c.v != nil && c.v.isScalar() && c.v.text != "" }

// kinds returns the kinds of property of items, each once.
func kinds(l Lang, items []cursor) (parts []part) {
	var seen []string
	for _, item := range items {
		class := item.in("classification")
		kind := class.codeByName()
		if kind.Path == "" {
			kind = class.repeat("description")
		}
		if kind.Path == "" {
			kind = class.repeat("id")
		}
		if kind.Path == "" || slices.Contains(seen, kind.Text) {
			continue
		}
		if seen = append(seen, kind.Text); len(seen) <= mostKinds {
			parts = appendPart(parts, ", ", kind)
		}
	}
	return andMore(l, parts, len(seen)-mostKinds)
}

// andMore says how many more there are than the parts.
func andMore(l Lang, parts []part, more int) []part {
	if more > 0 {
		parts = append(parts, part{Text: " " + fmt.Sprintf(texts["fact.more"].in(l), more)})
	}
	return parts
}

// quantities returns the quantity of one item, or the sum for each unit of several.
func quantities(l Lang, items []cursor) []part {
	if len(items) == 1 {
		return items[0].quantity(cursor.repeat)
	}
	if len(items) == 0 {
		return nil
	}
	said := counted(l, "item", int64(len(items)))
	if sums := sums(l, items); len(sums) > 0 {
		said += ": " + strings.Join(sums[:min(len(sums), mostUnits)], ", ")
		if len(sums) > mostUnits {
			said += "…"
		}
	}
	return []part{{Text: said}}
}

// sums returns the sum of quantities for each unit, with as many decimals as the longest of them
// has. It returns none if one quantity is no plain number or has no unit.
func sums(l Lang, items []cursor) (all []string) {
	type sum struct {
		amount   big.Rat
		decimals int
		unit     cursor
	}
	byUnit := map[string]*sum{}
	var units []string // in the order of the record
	for _, item := range items {
		number := item.v.string("quantity")
		unit := item.in("unit").after("1", cursor.repeat).Text
		amount, ok := new(big.Rat).SetString(number)
		if !plain.MatchString(number) || len(number) > maxDigits || !ok || unit == "" {
			return nil
		}
		if byUnit[unit] == nil {
			byUnit[unit] = &sum{unit: item.in("unit")}
			units = append(units, unit)
		}
		to := byUnit[unit]
		to.amount.Add(&to.amount, amount)
		_, decimals, _ := strings.Cut(number, ".")
		to.decimals = max(to.decimals, len(decimals))
	}
	for _, unit := range units {
		of := byUnit[unit]
		number := of.amount.FloatString(of.decimals)
		all = append(all, decimal(l, number)+"\u00a0"+of.unit.after(number, cursor.repeat).Text)
	}
	return all
}

// textOf returns the texts of parts.
func textOf(parts []part) string {
	var said strings.Builder
	for _, p := range parts {
		said.WriteString(p.Text)
	}
	return said.String()
}

// sales returns the first related process.
func sales(processes []cursor, to outwards) []part {
	if len(processes) == 0 {
		return nil
	}
	p := processes[0]
	number := p.repeat("identifier")
	if number.Path == "" {
		number = p.repeat("relatedProcessID")
	}
	return appendPart(p.repeat("type").all(), " ", number.outside(to.toSale(p)))
}

// places returns the address of the first item that has one, the item, and how many other addresses
// there are.
func places(l Lang, items []cursor) (parts []part, at cursor) {
	var seen []string
	for _, item := range items {
		here := item.in("address").place()
		said := textOf(here)
		if said == "" || slices.Contains(seen, said) {
			continue
		}
		if seen = append(seen, said); len(seen) == 1 {
			parts, at = here, item
		}
	}
	return andMore(l, parts, len(seen)-1), at
}

// place returns an address without the country and the postal code. A region is left out if it has
// the name of the locality, as Kyiv has.
func (c cursor) place() (parts []part) {
	locality := c.repeat("locality").Text
	for _, name := range []string{"streetAddress", "locality", "region"} {
		p := c.repeat(name)
		if name == "region" && isCity(locality, p.Text) {
			continue
		}
		parts = appendPart(parts, ", ", p)
	}
	return parts
}

// isCity tells whether a region is the city of a locality, as Kyiv is.
func isCity(locality, region string) bool {
	return locality != "" && strings.TrimPrefix(region, "м. ") == strings.TrimPrefix(locality, "м. ")
}

// telephone returns the first number of an organisation that can be called, or else the first one.
func (c cursor) telephone() (first part) {
	for _, contact := range append([]cursor{c.in("contactPoint")}, c.each("additionalContactPoints")...) {
		number := contact.repeat("telephone")
		if number.Href != "" || number.Spans != nil {
			return number
		}
		if first.Path == "" {
			first = number
		}
	}
	return first
}
