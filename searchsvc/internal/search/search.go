// Package search has the rules of the search for assets: the question, the answer, and the
// parameters that a client writes (docs/search.md). It knows neither HTTP nor the index.
package search

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"asset-registry.example/client"

	"asset-registry/shared/assetfilter"
	"asset-registry/shared/query"
)

// Searcher finds assets. It is safe for concurrent use.
type Searcher interface {
	// Turn waits until the caller with a name may search, or make a page. Turns go round by these names (package fair).
	// The turn lasts until the caller calls the function `end`, which it does after it has encoded the answer. Further
	// calls of the function do nothing. Turn returns a fault.Unavailable if too many requests wait for a turn.
	Turn(ctx context.Context, caller string) (end func(), err error)

	// Search answers a question from one state of the index. The caller must have a turn from Turn. Search never
	// refuses a question that Parse has returned. It returns a fault.Unavailable if there is no index yet, or if the
	// search takes too long.
	Search(ctx context.Context, q Query) (Result, error)

	// State returns how up to date the index is.
	State() State
}

// State says how up to date an index is.
type State struct {
	Position client.Position // in the feed; the index has all changes up to it
	Assets   int64           // assets that can be found
	Ready    bool            // the index has reached the end of the feed at least once
	Behind   time.Duration   // time since the index last contained all changes of the feed
}

// Query is a question. The zero value asks for all assets, the newest first. Parse sets Limit.
type Query struct {
	Text  string // an asset must have all of these words; empty: no condition
	Exact bool   // if nothing is found, the search is not repeated with other words
	// If Also is set, assets that have words of the same meaning are found, too. In the order of relevance they come last.
	Also    bool
	Filters Filters
	Sort    Sort           // empty: ByRelevance if there is a Text, otherwise NewestFirst
	Limit   int            // hits on a page; 0: none, for an answer that has only facets
	After   *Cursor        // the last hit of the page before, or the first hit of the page after; nil: the first page
	Facets  []FacetName    // facets to count
	Zone    *time.Location // time zone of the days that Values writes; nil: UTC
	// If Apart is set, the counts of a property ignore the filter by this property. So people see which other
	// values they may choose. The counts of codes are an exception: they do not ignore the filter.
	Apart bool
	// If Sums is set, the answer also has the area and the number of pieces of each value of ByClassification.
	Sums bool
	// If Others is set, an answer that finds nothing has other questions that find something.
	Others bool
	// FacetLimit is the number of values of each facet. 0: DefaultFacetLimit.
	FacetLimit int
}

// Filters are conditions. An asset must meet all of them. An asset meets a list if it has any of the values; an
// empty list is not a condition. Regions, localities and codes are compared by their keys (assetfilter).
type Filters struct {
	Values    map[FacetName][]string // by the properties that are filters (ValuesOf, With)
	Published Times                  // when the asset first became pending
	Modified  Times                  // when the asset last changed (dateModified)
	Quantity  Quantities
}

// Times is a range of times. A zero time means that this side has no limit.
type Times struct {
	From  time.Time // inclusive
	Until time.Time // exclusive
}

// Quantities is a range of quantities. At least one item of an asset must be in it. A nil pointer means that
// this side has no limit. Numbers are compared as 64-bit floats.
type Quantities struct {
	From *float64 `json:"quantity_from,omitempty"` // inclusive, as To is
	To   *float64 `json:"quantity_to,omitempty"`
	Unit Unit     `json:"quantity_unit"` // items in other units of the same measure are converted; "": any unit
}

// Sort is an order of hits.
type Sort string

// The orders of hits.
const (
	ByRelevance     Sort = "relevance"
	NewestFirst     Sort = "-modified"
	OldestFirst     Sort = "modified"
	LatestPublished Sort = "-published"
	FirstPublished  Sort = "published"
	LargestFirst    Sort = "-area" // by the sum of the areas of all items
	SmallestFirst   Sort = "area"  // assets without an area come last
)

// FacetName names a property whose values are counted.
type FacetName string

// The facets.
const (
	ByStatus = FacetName(assetfilter.Status)
	ByType   = FacetName(assetfilter.Type)
	// ByClassification counts the codes one level below the code of the filter. Without a filter it counts divisions.
	ByClassification           = FacetName(assetfilter.Classification)
	ByRegion                   = FacetName(assetfilter.Region)
	ByLocality                 = FacetName(assetfilter.Locality)
	ByCustodian                = FacetName(assetfilter.Custodian)
	ByOwner                    = FacetName(assetfilter.Owner)
	ByMonth          FacetName = "month"      // month of the publication, in UTC: 2026-11
	ByKyivMonth      FacetName = "month_kyiv" // month of the publication, in Kyiv; only for the site
)

// Sorts lists all orders of hits.
var Sorts = []Sort{ByRelevance, NewestFirst, OldestFirst, LatestPublished, FirstPublished, LargestFirst, SmallestFirst}

// Limits of a question (docs/contract.md, "Search").
const (
	MaxText           = 600 // characters of Text
	MaxWords          = 64  // words of Text, counted by ukrainian.Ask; more words are a fault
	DefaultLimit      = 20
	MaxLimit          = 100
	MaxFacets         = 5
	DefaultFacetLimit = 10
	MaxFacetLimit     = 100
	MaxSuggestions    = 10
)

// MaxHit is the largest size of a hit in bytes.
const MaxHit = 16 << 10

