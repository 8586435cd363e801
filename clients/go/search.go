package client

import (
	"context"
	"maps"
	"net/url"
)

// Found is a page of found assets (docs/contract.md, "Search").
type Found struct {
	Assets   []Asset          `json:"data"`     // found assets with some of their fields; long texts are cut
	Total    int64            `json:"total"`    // assets on all pages
	Position Timestamp        `json:"position"` // the page has every change of the feed up to this position
	Facets   map[string]Facet `json:"-"`        // facets by their names
	Next     string           `json:"-"`        // value of search_after for the next page; empty: this is the last one

	// Interpreted says how the words were read; nil: as they are written.
	Interpreted *Interpretation `json:"interpreted"`
}

// Interpretation says how the words of a question were read, if no asset has exactly these words or they have a range.
type Interpretation struct {
	Steps    []string      `json:"steps"`
	Used     []string      `json:"used"`
	LeftOut  []string      `json:"left_out"`
	Replaced []Replacement `json:"replaced"`
	NotFound []string      `json:"not_found"` // if no asset was found: words that occur in no asset
	Range    *WordRange    `json:"range"`     // nil: the words have no range
}

// WordRange is a range of areas in the words of a question. It is a filter by quantities. A nil bound means that the
// range has none on this side.
type WordRange struct {
	Words string   `json:"words"`
	From  *float64 `json:"quantity_from"`
	To    *float64 `json:"quantity_to"`
	Unit  string   `json:"quantity_unit"` // m2 or ha
}

// Replacement is a word of a question, and the word that was searched for in its place.
type Replacement struct {
	Word string `json:"word"`
	By   string `json:"by"`
}

// Facet counts the found assets by the values of a property.
type Facet struct {
	Values []FacetValue `json:"values"`
	More   bool         `json:"more"` // there are further values
}

// FacetValue is a value of a property, in the form that the property's filter takes.
type FacetValue struct {
	Value string `json:"value"`
	Name  string `json:"name"` // name for people; empty: there is none
	Count int64  `json:"count"`
}

// Suggest returns at most 10 texts to search for. Each of them continues the given text, and finds an asset that meets
// the filters, such as url.Values{"status": {"active"}}. The texts are sorted by the number of assets that have them,
// the largest number first. Suggest needs no key. IsNotFound is true for the error of a registry without a search
// service.
func (c *Client) Suggest(ctx context.Context, text string, filters ...url.Values) ([]string, error) {
	parameters := url.Values{}
	for _, f := range filters {
		maps.Copy(parameters, f)
	}
	parameters.Set("q", text)
	body, err := fetch[struct {
		Texts []string `json:"data"`
	}](ctx, c, read(path("search", "suggest"), parameters))
	return body.Texts, err
}

// Search searches assets. docs/contract.md, "Search", lists the parameters, such as url.Values{"q":
// {"приміщення"}, "status": {"active"}}. For the next page, the caller sets search_after to Found.Next. It
// needs no key. IsNotFound is true for the error of a registry without a search service.
func (c *Client) Search(ctx context.Context, parameters url.Values) (Found, error) {
	body, err := fetch[struct {
		Found
		Facets map[string]Facet `json:"facets"`
		Page   struct {
			After string `json:"search_after"`
		} `json:"next_page"`
	}](ctx, c, read(path("search"), parameters))
	body.Found.Facets, body.Found.Next = body.Facets, body.Page.After
	return body.Found, err
}
