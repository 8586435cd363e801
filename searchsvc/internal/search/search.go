// Package search has the rules of the search for assets: the question, the answer, and the
// parameters that a client writes (docs/search.md). It knows neither HTTP nor the index.
package search

import (
	"context"
	"encoding/json"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/assetfilter"
)

// Searcher finds assets. It is safe for concurrent use.
type Searcher interface {
	// Turn waits for a turn to search, which lasts until end is called: once the answer is
	// encoded. Further calls of end do nothing. It returns a fault.Unavailable if too many
	// searches are under way.
	Turn(ctx context.Context) (end func(), err error)

	// Search answers a question from one state of the index, within a turn. A question that
	// Parse has returned is never refused. It returns a fault.Unavailable if there is no index
	// yet, or if the search takes too long.
	Search(ctx context.Context, q Query) (Result, error)

	// State tells how far the index is.
	State() State
}

// State says how far an index is.
type State struct {
	Position client.Position // in the feed; the index has everything up to it
	Assets   int64           // that can be found
	Ready    bool            // the index has once reached the end of the feed
	Behind   time.Duration   // since the index was last as new as the feed
}

// Query is a question. The zero value asks for all assets, the newest first; Parse fills
// in Limit.
type Query struct {
	Text    string // words, all of which an asset must have; empty: no condition
	Exact   bool   // there are no second tries
	Filters Filters
	Sort    Sort           // empty: ByRelevance with Text, else NewestFirst
	Limit   int            // hits of a page; 0: none, for an answer of facets only
	After   *Cursor        // the page after or before a hit; nil: the first page
	Facets  []FacetName    // counts to return
	Zone    *time.Location // of the days that Values writes; nil: UTC
	// Apart counts the values of a filtered property as if there were no filter by it, so that people see
	// what else they may choose. Codes are counted within their filter.
	Apart bool
	// Sums adds up how much there is of each value of ByClassification.
	Sums bool
	// FacetLimit is the number of values of each facet. 0: DefaultFacetLimit.
	FacetLimit int
}

// Filters are conditions, all of which an asset meets. A list is met by any of its values.
// An empty list is no condition. Regions, localities and codes are compared by their keys
// (assetfilter).
type Filters struct {
	Statuses        []string // of assetfilter.Statuses
	Types           []string // assetType
	Classifications []string // a code with or without its check digit, or the beginning of codes
	Regions         []string
	Localities      []string
	Custodians      []string // scheme and id of the organisation with a hyphen between them: UA-EDR-00032945
	Owners          []string // names of brokers
	Published       Times    // the first step to pending
	Modified        Times    // dateModified
	Quantity        Quantities
}

// Times is a range of times. A zero time is no bound.
type Times struct {
	From  time.Time // inclusive
	Until time.Time // exclusive
}

// Quantities is a range of quantities, which at least one item of an asset has. A nil
// pointer is no bound. Numbers are compared as 64-bit floats.
type Quantities struct {
	From, To *float64 // inclusive
	Unit     Unit     // of items in other units, too, that measure the same; empty: units do not count
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
	LargestFirst    Sort = "-area" // of all items
	SmallestFirst   Sort = "area"  // assets without an area come last
)

// FacetName names a property whose values are counted.
type FacetName string

// The facets.
const (
	ByStatus                   = FacetName(assetfilter.Status)
	ByType                     = FacetName(assetfilter.Type)
	ByClassification           = FacetName(assetfilter.Classification) // the next level below the filter, else divisions
	ByRegion                   = FacetName(assetfilter.Region)
	ByLocality                 = FacetName(assetfilter.Locality)
	ByCustodian                = FacetName(assetfilter.Custodian)
	ByOwner                    = FacetName(assetfilter.Owner)
	ByMonth          FacetName = "month"      // of the publication, in UTC: 2026-11
	ByKyivMonth      FacetName = "month_kyiv" // of the publication, in Kyiv; for the site only
)

