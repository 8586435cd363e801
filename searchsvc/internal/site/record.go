package site

import (
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
)

// record is a record of an asset as a page shows it. Each value of the record stands in one
// part of it, so the page has everything. The script that checks the record relies on that.
type record struct {
	Title, Lead part
	Number      []part
	Facts       []fact // repeats what people look for first
	Items       []item
	Decisions   []thing
	Documents   []document
	Custodian   []row
	Holder      []row
	Processes   []thing
	Times       []row
	Technical   []row // everything else
}

// row is a line of a record.
type row struct {
	Label string
	Parts []part
}

// thing is an item, a decision or a related process.
type thing struct {
	Title []part
	Rows  []row
}

// item is a part of the property.
type item struct {
	thing
	Number   int // from 1 on
	Quantity []part
	Map      template.URL // "": none
}

// document is the newest version of a document.
type document struct {
	thing
	About    []part  // kind, format, size and date
	Versions []thing // older ones, the newest first
}

// newRecord arranges a record for a page in a language, with names of codes and links to other sites.
func newRecord(l Lang, names codenames.Lists, root *value, to outwards) record {
	c := cursor{l, names, root, ""}
	r := record{Title: c.first("title"), Lead: c.first("description"), Facts: facts(c, to)}
	r.Number = c.in("assetID").part().all()
	r.Times = rows(
		c.row("date"), c.row("dateModified"),
		row{texts["asset.period"].in(l), c.in("rectificationPeriod").parts(" — ", "startDate", "endDate")},
	)
	for i, e := range c.each("items") {
		r.Items = append(r.Items, e.item(i+1))
		r.Items[i].Map = to.onMap(e)
	}
	for _, d := range c.each("decisions") {
		r.Decisions = append(r.Decisions, thing{
			Title: d.first("title").all(),
			Rows:  rows(d.row("decisionID"), d.row("decisionDate")),
		})
	}
	r.Documents = documents(c.each("documents"))
	for _, p := range c.each("relatedProcesses") {
		number, id := p.first("identifier").outside(to.toSale(p)), p.row("relatedProcessID")
		r.Processes = append(r.Processes, thing{Title: p.parts("", "type"),
			Rows: rows(row{renamed["relatedProcesses.identifier"].in(l), number.all()}, id, p.row("parentID"))})
	}
	r.Custodian = c.in("assetCustodian").organisation()
	r.Holder = c.in("assetHolder").organisation()
	r.Technical = c.rest()
	return r
}

// cursor is a value of a record and its path. Its methods mark the values that they return.
type cursor struct {
	l     Lang
	names codenames.Lists
	v     *value // nil: absent
	path  string
}

// in returns a member.
func (c cursor) in(name string) cursor {
	return cursor{c.l, c.names, c.v.get(name), join(c.path, name)}
}

// outside returns the part with a link that leads out of the registry; "": with none.
func (p part) outside(to template.URL) part {
	if to != "" {
		p.Href, p.Foreign = to, true
	}
	return p
}

// each returns the elements of a list.
func (c cursor) each(name string) []cursor {
	list := c.in(name)
	if list.v == nil {
		return nil
	}
	var all []cursor
	for i, e := range list.v.elements {
		all = append(all, cursor{c.l, c.names, e, join(list.path, strconv.Itoa(i))})
	}
	return all
}

// part returns the part of the value itself. It has no text if the value is absent, has no
// text or is shown already.
func (c cursor) part() part {
	if c.v == nil || !c.v.isScalar() || c.v.shown {
		return part{}
	}
	c.v.shown = true
	return newPart(c.l, c.path, c.v)
}

// first returns the part of a text in the language of the page, or else as the record has
// it.
func (c cursor) first(name string) part {
	if c.l != Ukrainian {
		if p := c.in(name + "_" + string(c.l)).part(); p.Path != "" {
			return p
		}
	}
	return c.in(name).part()
}

// parts returns the parts of members, with a mark between them.
func (c cursor) parts(mark string, names ...string) []part {
	var all []part
	for _, name := range names {
		all = appendPart(all, mark, c.first(name))
	}
	return all
}

// appendPart appends a part after a mark. It ignores an absent one.
func appendPart(parts []part, mark string, p part) []part {
	if p.Path == "" {
		return parts
	}
	if len(parts) > 0 && mark != "" {
		parts = append(parts, part{Text: mark})
	}
	return append(parts, p)
}

// all returns the part as a list, nil if it is absent.
func (p part) all() []part { return appendPart(nil, "", p) }

// row returns the row of a member.
func (c cursor) row(name string) row { return row{label(c.l, name), c.first(name).all()} }

// rows returns the rows that have a part.
func rows(all ...row) []row {
	return slices.DeleteFunc(all, func(r row) bool { return len(r.Parts) == 0 })
}

// reader returns the part of a member: first, which marks the value, or repeat.
type reader func(c cursor, name string) part

// quantity returns the quantity of an item with its unit.
func (c cursor) quantity(read reader) []part {
	number := c.v.string("quantity")
	return appendPart(read(c, "quantity").all(), "\u00a0", c.in("unit").after(number, read))
}

// after returns a unit as it stands after a number: declined if it is a common one, else its name, or
// else its code.
func (c cursor) after(number string, read reader) part {
	if common, known := units[c.v.string("code")]; known {
		unit := read(c, "code")
		unit.Text = common.afterText(c.l, number)
		return unit
	}
	if name := read(c, "name"); name.Path != "" {
		return name
	}
	return read(c, "code")
}

