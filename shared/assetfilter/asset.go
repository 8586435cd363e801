package assetfilter

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"asset-registry.example/client"
)

// Limits of the terms that one filter takes from one asset.
const (
	MaxTerm  = 512    // bytes of a term; longer terms are dropped
	MaxTerms = 20_000 // different terms; further terms are dropped
)

// Asset has the fields of an asset that searches and filters use. A hit of a search has some of them, in this order.
type Asset struct {
	ID             string           `json:"id"`
	DateModified   client.Timestamp `json:"dateModified"`
	AssetID        string           `json:"assetID,omitzero"`
	AssetType      string           `json:"assetType,omitzero"`
	Status         client.Status    `json:"status,omitzero"`
	Date           string           `json:"date,omitzero"`
	Title          string           `json:"title,omitzero"`
	TitleEn        string           `json:"title_en,omitzero"`
	TitleRu        string           `json:"title_ru,omitzero"`
	Description    string           `json:"description,omitzero"`
	DescriptionEn  string           `json:"description_en,omitzero"`
	DescriptionRu  string           `json:"description_ru,omitzero"`
	Owner          string           `json:"owner,omitzero"`
	Rectification  Period           `json:"rectificationPeriod,omitzero"`
	AssetCustodian Organisation     `json:"assetCustodian,omitzero"`
	Items          []Item           `json:"items,omitzero"`
	AssetHolder    Organisation     `json:"assetHolder,omitzero"`
	Decisions      []Decision       `json:"decisions,omitzero"`
	Documents      []Document       `json:"documents,omitzero"`
	Processes      []Process        `json:"relatedProcesses,omitzero"`
}

// Period is a time between two moments.
type Period struct {
	StartDate client.Timestamp `json:"startDate,omitzero"`
}

// Organisation is a custodian or a holder.
type Organisation struct {
	Name       string     `json:"name,omitzero"`
	NameEn     string     `json:"name_en,omitzero"`
	NameRu     string     `json:"name_ru,omitzero"`
	Identifier Identifier `json:"identifier,omitzero"`
	Address    Address    `json:"address,omitzero"`
}

// Identifier names an organisation in a register.
type Identifier struct {
	Scheme    string         `json:"scheme,omitzero"`
	ID        jsontext.Value `json:"id,omitzero"` // a string or a number
	LegalName string         `json:"legalName,omitzero"`
}

// Item is a thing that an asset consists of.
type Item struct {
	Description    string         `json:"description,omitzero"`
	DescriptionEn  string         `json:"description_en,omitzero"`
	DescriptionRu  string         `json:"description_ru,omitzero"`
	Classification Class          `json:"classification,omitzero"`
	Additional     []Class        `json:"additionalClassifications,omitzero"`
	Unit           Unit           `json:"unit,omitzero"`
	Quantity       jsontext.Value `json:"quantity,omitzero"`
	Address        Address        `json:"address,omitzero"`
	Registration   Registration   `json:"registrationDetails,omitzero"`
}

// Class is a class of an item.
type Class struct {
	Scheme        string `json:"scheme,omitzero"`
	ID            string `json:"id,omitzero"`
	Description   string `json:"description,omitzero"`
	DescriptionEn string `json:"description_en,omitzero"`
	DescriptionRu string `json:"description_ru,omitzero"`
}

// Unit is the unit of a quantity.
type Unit struct {
	Code string `json:"code,omitzero"`
	Name string `json:"name,omitzero"`
}

// Address is a postal address.
type Address struct {
	StreetAddress string `json:"streetAddress,omitzero"`
	Locality      string `json:"locality,omitzero"`
	Region        string `json:"region,omitzero"`
	PostalCode    string `json:"postalCode,omitzero"`
	CountryName   string `json:"countryName,omitzero"`
}

// Registration is the entry of an item in the register of titles.
type Registration struct {
	RegistrationID string `json:"registrationID,omitzero"`
}

// Decision is a decision to sell.
type Decision struct {
	Title      string `json:"title,omitzero"`
	DecisionID string `json:"decisionID,omitzero"`
}

// Process is a process that sells an asset.
type Process struct {
	RelatedProcessID string `json:"relatedProcessID,omitzero"`
	Identifier       string `json:"identifier,omitzero"`
}

// Document is a version of a document.
type Document struct {
	ID           string `json:"id,omitzero"`
	DocumentType string `json:"documentType,omitzero"`
	Title        string `json:"title,omitzero"`
	Format       string `json:"format,omitzero"`
	SHA256       string `json:"sha256,omitzero"`
	URL          string `json:"url,omitzero"`
}

// Number returns the quantity of an item. ok is false if it has no quantity.
func (i *Item) Number() (number float64, ok bool) {
	number, err := strconv.ParseFloat(strings.Trim(string(i.Quantity), `"`), 64)
	return number, err == nil && !math.IsInf(number, 0)
}

// Key returns the scheme and the id of an organisation, joined by a hyphen, or "" if one of the two is missing.
func (i *Identifier) Key() string {
	text := i.Text()
	if i.Scheme == "" || text == "" {
		return ""
	}
	return i.Scheme + "-" + text
}

// Text returns the id of an organisation as text. An id is a string or a number; for anything else Text returns "".
func (i *Identifier) Text() string {
	switch i.ID.Kind() {
	case '0':
		return string(i.ID)
	case '"':
		text, err := jsontext.AppendUnquote(nil, i.ID)
		if err == nil {
			return string(text)
		}
	}
	return ""
}

// Terms returns the terms of an asset, given as JSON, in the form that Set.Meets takes. An asset whose state is
// not one of Statuses has no terms.
func Terms(asset []byte) ([]string, error) {
	a := &Asset{}
	if err := json.Unmarshal(asset, a); err != nil {
		return nil, fmt.Errorf("read an asset: %w", err)
	}
	if !slices.Contains(Statuses, a.Status) {
		return nil, nil
	}
	var terms []string
	for _, f := range All {
		known := map[string]bool{}
		f.Each(a, func(term, _, _ string) {
			if term != "" && len(term) <= MaxTerm && len(known) < MaxTerms {
				known[term] = true
			}
		})
		for term := range known {
			terms = append(terms, termOf(f.Name, term))
		}
	}
	slices.Sort(terms)
	return terms, nil
}

// termOf returns a filter's term with the filter's name in front, so that terms of different filters differ. No
// name contains a "=".
func termOf(name Name, term string) string { return string(name) + "=" + term }
