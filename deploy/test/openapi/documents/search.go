package documents

import (
	"slices"

	"asset-registry/searchsvc"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/routes"
)

// searchOperations describes the route of searches (docs/contract.md, "Search").
var searchOperations = map[string]operation{
	"GET " + routes.Search: {
		id: "searchAssets", tag: "search", summary: "Search assets",
		text: "Assets that have all words of `q` and meet all filters. Drafts, deleted assets and assets in test mode are " +
			"never found. A filter that is repeated is met by any of its values. Words are compared by their stems, in " +
			"Ukrainian and English. A question that finds nothing is asked again in other words; `interpreted` says in which. " +
			"The answer has every change up to `position`. Follow `next_page` for more; the last " +
			"page has none. A registry without a search service answers 404, as version 2.4 does.",
		params: append(append(searchParameterNames(), "If-None-Match"), reading...),
		answer: "SearchAnswer", tagged: true, javascript: true,
	},
	"GET " + routes.Suggest: {
		id: "suggestSearches", tag: "search", summary: "Suggest words while somebody types",
		text: "At most 10 texts that continue `q`, and find an asset that meets the filters: words of titles, names of " +
			"places, codes with their names, and names of custodians. Those of the most assets come first.",
		params: append(append(searchParameterNames("exact", "sort", searchLimit, "search_after", "facets", "facet_limit"),
			"If-None-Match"), reading...), answer: "SearchSuggestions",
		tagged: true, javascript: true,
	},
	"GET " + routes.Search + ".csv":     exportOf("exportCSV", "a CSV file", "text/csv"),
	"GET " + routes.Search + ".xlsx":    exportOf("exportXLSX", "an XLSX file", sheetType),
	"GET " + routes.Search + ".geojson": exportOf("exportGeoJSON", "a GeoJSON file", "application/geo+json"),
	"GET " + routes.Dictionaries: {
		id: "listDictionaries", tag: "search", summary: "Get the names of values and codes",
		text: "The names that the site shows, in Ukrainian and English: of states, kinds of documents, units, regions and " +
			"the like, and of the codes of which the operator has supplied names. A registry without a search service " +
			"answers 404, as version 2.4 does.",
		params: []string{"If-None-Match"}, answer: "Dictionaries", tagged: true,
	},
}

// totalHeader describes the header with the number of assets that the search for an export finds, or of files.
var totalHeader = object{
	{"description", "Assets that the search finds, of which an export has the first 10,000; files of an archive."},
	{"schema", object{{"type", "integer"}}},
}

// interpretedHeader describes the header with the steps of the search for an export.
var interpretedHeader = object{
	{"description", "Steps that read the words of the search in another way, such as `layout`. `also`: synonyms are " +
		"found, too. `stopped`: the search for other words ended early."},
	{"schema", object{{"type", "string"}}},
}

const sheetType = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

// exportOf describes an export (docs/contract.md, "Exports").
func exportOf(id, file, media string) operation {
	return operation{
		id: id, tag: "search", summary: "Search assets, and get " + file,
		text: "The first 10,000 assets that the search finds, each as a row. Columns have the paths of fields as names. " +
			"`Registry-Total` has the number of all. GeoJSON has the assets with coordinates only. A caller has one export " +
			"at a time. A file that breaks off is not whole.",
		params: searchParameterNames(searchLimit, "search_after", "facets", "facet_limit"),
		file:   media, headers: []string{"Content-Disposition", "Registry-Total", "Registry-Interpreted"},
	}
}

// searchParameter is a parameter of a search.
type searchParameter struct {
	name, text string
	schema     object
}

// filterValues returns the schema for the values of a filter.
func filterValues(f assetfilter.Filter) object {
	value, most := object{{"type", "string"}, {"maxLength", assetfilter.MaxValue}}, assetfilter.MaxValues
	switch {
	case f.Values != nil:
		value, most = object{{"type", "string"}, {"enum", f.Values}}, len(f.Values)
	case f.IsCode:
		value = object{
			{"type", "string"}, {"pattern", "^[0-9]{2,8}$|^[0-9]{8}-[0-9]$"}, {"examples", []string{"04121000-2"}},
		}
	}
	return object{{"type", "array"}, {"maxItems", most}, {"items", value}}
}

