package export

import (
	jsonv1 "encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Asset is an asset that was read for exports.
type Asset struct {
	line   []byte
	record record
	cells  []cell // cells of the asset's row in the table of assets
}

// lenient accepts all JSON that the stores may have, as encoding/json does. Reading takes
// a third of the time of encoding/json.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// Read reads an asset from a line of JSON. The caller must not change the line afterwards. ok is false for an
// asset that no search finds: one in test mode, a deleted one, or a draft. A value of a wrong type is dropped.
func Read(line []byte) (a *Asset, ok bool, err error) {
	a = &Asset{line: line}
	if err = json.Unmarshal(line, &a.record, lenient); err != nil {
		a.record = record{}
		var wrong *jsonv1.UnmarshalTypeError
		if err = jsonv1.Unmarshal(line, &a.record); errors.As(err, &wrong) {
			err = nil // the asset lacks only the values of a wrong type
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("read an asset: %w", err)
	}
	r := &a.record
	return a, r.Mode == "" && r.Status != "deleted" && r.Status != "draft", nil
}

// row returns the cells of the asset. It makes them once, because several files have the same cells.
func (a *Asset) row() []cell {
	if a.cells == nil {
		a.cells = Tables[0].row(make([]cell, 0, len(Tables[0].columns)), &a.record, 0)
	}
	return a.cells
}

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
			Scheme string         `json:"scheme"`
			ID     jsontext.Value `json:"id"`
		} `json:"identifier"`
		ContactPoint struct {
			Email     string `json:"email"`
			Telephone string `json:"telephone"`
		} `json:"contactPoint"`
	} `json:"assetCustodian"`
	Items     []item     `json:"items"`
	Documents []document `json:"documents"`
}

// item has the fields of an item that have columns.
type item struct {
	ID             string `json:"id"`
	Description    string `json:"description"`
	Classification struct {
		Scheme      string `json:"scheme"`
		ID          string `json:"id"`
		Description string `json:"description"`
	} `json:"classification"`
	Quantity jsontext.Value `json:"quantity"`
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
		Latitude  jsontext.Value `json:"latitude"`
		Longitude jsontext.Value `json:"longitude"`
	} `json:"location"`
}

// document has the fields of a document that have columns.
type document struct {
	ID            string         `json:"id"`
	DocumentType  string         `json:"documentType"`
	Title         string         `json:"title"`
	Description   string         `json:"description"`
	Format        string         `json:"format"`
	URL           string         `json:"url"`
	Hash          string         `json:"hash"`
	SHA256        string         `json:"sha256"`
	Size          jsontext.Value `json:"size"`
	AccessDetails string         `json:"accessDetails"`
	Language      string         `json:"language"`
	DocumentOf    string         `json:"documentOf"`
	RelatedItem   string         `json:"relatedItem"`
	Author        string         `json:"author"`
	DatePublished string         `json:"datePublished"`
	DateModified  string         `json:"dateModified"`
}
