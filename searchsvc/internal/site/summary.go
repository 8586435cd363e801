package site

import (
	"fmt"
	"html/template"
	"math/big"
	"slices"
	"strings"

	"asset-registry/searchsvc/internal/codenames"
)

// Limits of the facts at the top of a page.
const (
	mostKinds = 2 // maximum number of kinds of property in one fact
	mostUnits = 3 // maximum number of units in one fact; each unit has a separate sum
	mostAbout = 200
	maxDigits = 40 // characters of a quantity; longer ones are not added up
)

// fact is a line at the top of the page of an asset, with something that people look for first. A part with a
// path repeats a value of the record. Other parts are computed.
type fact struct {
	Label string
	Parts []part
	Map   template.URL // link to a map of the place; "": no link
}

// facts returns lines about the kind, the size and the place of the property, its sale, and its custodian. A
// line without a value is left out.
func facts(c cursor, to Links) []fact {
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

// about returns one sentence about the asset for search engines, and for previews of links: the kind, the
// quantity, the place, the sale, and the beginning of the description.
func (r record) about() string {
	var all []string
	for _, f := range r.Facts[:min(len(r.Facts), 4)] {
		all = append(all, textOf(f.Parts))
	}
	all = append(all, strings.Join(strings.Fields(codenames.Cut(r.Lead.Text, mostAbout)), " "))
	return codenames.Cut(strings.Join(all, " · "), mostAbout)
}

// repeat returns the same part as cursor.first, but does not mark the value as shown. It is for a text that the
// page shows a second time.
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

// kinds returns the different kinds of property of items.
func kinds(l Lang, items []cursor) (parts []part) {
	seen := map[string]bool{}
	for _, item := range items {
		class := item.in("classification")
		kind := class.codeByName()
		if kind.Path == "" {
			kind = class.repeat("description")
		}
		if kind.Path == "" {
			kind = class.repeat("id")
		}
		if kind.Path == "" || seen[kind.Text] {
			continue
		}
		if seen[kind.Text] = true; len(seen) <= mostKinds {
			parts = appendPart(parts, ", ", kind)
		}
	}
	return andMore(l, parts, len(seen)-mostKinds)
}

// andMore appends a part with the number of further values. It appends nothing if this number is 0.
func andMore(l Lang, parts []part, more int) []part {
	if more > 0 {
		parts = append(parts, part{Text: " " + fmt.Sprintf(texts["fact.more"].in(l), more)})
	}
	return parts
}

// quantities returns the quantity of a single item, or the sums, by unit, for several items.
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

// sums returns the sum of quantities for each unit. Each sum has as many decimals as the quantity with the most
// decimals. If a quantity is not a plain number or has no unit, sums returns nil.
func sums(l Lang, items []cursor) (all []string) {
	type sum struct {
		amount   big.Rat
		decimals int
		unit     cursor
	}
	byUnit := map[string]*sum{}
	var units []string // in the order in which they come in the record
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

// textOf returns the texts of parts, joined.
func textOf(parts []part) string {
	var said strings.Builder
	for _, p := range parts {
		said.WriteString(p.Text)
	}
	return said.String()
}

// sales returns the parts that show the first related process.
func sales(processes []cursor, to Links) []part {
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

// places returns the parts of the first address, and the item that has this address. If there are other
// addresses, the last part has their number.
func places(l Lang, items []cursor) (parts []part, at cursor) {
	seen := map[string]bool{}
	for _, item := range items {
		here := item.in("address").place()
		said := textOf(here)
		if said == "" || seen[said] {
			continue
		}
		if seen[said] = true; len(seen) == 1 {
			parts, at = here, item
		}
	}
	return andMore(l, parts, len(seen)-1), at
}

// place returns an address without the country and the postal code. It leaves out a region that is the same city
// as the locality, such as Kyiv.
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

// isCity reports whether a region and a locality are the same city, such as Kyiv.
func isCity(locality, region string) bool {
	return locality != "" && strings.TrimPrefix(region, "м. ") == strings.TrimPrefix(locality, "м. ")
}

// telephone returns a telephone number of an organisation: the first number that can be a link. If no number can
// be a link, it returns the first number.
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