// searchParameters returns the parameters of a search.
func searchParameters() []searchParameter {
	search := searchsvc.Describe()
	day := object{{"type", "string"}, {"examples", []string{"2026-11-20"}}}
	count := func(most, without int) object {
		return object{{"type", "integer"}, {"minimum", 0}, {"maximum", most}, {"default", without}}
	}
	number := object{{"type", "number"}}
	all := []searchParameter{
		{"q", "Words, all of which the asset has.", object{{"type", "string"}, {"maxLength", search.MaxText},
			{"examples", []string{"нежитлові приміщення"}}}},
		{"exact", "1: the words are searched as they are. So are words in quotes.",
			object{{"type", "string"}, {"enum", []string{"0", "1"}}}},
	}
	for _, f := range assetfilter.All {
		all = append(all, searchParameter{string(f.Name), f.About, filterValues(f)})
	}
	return append(all, []searchParameter{
		{"published_from", "The asset was published at this time or later. A date is its beginning in UTC.", day},
		{"published_to", "The asset was published at this time or earlier. A date is its end in UTC.", day},
		{"modified_from", "The last change is of this time or later.", day},
		{"modified_to", "The last change is of this time or earlier.", day},
		{"quantity_from", "An item has at least this quantity.", number},
		{"quantity_to", "An item has at most this quantity.", number},
		{"quantity_unit", "An item is measured by area (`m2`, `ha`) or counted in pieces. `quantity_from` and " +
			"`quantity_to` are in this unit, and items in other units of area are converted. Without it, units do not count.",
			object{{"type", "string"}, {"enum", search.Units}}},
		{"sort", "Order of the answer. Without it: `relevance` with `q`, else `-modified`, the newest change first. " +
			"`-area` has the largest area of all items first, `area` the smallest; assets without an area come last.",
			object{{"type", "string"}, {"enum", search.Sorts}}},
		{searchLimit, "Assets of a page.", count(search.MaxLimit, search.DefaultLimit)},
		{"search_after", "The page after this one: the value that `next_page` has.", object{{"type", "string"}}},
		{"facets", "Counts of the found assets by these properties, at most 5.",
			object{
				{"type", "array"}, {"maxItems", search.MaxFacets}, {"items", object{{"type", "string"}, {"enum", search.Facets}}},
			}},
		{"facet_limit", "Values of each facet.", count(search.MaxFacetLimit, search.DefaultFacetLimit)},
	}...)
}

// hasSearch reports whether a version of the API has searches.
func hasSearch(version string) bool {
	v, _ := routes.FindVersion(version)
	return slices.ContainsFunc(routes.All(), func(r routes.Route) bool { return r.AtSearch && v.Has(r) })
}

// searchLimit is the name of the component for the parameter `limit` of a search. Pages of the feed also have a
// parameter `limit`, with other rules.
const searchLimit = "search_limit"

// searchParameterNames returns the names of the parameters of a search, but not those in the argument `but`.
func searchParameterNames(but ...string) (all []string) {
	for _, p := range searchParameters() {
		if !slices.Contains(but, p.name) {
			all = append(all, p.name)
		}
	}
	return all
}

// addSearchParameters adds the parameters of a search.
func addSearchParameters(addAs func(component, in, name, text string, schema object)) {
	for _, p := range searchParameters() {
		name := p.name
		if name == searchLimit {
			name = "limit"
		}
		addAs(p.name, "query", name, p.text, p.schema)
	}
}

