package export

import (
	"cmp"
	"encoding/json"
	"slices"

	"asset-registry/shared/assetfields"
)

// column is a column of a table. Its name is the path of a field in an asset, an item or a document.
type column struct {
	name string
	kind kind

	of    assetfields.Kind    // kind of the field; "": the length of a list
	above []assetfields.Field // the field, behind the fields that it is in
}

// kind says which values a column has.
type kind int

const (
	text   kind = iota
	scalar      // each value is a text, or the text of a number
	number      // each value is a number or empty
	loose       // each value is a number or any text
)

// kinds are the kinds of columns that have more than texts.
var kinds = map[assetfields.Kind]kind{
	assetfields.IdentifierID: scalar, assetfields.Quantity: number, assetfields.Integer: number,
	assetfields.Coordinate: loose,
}

// Table is a table of assets, of their items or of their documents.
type Table struct {
	Name    string
	columns []column
}

// The indexes of the tables in Tables.
const (
	ofAssets = iota
	ofItems
	ofDocuments
)

// Tables are all tables. The export of a search has the columns of the first table.
var Tables = []Table{
	ofAssets:    {"assets", columnsOf(&assetfields.Asset, "")},
	ofItems:     {"items", append([]column{{name: OfAsset}}, itemColumns...)},
	ofDocuments: {"documents", append([]column{{name: OfAsset}}, columnsOf(&assetfields.Document, "")...)},
}

// OfAsset is the column of items and documents that has the id of their asset. It is the first.
const OfAsset = "asset.id"

// itemColumns are the columns of an item. The first is its id.
var itemColumns = columnsOf(&assetfields.Item, "")

// columnsOf returns the columns of an object in their order. A list has a column with its length. Behind the length of
// the list of items come the columns of the first item, without its id.
func columnsOf(o *assetfields.Object, path string, above ...assetfields.Field) (all []column) {
	fields := o.All()
	slices.SortStableFunc(fields, func(a, b assetfields.Field) int { return cmp.Compare(a.Column, b.Column) })
	for _, f := range fields {
		rows := append(slices.Clip(above), f)
		switch {
		case f.Column == 0:
		case f.Is.Has(assetfields.List):
			all = append(all, column{name: path + f.Name + ".length", kind: number, above: rows})
			if f.Of == &assetfields.Item {
				all = append(all, columnsOf(f.Of, "items.0.", rows...)[1:]...)
			}
		case f.Of != nil:
			all = append(all, columnsOf(f.Of, path+f.Name+".", rows...)...)
		default:
			all = append(all, column{path + f.Name, kinds[f.Kind], f.Kind, rows})
		}
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
	isTime   bool // the text has the form timeForm
}

// cellOf returns the cell for the text of a value.
func cellOf(k kind, value string) cell {
	is := (k == number || k == loose) && isNumber(value)
	if k == number && !is {
		value = ""
	}
	return cell{text: value, isNumber: is}
}

// isNumber reports whether a text is a JSON number.
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text))
}
