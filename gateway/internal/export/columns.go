package export

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// record has the fields of an asset that have columns.
type record struct {
	ID                  string `json:"id"`
	AssetID             string `json:"assetID"`
	AssetType           string `json:"assetType"`
	Status              string `json:"status"`
	Mode                string `json:"mode"`
	Title               string `json:"title"`
	TitleEn             string `json:"title_en"`
	Description         string `json:"description"`
	Owner               string `json:"owner"`
	Date                string `json:"date"`
	DateModified        string `json:"dateModified"`
	RectificationPeriod struct {
		StartDate string `json:"startDate"`
	} `json:"rectificationPeriod"`
	AssetCustodian struct {
		Name       string `json:"name"`
		Identifier struct {
			Scheme string          `json:"scheme"`
			ID     json.RawMessage `json:"id"`
		} `json:"identifier"`
		ContactPoint struct {
			Email     string `json:"email"`
			Telephone string `json:"telephone"`
		} `json:"contactPoint"`
	} `json:"assetCustodian"`
	Items     []item     `json:"items"`
	Documents []struct{} `json:"documents"`
}

// item has the fields of an item that have columns.
type item struct {
	Description    string `json:"description"`
	Classification struct {
		Scheme      string `json:"scheme"`
		ID          string `json:"id"`
		Description string `json:"description"`
	} `json:"classification"`
	Quantity json.Number `json:"quantity"`
	Unit     struct {
		Code string `json:"code"`
		Name string `json:"name"`
	} `json:"unit"`
	Address struct {
		Region        string `json:"region"`
		Locality      string `json:"locality"`
		StreetAddress string `json:"streetAddress"`
		PostalCode    string `json:"postalCode"`
	} `json:"address"`
	Location struct {
		Latitude  json.RawMessage `json:"latitude"`
		Longitude json.RawMessage `json:"longitude"`
	} `json:"location"`
}

// column is a column of a table. Its name is the path of the field in the record.
type column struct {
	name     string
	isNumber bool // texts that are no number stay texts
	of       func(r *record, first *item) string
}

// columns are the columns of all forms, in their order.
var columns = []column{
	{"id", false, func(r *record, _ *item) string { return r.ID }},
	{"assetID", false, func(r *record, _ *item) string { return r.AssetID }},
	{"assetType", false, func(r *record, _ *item) string { return r.AssetType }},
	{"status", false, func(r *record, _ *item) string { return r.Status }},
	{"title", false, func(r *record, _ *item) string { return r.Title }},
	{"title_en", false, func(r *record, _ *item) string { return r.TitleEn }},
	{"description", false, func(r *record, _ *item) string { return r.Description }},
	{"owner", false, func(r *record, _ *item) string { return r.Owner }},
	{"rectificationPeriod.startDate", false,
		func(r *record, _ *item) string { return r.RectificationPeriod.StartDate }},
	{"date", false, func(r *record, _ *item) string { return r.Date }},
	{"dateModified", false, func(r *record, _ *item) string { return r.DateModified }},
	{"assetCustodian.name", false, func(r *record, _ *item) string { return r.AssetCustodian.Name }},
	{"assetCustodian.identifier.scheme", false,
		func(r *record, _ *item) string { return r.AssetCustodian.Identifier.Scheme }},
	{"assetCustodian.identifier.id", false,
		func(r *record, _ *item) string { return scalar(r.AssetCustodian.Identifier.ID) }},
	{"assetCustodian.contactPoint.email", false,
		func(r *record, _ *item) string { return r.AssetCustodian.ContactPoint.Email }},
	{"assetCustodian.contactPoint.telephone", false,
		func(r *record, _ *item) string { return r.AssetCustodian.ContactPoint.Telephone }},
	{"documents.length", true, func(r *record, _ *item) string { return strconv.Itoa(len(r.Documents)) }},
	{"items.length", true, func(r *record, _ *item) string { return strconv.Itoa(len(r.Items)) }},
	{"items.0.description", false, func(_ *record, i *item) string { return i.Description }},
	{"items.0.classification.scheme", false, func(_ *record, i *item) string { return i.Classification.Scheme }},
	{"items.0.classification.id", false, func(_ *record, i *item) string { return i.Classification.ID }},
	{"items.0.classification.description", false,
		func(_ *record, i *item) string { return i.Classification.Description }},
	{"items.0.quantity", true, func(_ *record, i *item) string { return i.Quantity.String() }},
	{"items.0.unit.code", false, func(_ *record, i *item) string { return i.Unit.Code }},
	{"items.0.unit.name", false, func(_ *record, i *item) string { return i.Unit.Name }},
	{"items.0.address.region", false, func(_ *record, i *item) string { return i.Address.Region }},
	{"items.0.address.locality", false, func(_ *record, i *item) string { return i.Address.Locality }},
	{"items.0.address.streetAddress", false, func(_ *record, i *item) string { return i.Address.StreetAddress }},
	{"items.0.address.postalCode", false, func(_ *record, i *item) string { return i.Address.PostalCode }},
	{"items.0.location.latitude", true, func(_ *record, i *item) string { return scalar(i.Location.Latitude) }},
	{"items.0.location.longitude", true, func(_ *record, i *item) string { return scalar(i.Location.Longitude) }},
}

// Columns returns the names of the columns.
func Columns() (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// cell is a value of a column. The text of a number is a number of JSON.
type cell struct {
	text     string
	isNumber bool
}

// row returns the cells of a record.
func row(r *record) []cell {
	first := &item{}
	if len(r.Items) > 0 {
		first = &r.Items[0]
	}
	cells := make([]cell, 0, len(columns))
	for _, c := range columns {
		text := c.of(r, first)
		cells = append(cells, cell{text, c.isNumber && isNumber(text)})
	}
	return cells
}

// parse reads an asset. ok is false for one that no search finds any more.
func parse(asset []byte) (r *record, ok bool, err error) {
	r = &record{}
	if err := json.Unmarshal(asset, r); err != nil {
		return nil, false, fmt.Errorf("read an asset: %w", err)
	}
	return r, r.Mode == "" && r.Status != "deleted" && r.Status != "draft", nil
}

// scalar returns the text of a string or a number.
func scalar(value json.RawMessage) string {
	var text string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// isNumber tells whether a text is a number of JSON.
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text))
}

// harmless returns a text that no spreadsheet takes for a formula. One that begins with + or - and goes on
// with signs of numbers and telephones only stays as it is.
func harmless(text string) string {
	if text == "" {
		return ""
	}
	switch text[0] {
	case '=', '@', '\t', '\r':
		return "'" + text
	case '+', '-':
		if strings.Trim(text[1:], "0123456789 ().,-/") != "" {
			return "'" + text
		}
	}
	return text
}
