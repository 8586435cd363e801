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
	"asset-registry/shared/filelink"
)

// record is a record of an asset as a page shows it. Its fields except Facts together have each value of the asset
// exactly once, because the script that checks the record relies on this.
type record struct {
	Title, Lead part
	Long        bool // the title would fill the screen of a phone
	Number      []part
	Facts       []fact // repeats the values that people look for first
	Items       []item
	Decisions   []thing
	Documents   []documentGroup
	Custodian   []row
	Holder      []row
	Processes   []thing
	Times       []row
	Technical   []row // values that the other fields do not have
}

// row is a labelled line of a record.
type row struct {
	Label string
	Parts []part
}

// thing is an item, a decision, a related process or a version of a document.
type thing struct {
	Title   []part
	Rows    []row
	Removed bool // the file of a past version was removed
}

// item is an item of the asset.
type item struct {
	thing
	Number   int // place in the record; the first item has 1
	Quantity []part
	Map      template.URL // address of a map; "": no link
}

// document is a document of a record. Its fields describe the newest version, except for the field Versions.
type document struct {
	thing
	Kind     part    // repeats the kind
	About    []part  // kind, format, size and date
	Versions []thing // older versions, the newest first
}

// newRecord arranges a record for a page in language l, with names of codes and with links to other sites.
func newRecord(l Lang, names codenames.Lists, root *value, to Links) record {
	c := cursor{l, names, root, ""}
	r := record{Title: c.first("title"), Lead: c.first("description"), Facts: facts(c, to)}
	r.Long = len(r.Title.Text) > 400
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
	r.Documents = grouped(documents(c.each("documents")))
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

// cursor is a value in a record and the path to it. Most methods mark the values that they return as shown.
type cursor struct {
	l     Lang
	names codenames.Lists
	v     *value // nil: the record does not have the value
	path  string
}

// The method `in` returns the member with the given name, if the value is an object.
func (c cursor) in(name string) cursor {
	return cursor{c.l, c.names, c.v.get(name), join(c.path, name)}
}

// The method `outside` makes the part a link to an address outside the registry. If the address is "", it adds no
// link.
func (p part) outside(to template.URL) part {
	if to != "" {
		p.Href, p.Foreign = to, true
	}
	return p
}

// The method `each` returns the elements of a list.
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

// part returns a part with the text of the value, and marks it as shown. The part is empty if the value is
// absent, is an object or a list, or is already shown.
func (c cursor) part() part {
	if c.v == nil || !c.v.isScalar() || c.v.shown {
		return part{}
	}
	c.v.shown = true
	return newPart(c.l, c.path, c.v)
}

// The method `first` returns the part of a text in the language of the page. If the record has no text in that
// language, it returns the text without a language.
func (c cursor) first(name string) part {
	if c.l != Ukrainian {
		if p := c.in(name + "_" + string(c.l)).part(); p.Path != "" {
			return p
		}
	}
	return c.in(name).part()
}

// parts returns the parts of the named members, with a mark between them.
func (c cursor) parts(mark string, names ...string) []part {
	var all []part
	for _, name := range names {
		all = appendPart(all, mark, c.first(name))
	}
	return all
}

// appendPart appends a mark and a part. It ignores an empty part, and leaves out the mark in front of the first
// part.
func appendPart(parts []part, mark string, p part) []part {
	if p.Path == "" {
		return parts
	}
	if len(parts) > 0 && mark != "" {
		parts = append(parts, part{Text: mark})
	}
	return append(parts, p)
}

// The method `all` returns a list with the part; nil if the part is empty.
func (p part) all() []part { return appendPart(nil, "", p) }

// row returns a row with the label and the text of a member.
func (c cursor) row(name string) row { return row{label(c.l, name), c.first(name).all()} }

// rows returns those rows that have at least one part.
func rows(all ...row) []row {
	return slices.DeleteFunc(all, func(r row) bool { return len(r.Parts) == 0 })
}

// reader returns the part of a member. It is either cursor.first, which marks the value as shown, or
// cursor.repeat, which does not.
type reader func(c cursor, name string) part

// quantity returns the quantity of an item with its unit.
func (c cursor) quantity(read reader) []part {
	number := c.v.string("quantity")
	return appendPart(read(c, "quantity").all(), "\u00a0", c.in("unit").after(number, read))
}

// The method `after` returns the unit that follows a number. A common unit is in the grammatical form that the number
// needs. Any other unit has the name in the record, or its code if the record has no name.
func (c cursor) after(number string, read reader) part {
	if common, known := unitOf(c.v.string("code")); known {
		unit := read(c, "code")
		unit.Text = common.afterText(c.l, number)
		return unit
	}
	if name := read(c, "name"); name.Path != "" {
		return name
	}
	return read(c, "code")
}

// item returns an item for the page.
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

// coded returns the parts of a classification. The name of its code is added, if the record does not have it.
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
		parts.Text, parts.Value = id.v.text, "" // the id is shown unchanged even if it is a number
	}
	return appendPart(c.in("scheme").part().all(), " ", parts)
}

