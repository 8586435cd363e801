// Package assetfilter has the filters that select assets by their properties. Searches and webhooks use the
// same filters (docs/contract.md, "Search"; docs/data.md).
package assetfilter

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"asset-registry.example/client"

	"asset-registry/shared/ukrainian"
)

// Name is the name of a filter. A parameter of a search and a member of a webhook's filters have this name.
type Name string

// The filters.
const (
	Status         Name = "status"
	Type           Name = "type" // assetType
	Classification Name = "classification"
	Region         Name = "region"
	Locality       Name = "locality"
	Custodian      Name = "custodian"
	Owner          Name = "owner"
)

// Limits of the values of filters.
const (
	MaxValues = 10   // values of one filter
	MaxValue  = 200  // characters of a value
	MaxTotal  = 2000 // characters of all values of a webhook
)

// Statuses are the states of assets that filters find. Drafts and deleted assets are never found.
var Statuses = []client.Status{client.Pending, client.Verification, client.Active, client.Complete}

// Filter selects assets by one property. It turns the property of an asset into terms, which are texts. It also turns
// each requested value into a term. An asset meets the filter if it has the term of at least one requested value.
type Filter struct {
	Name   Name
	About  string   // meaning, for the description of the API
	Values []string // the values that are allowed; nil: any value
	IsCode bool     // values are codes of a classification, or their first digits

	// Field is the field of the search index that has the terms. Names is the field that has the names of values for
	// people; "": values have no names.
	Field, Names string
	Levels       []int  // lengths of the codes that a facet counts; nil: the values are not codes
	OnPage       bool   // the search page of the site has the facet
	Uk, En       string // name for people

	term func(value string) string
	each func(a *Asset, add func(term, value, name string))
}

// All contains all filters, in the order in which documents and pages list them. The table determines the parameters,
// the facets, the columns and the format of the index, the filters of webhooks, the description of the API and the
// site.
var All = []Filter{
	{
		Name: Status, About: "State of the asset.", Values: statuses(),
		Field: "s", OnPage: true, Uk: "Стан", En: "State",
		each: func(a *Asset, add func(term, value, name string)) { add(string(a.Status), "", "") },
	},
	{
		Name: Type, About: "`assetType` of the asset.", Field: "y", Uk: "Тип активу", En: "Type of asset",
		each: func(a *Asset, add func(term, value, name string)) { add(a.AssetType, "", "") },
	},
	{
		Name: Classification, IsCode: true,
		About: "Code of an item, with or without its check digit. A code of a division, group or class " +
			"stands for the codes in it. The first 2 to 8 digits will do.",
		Field: "c", Names: "cn", Levels: []int{2, 3, 4, 8}, OnPage: true, Uk: "Вид майна", En: "Kind of property",
		term: codeTerm,
		each: func(a *Asset, add func(term, value, name string)) {
			for _, i := range a.Items {
				for _, term := range codeTerms(i.Classification.ID) {
					add(term, i.Classification.ID, i.Classification.Description)
				}
			}
		},
	},
	{
		Name:  Region,
		About: "Region of an item. Case and words such as область do not count; spellings of one region are one.",
		Field: "r", Names: "rn", OnPage: true, Uk: "Область", En: "Region",
		term: ukrainian.Region,
		each: func(a *Asset, add func(term, value, name string)) {
			for _, i := range a.Items {
				key := ukrainian.Region(i.Address.Region)
				add(key, key, i.Address.Region)
			}
		},
	},
	{
		Name: Locality, About: "Locality of an item, by its former name, too. Case and words such as місто do not count.",
		Field: "l", Names: "ln", OnPage: true, Uk: "Населений пункт", En: "Locality",
		term: ukrainian.Place,
		each: func(a *Asset, add func(term, value, name string)) {
			for _, i := range a.Items {
				key := ukrainian.Place(i.Address.Locality)
				add(key, key, i.Address.Locality)
				names, _ := ukrainian.Renamed(i.Address.Locality, i.Address.Region)
				for _, name := range names {
					add(OtherName+ukrainian.Place(name), "", "")
				}
			}
		},
	},
	{
		Name:  Custodian,
		About: "Scheme and id of the custodian with a hyphen between them: `UA-EDR-00032945`.",
		Field: "k", Names: "kn", OnPage: true, Uk: "Балансоутримувач", En: "Custodian",
		each: func(a *Asset, add func(term, value, name string)) {
			key := a.AssetCustodian.Identifier.Key()
			add(key, key, a.AssetCustodian.Name)
		},
	},
	{
		Name: Owner, About: "Broker that owns the asset.", Field: "o", Uk: "Оператор", En: "Broker",
		each: func(a *Asset, add func(term, value, name string)) { add(a.Owner, "", "") },
	},
}