// Sorts are all orders of hits.
var Sorts = []Sort{ByRelevance, NewestFirst, OldestFirst, LatestPublished, FirstPublished, LargestFirst, SmallestFirst}

// The bounds of a question (docs/contract.md, "Search").
const (
	MaxText           = 600 // characters of Text
	MaxWords          = 64  // words of Text, as ukrainian.Count counts them; further ones are a fault
	DefaultLimit      = 20
	MaxLimit          = 100
	MaxFacets         = 5
	DefaultFacetLimit = 10
	MaxFacetLimit     = 100
	MaxSuggestions    = 10
)

// MaxHit is the size of a hit in bytes.
const MaxHit = 16 << 10

// Result is an answer.
type Result struct {
	Hits     []Hit
	Total    int64           // assets that the question finds, on all pages
	Facets   []Facet         // in the order of Query.Facets
	Position client.Position // the answer has everything up to it, and perhaps a little more
	Before   int64           // of Total, on the pages before this one; 0 if Query.Limit is 0
	Prev     *Cursor         // the page before; nil: this is the first one
	Next     *Cursor         // the next page; nil: there is none
	Reading  Reading         // how Query.Text was read, unless as it is
	NotFound []string        // words that no asset has, if nothing is found
}

// Hit is a found asset.
type Hit struct {
	ID string
	// Asset is the asset as JSON, of at most MaxHit bytes, with some of its fields only: id, dateModified, assetID,
	// assetType, status, date, title, title_en, description (its beginning), owner,
	// rectificationPeriod.startDate, assetCustodian (name, identifier.scheme and
	// identifier.id), and of its first three items description, classification, unit,
	// quantity, and of the address region, locality and streetAddress.
	Asset json.RawMessage
	// Picture is the id of the file of the first illustration of the asset; empty: it has none.
	Picture string
}

// Fields are the fields of a hit that pages show. Decoding the Go client's types would take nine times as long, because
// they keep unknown fields.
type Fields struct {
	ID                  string           `json:"id"`
	DateModified        client.Timestamp `json:"dateModified"`
	AssetID             string           `json:"assetID"`
	Status              client.Status    `json:"status"`
	Title               string           `json:"title"`
	TitleEn             string           `json:"title_en"`
	Description         string           `json:"description"`
	RectificationPeriod struct {
		StartDate client.Timestamp `json:"startDate"`
	} `json:"rectificationPeriod"`
	AssetCustodian struct {
		Name string `json:"name"`
	} `json:"assetCustodian"`
	Items []struct {
		Classification struct {
			Scheme      string `json:"scheme"`
			ID          string `json:"id"`
			Description string `json:"description"`
		} `json:"classification"`
		Unit struct {
			Code string `json:"code"`
			Name string `json:"name"`
		} `json:"unit"`
		Quantity client.Decimal `json:"quantity"`
		Address  struct {
			StreetAddress string `json:"streetAddress"`
			Locality      string `json:"locality"`
			Region        string `json:"region"`
		} `json:"address"`
	} `json:"items"`
}

// Decode returns the fields of a hit.
func (h Hit) Decode() (f Fields, err error) {
	err = json.Unmarshal(h.Asset, &f)
	return f, err
}

// Facet counts the found assets by the values of a property. An asset with several values
// counts for each.
type Facet struct {
	Name   FacetName
	Values []Count // the highest counts first; months: the newest first
	More   bool    // there are further values
	Chosen []Count // the values of the filter, in its order; Count is 0 for one of another level
}

// Count is a value of a facet.
type Count struct {
	Value  string // as a filter takes it
	Name   string // for people; empty: Value is all there is
	NameEn string // in English, if there is an English name
	Count  int64
	// Area and Pieces are sums over the items that have the value, in square metres and pieces. They are
	// 0 unless Query.Sums asks for them.
	Area, Pieces float64
}