// item returns an item.
func (c cursor) item(number int) item {
	class := c.in("classification")
	t := item{Number: number, Quantity: c.quantity(cursor.first)}
	t.thing = thing{Title: c.first("description").all(), Rows: rows(
		row{label(c.l, "classification"), class.coded()},
		row{label(c.l, "address"), c.in("address").address()},
		row{label(c.l, "location"), c.in("location").parts(", ", "latitude", "longitude", "elevation")},
		row{label(c.l, "registrationDetails"),
			c.in("registrationDetails").parts(", ", "status", "registrationID", "registrationDate")},
	)}
	for _, more := range c.each("additionalClassifications") {
		t.Rows = append(t.Rows, rows(row{label(c.l, "additionalClassifications"), more.coded()})...)
	}
	return t
}

// coded returns the parts of a classification, and the name of the code if the record has another one.
func (c cursor) coded() []part {
	parts := c.withName(appendPart(c.in("id").part().all(), " ", c.first("description")))
	scheme := c.in("scheme").part()
	if scheme.Path == "" {
		return parts
	}
	return append(appendPart(parts, " (", scheme), part{Text: ")"})
}

func (c cursor) address() []part {
	return c.parts(", ", "streetAddress", "locality", "region", "postalCode", "countryName")
}

// organisation returns the rows of an organisation.
func (c cursor) organisation() []row {
	if c.v == nil {
		return nil
	}
	all := rows(
		c.row("name"), row{label(c.l, "identifier"), c.in("identifier").registered()},
		row{label(c.l, "legalName"), c.in("identifier").first("legalName").all()}, c.row("kind"),
		row{label(c.l, "address"), c.in("address").address()},
		row{label(c.l, "contactPoint"), c.in("contactPoint").contact()},
	)
	for _, more := range c.each("additionalIdentifiers") {
		all = append(all, rows(row{label(c.l, "additionalIdentifiers"), more.registered()})...)
	}
	for _, more := range c.each("additionalContactPoints") {
		all = append(all, rows(row{label(c.l, "additionalContactPoints"), more.contact()})...)
	}
	return all
}

// registered returns the parts of the identifier of an organisation.
func (c cursor) registered() []part {
	id := c.in("id")
	parts := id.part()
	if parts.Path != "" {
		parts.Text, parts.Value = id.v.text, "" // no number, whatever its form
	}
	return appendPart(c.in("scheme").part().all(), " ", parts)
}

func (c cursor) contact() []part {
	return c.parts(", ", "name", "telephone", "email", "faxNumber", "url")
}

// documents returns the newest version of each document, the newest document first.
func documents(versions []cursor) []document {
	modified := func(c cursor) time.Time { return timeOf(client.Timestamp(c.v.string("dateModified"))) }
	slices.Reverse(versions) // of two with one time, the later one in the record is the newer one
	slices.SortStableFunc(versions, func(a, b cursor) int { return modified(b).Compare(modified(a)) })
	var all []document
	at := map[string]int{} // by id
	for _, v := range versions {
		id := v.v.string("id")
		if i, known := at[id]; known && id != "" {
			all[i].Versions = append(all[i].Versions, v.version())
			continue
		}
		at[id] = len(all)
		d := document{About: v.parts(" · ", "documentType", "format", "size", "datePublished")}
		d.thing = v.version()
		all = append(all, d)
	}
	return all
}

// version returns a version of a document. Its title is a link if its address is safe.
func (c cursor) version() thing {
	t := thing{Title: c.first("title").all()}
	if link := safeLink(c.v.string("url")); link != "" && len(t.Title) > 0 {
		t.Title[0].Href, t.Title[0].Foreign = link, true
	}
	t.Rows = rows(
		c.row("description"), c.row("accessDetails"), c.row("documentType"), c.row("datePublished"),
		c.row("dateModified"), c.row("format"), c.row("language"), c.row("url"), c.row("size"), c.row("hash"),
		c.row("sha256"),
	)
	return t
}

// rest returns a row for each value that is not shown yet.
func (c cursor) rest() []row {
	var all []row
	c.v.leaves(c.path, func(path string, leaf *value) {
		if leaf.shown {
			return
		}
		leaf.shown = true
		all = append(all, row{chain(c.l, path), newPart(c.l, path, leaf).all()})
	})
	return all
}

// things are the names of elements of lists.
var things = map[string]text{
	"items": {"Складова", "Item"}, "decisions": {"Рішення", "Decision"}, "documents": {"Документ", "Document"},
	"relatedProcesses":          {"Процес", "Process"},
	"additionalClassifications": {"Додаткова класифікація", "Additional classification"},
	"additionalIdentifiers":     {"Додатковий код", "Additional identifier"},
	"additionalContactPoints":   {"Інший контакт", "Other contact"},
}

// chain returns the names of the fields on a path: Складова 1 › Адреса › Область.
func chain(l Lang, path string) string {
	var names []string
	list := ""
	for name := range strings.SplitSeq(path, ".") {
		index, err := strconv.Atoi(name)
		if err != nil {
			said := label(l, name)
			if t, known := renamed[list+"."+name]; known {
				said = t.in(l)
			}
			list = name
			names = append(names, said)
			continue
		}
		if t, known := things[list]; known {
			names[len(names)-1] = t.in(l)
		}
		names[len(names)-1] += " " + strconv.Itoa(index+1)
	}
	return strings.Join(names, " › ")
}

// isObject tells whether a value has members.
func (v *value) isObject() bool { return v != nil && v.kind == jsontext.KindBeginObject }