// searchSchemas returns the schemas of searches.
func searchSchemas() object {
	search := searchsvc.Describe()
	text := func(says string) object { return str(says) }
	organisation := closed("The custodian.", object{
		{"name", text("Name.")},
		{"identifier", closed("Identifier.", object{
			{"scheme", text("Scheme.")}, {"id", object{
				{"anyOf", []object{{{"type", "string"}}, {{"type", "number"}}}}, {"description", "Id."},
			}},
		}, "scheme", "id")},
	}, "name", "identifier")
	item := closed("An item.", object{
		{"description", text("The beginning of its description.")},
		{"classification", closed("Classification.", object{
			{"scheme", text("Scheme.")}, {"id", text("Code.")}, {"description", text("Name of the code.")},
		}, "scheme", "id", "description")},
		{"unit", closed("Unit.", object{{"code", text("Code.")}, {"name", text("Name.")}}, "code", "name")},
		{"quantity", object{
			{"type", "number"}, {"format", "decimal"}, {"x-go-type", "json.Number"}, {"description", "Quantity."},
		}},
		{"address", closed("Address.", object{
			{"streetAddress", text("Street.")}, {"locality", text("Locality.")}, {"region", text("Region.")},
		}, "streetAddress", "locality", "region")},
	}, "description", "classification", "unit", "quantity", "address")
	hit := closed("A found asset, with some of its fields. Long texts are cut.", object{
		{"id", str("Id of the asset.", digits(32))},
		{"dateModified", stamp("The last change.")},
		{"assetID", text("Readable id.")}, {"assetType", text("Type.")},
		{"status", str("State.", member{"enum", search.Statuses}, member{goType, "AssetStatus"})},
		{"date", stamp("The last step between states.")},
		{"title", text("Title.")}, {"title_en", text("English title.")},
		{"description", text("Beginning of the description.")},
		{"owner", text("Broker that owns the asset.")},
		{"rectificationPeriod", closed("Period.", object{
			{"startDate", stamp("When the asset was published.")},
		}, "startDate")},
		{"assetCustodian", organisation},
		{"items", object{{"type", "array"}, {"maxItems", 3}, {"items", item}, {"description", "The first items."}}},
	}, "assetID", "assetType", "date", "title", "title_en", "description", "owner", "rectificationPeriod",
		"assetCustodian", "items")
	facet := closed("Counts of the found assets by the values of a property.", object{
		{"values", listOf(reference("schemas", "SearchFacetValue"))},
		{"more", object{{"type", "boolean"}, {"const", true}, {"description", "There are further values."}}},
	}, "more")
	var facets object
	for _, name := range search.Facets {
		facets = facets.with(name, reference("schemas", "SearchFacet"))
	}
	next := closed("The page after this one.", object{
		{"search_after", text("Place of the last asset of this page.")}, {"path", text("Path and query of the page.")},
		{"uri", text("Address of the page.")},
	})
	words := func(says string) object {
		return object{{"type", "array"}, {"items", text("A word.")}, {"description", says}}
	}
	replacement := closed("A word of a question and another one in its place.", object{
		{"word", text("As it was asked.")}, {"by", text("As it was read.")},
	})
	number := func(says string) object { return object{{"type", "number"}, {"description", says}} }
	inWords := closed("A range of areas in the words, which is a filter.", object{
		{"words", text("The words that are read as a range.")},
		{"quantity_from", number("Smallest quantity, if there is one.")},
		{"quantity_to", number("Largest quantity, if there is one.")},
		{"quantity_unit", str("Unit of the quantities.", member{"enum", search.Units})},
	}, "quantity_from", "quantity_to")
	interpretation := closed("How the words were read, if other words were searched for, or they have a range.", object{
		{"steps", listOf(str("A second try, or `also` for synonyms besides.", member{"enum", search.Steps}))},
		{"used", words("Words that the assets have.")},
		{"left_out", words("Words that were left out.")},
		{"replaced", listOf(reference("schemas", "SearchReplacement"))},
		{"not_found", words("Words that no asset has, if nothing was found.")},
		{"range", reference("schemas", "SearchRange")},
	}, "range")
	return object{
		{"SearchHit", hit},
		{"SearchFacet", facet},
		{"SearchFacetValue", closed("A value of a facet.", object{
			{"value", text("Value, as the filter takes it.")}, {"name", text("Its name, where there is one.")},
			{"name_en", text("Its English name, if the operator has one.")},
			{"count", integer("Assets that have the value.", member{"minimum", 1})},
		}, "name", "name_en")},
		{"SearchSuggestions", closed("Suggestions.", object{{"data", listOf(text("A text to search for."))}})},
		{"Dictionaries", closed("All dictionaries.", object{{"data", listOf(reference("schemas", "Dictionary"))}})},
		{"Dictionary", closed("A list of values with their names.", object{
			{"id", text("Field that has the values, such as `unit.code`, or scheme of the codes, such as `CPV`.")},
			{"name", text("Ukrainian name of the list.")}, {"name_en", text("English name of the list.")},
			{"values", listOf(closed("A value.", object{
				{"value", text("The value, as assets have it. A region is as the filter takes it.")},
				{"name", text("Ukrainian name, if there is one.")}, {"name_en", text("English name, if there is one.")},
			}, "name", "name_en"))},
		})},
		{"SearchReplacement", replacement},
		{"SearchInterpretation", interpretation},
		{"SearchRange", inWords},
		{"SearchAnswer", closed("The answer to a search.", object{
			{"data", listOf(reference("schemas", "SearchHit"))},
			{"total", integer("Assets on all pages.", member{"minimum", 0})},
			{"position", stamp("The answer has every change of the feed up to here.")},
			{"facets", closed("Facets that were asked for.", facets, search.Facets...)},
			{"next_page", next},
			{"interpreted", reference("schemas", "SearchInterpretation")},
		}, "facets", "next_page", "interpreted")},
	}
}