// Result is the answer to a question.
type Result struct {
	Hits     []Hit
	Total    int64           // assets that the question finds, on all pages together
	Facets   []Facet         // in the order of Query.Facets
	Position client.Position // the answer has all changes up to it, and perhaps some later ones
	Before   int64           // hits on the pages before this one; 0 if Query.Limit is 0
	Prev     *Cursor         // the page before; nil: this is the first page
	Next     *Cursor         // the next page; nil: this is the last page
	Reading  Reading         // how Query.Text was read; zero: as it is written
	Range    Range           // the range that Query.Text has in words; zero: none
	NotFound []string        // words that no asset has; set only if nothing is found
	Others   []Query         // other questions that find something (Query.Others)
	Work     int64           // what the search cost, in bytes as httpserver.CountWork counts them; set after errors too
}

// Hit is a found asset.
type Hit struct {
	ID string
	// Asset is the asset as JSON, of at most MaxHit bytes. It has only these fields: id, dateModified, assetID,
	// assetType, status, date, title, title_en, description (its beginning), owner,
	// rectificationPeriod.startDate, assetCustodian (name, identifier.scheme and identifier.id), and items. It has
	// at most the first three items. Each item has only these fields: description, classification, unit, quantity,
	// and address (region, locality and streetAddress).
	Asset json.RawMessage
	// Picture is the file id of the first illustration of the asset. It is "" if the asset has no illustration.
	Picture string
	// Pictures is the number of illustrations.
	Pictures int
}

// Decode returns the fields of a hit.
func (h Hit) Decode() (a assetfilter.Asset, err error) {
	err = json.Unmarshal(h.Asset, &a)
	return a, err
}

// Facet counts the found assets by the values of a property. An asset with several values counts once for each
// value.
type Facet struct {
	Name   FacetName
	Values []Count // the highest counts first; months: the newest first
	More   bool    // the property has more values than the field Values shows
	All    int64   // the sum of the counts of all values, also of those that the field Values lacks
	None   int64   // found assets without a value
	Chosen []Count // the values of the filter, in the order of the question; Count is 0 for a code of another level
}

// Count is a value of a facet, and how many hits have it.
type Count struct {
	Value  string // the value in the form in which a filter takes it
	Name   string // name for people; "": the value has no name
	NameEn string // name in English; "": the value has no English name
	Count  int64
	// Area and Pieces are sums over the items that have the value, in square metres and in pieces. They are 0 if
	// Query.Sums is not set.
	Area, Pieces float64
}

// CodeLevel returns the length of the codes that the facet of classifications counts, in digits. The facet counts the
// codes one level below the longest code in the filter. If there is no such level, it counts the longest codes.
func (f Filters) CodeLevel() int {
	longest := 0
	for _, code := range f.Values[ByClassification] {
		if prefix, ok := assetfilter.CodePrefix(code); ok {
			longest = max(longest, len(prefix))
		}
	}
	levels := PropertyOf(ByClassification).Levels
	for _, level := range levels {
		if level > longest {
			return level
		}
	}
	return levels[len(levels)-1]
}

// Params returns the parameters of a search, in the order in which documents list them.
func Params() []string {
	all := append([]string{textParam, exactParam}, FilterParams()...)
	return append(all, sortParam, limitParam, afterParam, facetsParam, facetLimitParam)
}

// OfSuggestions has the parameters of suggestions: the text and the filters of a search.
var OfSuggestions = query.Params{Names: append(FilterParams(), textParam), Lists: FilterParams()}

// OfAPI has the parameters of a search as programs send them.
var OfAPI = query.Params{Names: Params(), Lists: append(FilterParams(), facetsParam)}

// Property is a property of assets. Searches can count its values in a facet, and filter by most properties.
type Property struct {
	assetfilter.Filter
	Name     FacetName // name of the facet, and of the filter
	IsFilter bool
	OfSite   bool // only the site has the facet; the API does not
}

// Properties are all properties, in the order in which documents and pages list them: the filters and the months.
var Properties = properties()

func properties() (all []Property) {
	for _, f := range assetfilter.All {
		all = append(all, Property{Filter: f, Name: FacetName(f.Name), IsFilter: true})
	}
	return append(all,
		Property{Name: ByMonth, Filter: assetfilter.Filter{Field: "m"}},
		Property{Name: ByKyivMonth, Filter: assetfilter.Filter{Field: "mk"}, OfSite: true})
}

// PropertyOf returns the property with the given name. There is a property for each FacetName.
func PropertyOf(name FacetName) Property {
	at := slices.IndexFunc(Properties, func(p Property) bool { return p.Name == name })
	return Properties[at]
}

// ValuesOf returns the values of the filter by a property. They are nil if the property has no filter.
func (f Filters) ValuesOf(name FacetName) []string { return f.Values[name] }

// With returns the filters with other values for a property.
func (f Filters) With(name FacetName, values []string) Filters {
	all := maps.Clone(f.Values)
	delete(all, name)
	if len(values) > 0 {
		if all == nil {
			all = map[FacetName][]string{}
		}
		all[name] = values
	}
	f.Values = all
	return f
}

// FacetNames returns the names of all facets of the API.
func FacetNames() []FacetName {
	var all []FacetName
	for _, p := range Properties {
		if !p.OfSite {
			all = append(all, p.Name)
		}
	}
	return all
}

// FilterParams returns the parameters that are filters, in the order in which documents and pages list them.
func FilterParams() []string {
	var all []string
	for _, p := range Properties {
		if p.IsFilter {
			all = append(all, string(p.Name))
		}
	}
	return append(all, publishedFromParam, publishedToParam, modifiedFromParam, modifiedToParam,
		quantityFromParam, quantityToParam, quantityUnitParam)
}

// Texts returns values as texts.
func Texts[T ~string](values []T) []string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}