func (c cursor) contact() []part {
	return c.parts(", ", "name", "telephone", "email", "faxNumber", "url")
}

// documentGroup has the documents of one kind.
type documentGroup struct {
	Kind part
	All  []document
}

// grouped returns documents by kind, in the order of the first document of each kind.
func grouped(all []document) (groups []documentGroup) {
	at := map[string]int{}
	for _, d := range all {
		i, known := at[d.Kind.Text]
		if !known {
			i = len(groups)
			at[d.Kind.Text] = i
			groups = append(groups, documentGroup{Kind: d.Kind})
		}
		groups[i].All = append(groups[i].All, d)
	}
	return groups
}

// documents groups versions by document, the newest document first. Each document shows its newest version.
func documents(versions []cursor) []document {
	modified := func(c cursor) time.Time { return timeOf(client.Timestamp(c.v.string("dateModified"))) }
	slices.Reverse(versions) // of two versions with the same time, the later one in the record comes first
	slices.SortStableFunc(versions, func(a, b cursor) int { return modified(b).Compare(modified(a)) })
	var all []document
	at := map[string]int{} // maps the id of a document to its index in the list `all`
	for _, v := range versions {
		id := v.v.string("id")
		if i, known := at[id]; known && id != "" {
			all[i].Versions = append(all[i].Versions, v.version())
			continue
		}
		at[id] = len(all)
		d := document{About: v.parts(" · ", "documentType", "format", "size", "datePublished")}
		d.Kind, d.thing = v.repeat("documentType"), v.version()
		all = append(all, d)
	}
	return all
}

// version returns a version of a document. Its title is a link if the document has a safe address.
func (c cursor) version() thing {
	t := thing{Title: c.first("title").all()}
	if link := safeLink(c.v.string("url")); link != "" && len(t.Title) > 0 {
		_, isOwn := c.file().File()
		t.Title[0].Href, t.Title[0].Foreign = link, !isOwn
	}
	t.Rows = rows(
		c.row("description"), c.row("accessDetails"), c.row("documentType"), c.row("datePublished"),
		c.row("dateModified"), c.row("format"), c.row("language"), c.row("url"), c.row("size"), c.row("hash"),
		c.row("sha256"),
	)
	return t
}

// file returns what the document says of its file.
func (c cursor) file() filelink.Document {
	return filelink.Document{URL: c.v.string("url"), SHA256: c.v.string("sha256")}
}

// rest returns a row for each value that was not shown yet, and marks it as shown.
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

// things are the names for one element of each list.
var things = map[string]text{
	"items": {"Складова", "Item"}, "decisions": {"Рішення", "Decision"}, "documents": {"Документ", "Document"},
	"relatedProcesses":          {"Процес", "Process"},
	"additionalClassifications": {"Додаткова класифікація", "Additional classification"},
	"additionalIdentifiers":     {"Додатковий код", "Additional identifier"},
	"additionalContactPoints":   {"Інший контакт", "Other contact"},
}

// chain returns the names of the fields on a path for people: Складова 1 › Адреса › Область.
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

// isObject reports whether a value is an object.
func (v *value) isObject() bool { return v != nil && v.kind == jsontext.KindBeginObject }
