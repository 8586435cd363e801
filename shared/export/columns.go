package export

import (
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// kind says which values a column has.
type kind int

const (
	text   kind = iota
	number      // each value is a number or empty
	loose       // each value is a number or any text
)

// column is a column of a table. Its name is the path of a field in an asset, an item or a document.
type column struct {
	name string
	kind kind
	of   func(r *record, row int) string // value in a row of the asset
}

// columnOf is a column with values from a T: an asset, an item or a document.
type columnOf[T any] struct {
	name string
	kind kind
	of   func(*T) string
}

var recordColumns = []columnOf[record]{
	{"id", text, func(r *record) string { return r.ID }},
	{"assetID", text, func(r *record) string { return r.AssetID }},
	{"assetType", text, func(r *record) string { return r.AssetType }},
	{"status", text, func(r *record) string { return r.Status }},
	{"title", text, func(r *record) string { return r.Title }},
	{"title_en", text, func(r *record) string { return r.TitleEn }},
	{"description", text, func(r *record) string { return r.Description }},
	{"owner", text, func(r *record) string { return r.Owner }},
	{"rectificationPeriod.startDate", text, func(r *record) string { return r.RectificationPeriod.StartDate }},
	{"date", text, func(r *record) string { return r.Date }},
	{"dateModified", text, func(r *record) string { return r.DateModified }},
	{"assetCustodian.name", text, func(r *record) string { return r.AssetCustodian.Name }},
	{"assetCustodian.identifier.scheme", text, func(r *record) string { return r.AssetCustodian.Identifier.Scheme }},
	{"assetCustodian.identifier.id", text, func(r *record) string { return scalar(r.AssetCustodian.Identifier.ID) }},
	{"assetCustodian.contactPoint.email", text,
		func(r *record) string { return r.AssetCustodian.ContactPoint.Email }},
	{"assetCustodian.contactPoint.telephone", text,
		func(r *record) string { return r.AssetCustodian.ContactPoint.Telephone }},
	{"documents.length", number, func(r *record) string { return strconv.Itoa(len(r.Documents)) }},
	{"items.length", number, func(r *record) string { return strconv.Itoa(len(r.Items)) }},
}

var itemColumns = []columnOf[item]{
	{"description", text, func(i *item) string { return i.Description }},
	{"classification.scheme", text, func(i *item) string { return i.Classification.Scheme }},
	{"classification.id", text, func(i *item) string { return i.Classification.ID }},
	{"classification.description", text, func(i *item) string { return i.Classification.Description }},
	{"quantity", number, func(i *item) string { return scalar(i.Quantity) }},
	{"unit.code", text, func(i *item) string { return i.Unit.Code }},
	{"unit.name", text, func(i *item) string { return i.Unit.Name }},
	{"address.region", text, func(i *item) string { return i.Address.Region }},
	{"address.locality", text, func(i *item) string { return i.Address.Locality }},
	{"address.streetAddress", text, func(i *item) string { return i.Address.StreetAddress }},
	{"address.postalCode", text, func(i *item) string { return i.Address.PostalCode }},
	{"location.latitude", loose, func(i *item) string { return scalar(i.Location.Latitude) }},
	{"location.longitude", loose, func(i *item) string { return scalar(i.Location.Longitude) }},
}

var documentColumns = []columnOf[document]{
	{"id", text, func(d *document) string { return d.ID }},
	{"documentType", text, func(d *document) string { return d.DocumentType }},
	{"title", text, func(d *document) string { return d.Title }},
	{"description", text, func(d *document) string { return d.Description }},
	{"format", text, func(d *document) string { return d.Format }},
	{"url", text, func(d *document) string { return d.URL }},
	{"hash", text, func(d *document) string { return d.Hash }},
	{"sha256", text, func(d *document) string { return d.SHA256 }},
	{"size", number, func(d *document) string { return scalar(d.Size) }},
	{"accessDetails", text, func(d *document) string { return d.AccessDetails }},
	{"language", text, func(d *document) string { return d.Language }},
	{"documentOf", text, func(d *document) string { return d.DocumentOf }},
	{"relatedItem", text, func(d *document) string { return d.RelatedItem }},
	{"author", text, func(d *document) string { return d.Author }},
	{"datePublished", text, func(d *document) string { return d.DatePublished }},
	{"dateModified", text, func(d *document) string { return d.DateModified }},
}

// Table is a table of assets, of their items or of their documents.
type Table struct {
	Name    string
	columns []column
	rows    func(*record) int // number of rows for an asset
}

// Tables are all tables. The export of a search has the columns of the first table.
var Tables = []Table{
	{"assets", assetColumns(), func(*record) int { return 1 }},
	{"items", itemsColumns(), func(r *record) int { return len(r.Items) }},
	{"documents", documentsColumns(), func(r *record) int { return len(r.Documents) }},
}

// OfAsset is the column of items and documents that has the id of their asset.
const OfAsset = "asset.id"

// ofAsset is the first column of the tables of items and documents.
var ofAsset = column{OfAsset, text, func(r *record, _ int) string { return r.ID }}

func assetColumns() (all []column) {
	for _, c := range recordColumns {
		all = append(all, column{c.name, c.kind, func(r *record, _ int) string { return c.of(r) }})
	}
	for _, c := range itemColumns {
		all = append(all, column{"items.0." + c.name, c.kind, func(r *record, _ int) string {
			if len(r.Items) == 0 {
				return ""
			}
			return c.of(&r.Items[0])
		}})
	}
	return all
}

func itemsColumns() []column {
	all := []column{ofAsset, {"id", text, func(r *record, i int) string { return r.Items[i].ID }}}
	for _, c := range itemColumns {
		all = append(all, column{c.name, c.kind, func(r *record, i int) string { return c.of(&r.Items[i]) }})
	}
	return all
}

func documentsColumns() []column {
	all := []column{ofAsset}
	for _, c := range documentColumns {
		all = append(all, column{c.name, c.kind, func(r *record, i int) string { return c.of(&r.Documents[i]) }})
	}
	return all
}

// Column is a column of a table.
type Column struct {
	Name     string
	IsNumber bool // each value is a number of JSON, or empty
}

// Columns returns the columns of a table.
func (t Table) Columns() (all []Column) {
	for _, c := range t.columns {
		all = append(all, Column{c.name, c.kind == number})
	}
	return all
}

// cell is a value of a column. The text of a number is a number of JSON.
type cell struct {
	text     string
	isNumber bool
}

// row appends the cells of a row of an asset.
func (t Table) row(cells []cell, r *record, row int) []cell {
	for _, c := range t.columns {
		value := c.of(r, row)
		is := c.kind != text && isNumber(value)
		if c.kind == number && !is {
			value = ""
		}
		cells = append(cells, cell{value, is})
	}
	return cells
}

// scalar returns the text of a string or a number, and "" for any other value.
func scalar(value jsontext.Value) string {
	var text string
	switch value.Kind() {
	case '"':
		_ = json.Unmarshal(value, &text) // cannot fail: the string was read before
	case '0':
		text = string(value)
	}
	return text
}

// isNumber reports whether a text is a JSON number.
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text))
}