// Label is a name for people in two languages.
type Label struct{ Uk, En string }

// Labels has the names for people of the other parameters of a search.
var Labels = map[string]Label{
	"q":              {"Слова", "Words"},
	"published_from": {"Оприлюднено від", "Published from"},
	"published_to":   {"Оприлюднено до", "Published to"},
	"modified_from":  {"Змінено від", "Changed from"},
	"modified_to":    {"Змінено до", "Changed to"},
	"quantity_from":  {"Кількість від", "Quantity from"},
	"quantity_to":    {"Кількість до", "Quantity to"},
	"quantity_unit":  {"Одиниця", "Unit"},
}

// Find returns the filter with the given name. ok is false if no filter has the name.
func Find(name Name) (f Filter, ok bool) {
	at := slices.IndexFunc(All, func(f Filter) bool { return f.Name == name })
	if at < 0 {
		return f, false
	}
	return All[at], true
}

// Of returns the filter with the given name, which must exist.
func Of(name Name) Filter {
	f, _ := Find(name)
	return f
}

// Names returns the names of all filters.
func Names() []string {
	var all []string
	for _, f := range All {
		all = append(all, string(f.Name))
	}
	return all
}

// Term returns the main term for a value that Read has returned.
func (f Filter) Term(value string) string {
	if f.term == nil {
		return value
	}
	return f.term(value)
}

// Terms returns the terms for a value that Read has returned. An asset with one of these terms meets the filter.
func (f Filter) Terms(value string) []string {
	if f.Name == Locality {
		return []string{f.Term(value), OtherName + f.Term(value)}
	}
	return []string{f.Term(value)}
}

// OtherName stands before the key of a former or present name of a locality that the asset itself does not use.
const OtherName = "="

// Each calls the function `add` for each term of an asset, with the filter's value for this term and the name that
// people use for the value. Value and name are empty if the filter's values have no names. A term may come several
// times. It may also be empty; the function `add` must ignore an empty term.
func (f Filter) Each(a *Asset, add func(term, value, name string)) { f.each(a, add) }

// Read returns the given values without blanks around them, each once, and without empty ones. If a value is
// not allowed, the text `fault` gives the reason in one sentence; otherwise the text is "".
func (f Filter) Read(values []string) (list []string, fault string) {
	for _, value := range values {
		value = strings.TrimSpace(value)
		_, isCode := CodePrefix(value)
		switch {
		case value == "" || slices.Contains(list, value):
		case !utf8.ValidString(value) || utf8.RuneCountInString(value) > MaxValue:
			return nil, fmt.Sprintf("A value may have %d characters of UTF-8.", MaxValue)
		case len(list) == MaxValues:
			return nil, fmt.Sprintf("There may be %d values.", MaxValues)
		case f.Values != nil && !slices.Contains(f.Values, value):
			return nil, fmt.Sprintf("Value must be one of %s.", strings.Join(f.Values, ", "))
		case f.IsCode && !isCode:
			return nil, "Value must be a code such as 04121000-2, or its first 2 to 8 digits."
		default:
			list = append(list, value)
		}
	}
	return list, ""
}

func statuses() []string {
	var all []string
	for _, s := range Statuses {
		all = append(all, string(s))
	}
	return all
}

// WholeCode stands before a whole code in the search index. The index also has the beginnings of a code, without this
// character.
const WholeCode = "="

// CodePrefix returns the digits with which a code and all codes below it begin. For example, the prefix of
// 04120000-5, 04120000 and 0412 is 0412. ok is false if the text is not a code.
func CodePrefix(code string) (prefix string, ok bool) {
	digits, check, hasCheck := strings.Cut(code, "-")
	if strings.Trim(digits, "0123456789") != "" || len(digits) < 2 || len(digits) > 8 {
		return "", false
	}
	if hasCheck && (len(digits) != 8 || len(check) != 1 || check[0] < '0' || check[0] > '9') {
		return "", false
	}
	if len(digits) < 8 {
		return digits, true
	}
	prefix = strings.TrimRight(digits, "0")
	return digits[:max(2, len(prefix))], true
}

// codeTerm returns the term of a filter for a code. The code itself and all codes below it have this term.
func codeTerm(code string) string {
	prefix, _ := CodePrefix(code)
	return prefix
}

// codeTerms returns the terms of an asset's code: the beginnings of its prefix that have two digits or more, the
// prefix itself, and the whole code with WholeCode in front.
func codeTerms(code string) []string {
	prefix, ok := CodePrefix(code)
	if !ok {
		return nil
	}
	terms := []string{WholeCode + code}
	for n := 2; n <= len(prefix); n++ {
		terms = append(terms, prefix[:n])
	}
	return terms
}
