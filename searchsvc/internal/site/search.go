package site

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/export"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
	"asset-registry/shared/nearest"
	"asset-registry/shared/query"
	"asset-registry/shared/routes"
)

// facetsOf returns the facets that the search page shows.
func facetsOf() (all []search.FacetName) {
	for _, p := range search.Properties {
		if p.OnPage {
			all = append(all, p.Name)
		}
	}
	return all
}

// suggestions returns the path of suggestions for filters in the API. The script appends the text to it.
func suggestions(f search.Filters) string {
	filters := search.Query{Filters: f, Limit: search.DefaultLimit}.Values().Encode()
	return "/api/" + routes.Current + routes.Suggest + "?" + strings.TrimPrefix(filters+"&q=", "&")
}

// searchScripts show suggestions while somebody types a question.
var searchScripts = []string{"suggest.js"}

// foundPage is the body of the search page.
type foundPage struct {
	Query   search.Query
	Sent    url.Values // values that the form shows
	Suggest string     // path of suggestions for the filters, to which the script appends the text
	Faults  []string   // what is wrong with the parameters
	Marked  []string   // faulty parameters
	Total   int64
	Hits    []hit
	Facets  []filter
	IsOpen  bool // on a phone, the page shows the filters at once
	Active  []chip
	Next    string // path of the next page; "": this is the last page
	Prev    string // path of the page before; "": this is the first page
	First   string // path of the first page; "": this is the first page, or Prev leads to it
	Page    int64  // number of the page; the first page has 1
	Pages   int64
	Clear   string // path of the search without filters
	Counts  string // path of the statistics of the same search
	News    string // path of the Atom feed of the new assets that the search finds; "": the path is too long
	API     string // path of the same search in the API; "": the path is too long
	Exports []link // files with the assets that the search finds
	IsCut   bool   // the files do not have all assets that the search finds
	Sorts   []choice
	Units   []choice // units for the range of quantities
	Rows    []choice // choices of the number of assets on a page
	IsBegun bool     // the search has a text or a filter
	Read    reading
	Tries   []link // other searches to try; empty if something was found
	Missing string // words that no asset has; "" if something was found
}

// reading has the words with which the index was searched, if they are not the words of the question.
type reading struct {
	Used, LeftOut string
	Range         string // the range that the words of the question have
	IsPartial     bool   // assets may lack one of the words
	IsStopped     bool   // the search for other words cost too much
	Also          string // words of the same meaning that are found, too
	Insist        string // path of the search for exactly the words of the question
}

// link is a path, and the text that says what it leads to.
type link struct{ Path, Says string }

// hit is a found asset in a list.
type hit struct {
	ID, Path, Title, TitleLang, Number string
	Lead                               string
	Status                             client.Status
	Class, Place, Quantity, Custodian  string // Class, Place and Quantity are of the first item
	IsFirst                            bool   // the asset has more than one item
	ClassLang                          string
	Modified                           time.Time
	Marked                             []piece // Title in pieces
	Line                               []piece // part of the description with found words; nil: there are none
	Picture                            string  // path of a picture; "": none
	Pictures                           int
}

// filter is a facet with its values.
type filter struct {
	Name   string
	Values []choice
	More   bool
	Active int // number of chosen values

	IsWhole bool // the page already shows the largest number of values
	Typed   bool // people may type a value
}

// choice is a value of a filter, or of a list in the form.
type choice struct {
	ID, Value, Name string
	Count           int64 // -1: not known
	Chosen          bool
}

// chip is a filter that is in effect. Without is the path of the page without the filter; "": the path is too
// long.
type chip struct{ Name, Value, Without string }

// search shows the search, its filters and a page of the found assets.
func (s *Site) search(w http.ResponseWriter, r request) error {
	sent, faults := readQuery(r.lang, r.URL.RawQuery)
	full := strings.TrimSuffix(r.URL.Path+"?"+sent.Encode(), "?")
	more, rows := search.FacetName(sent.Get(moreParam)), rowsIn(sent)
	// The parameters facets and facet_limit exist only in the API, rowsParam and moreParam only on this page.
	for _, name := range []string{rowsParam, "facets", "facet_limit", moreParam} {
		sent.Del(name)
	}
	q, err := search.Parse(sent, kyiv, faults...)
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return s.showFaults(w, r, sent, f)
	}
	if hasEmpty(r.URL.RawQuery) {
		return redirect(w, r, full, nil)
	}
	q.Filters = tidied(q.Filters)
	q.Facets, q.Apart, q.Others, q.FacetLimit, q.Limit = facetsOf(), true, true, mostShown, rows
	if slices.Contains(q.Facets, more) {
		q.FacetLimit = search.MaxFacetLimit
	}
	if err := s.takeTurn(&r); err != nil {
		return err
	}
	defer r.end()
	found, err := s.config.Searcher.Search(r.Context(), q)
	if err != nil {
		return err
	}
	p := newFoundPage(r.lang, s.config.Names, q, found, more)
	v := s.view(r, texts["search.title"].in(r.lang), p)
	if q.Text != "" {
		v.Title = q.Text + " – " + texts["search.results"].in(r.lang)
	}
	if p.Page > 1 {
		v.Title += " – " + fmt.Sprintf(texts["search.page"].in(r.lang), count(r.lang, p.Page), count(r.lang, p.Pages))
	}
	v.About = texts["site.about"].in(r.lang)
	v.Section, v.Scripts = "search", searchScripts
	if slices.ContainsFunc(p.Hits, func(h hit) bool { return h.Picture != "" }) {
		v.Scripts = append(slices.Clone(v.Scripts), "pictures.js")
	}
	v.State.At = timeOf(found.Position.Offset)
	v.addQuery("/", queryOf(plainQuery(q)))
	v.NoIndex = q.After != nil || p.IsBegun
	v.Feed = "/feed.atom" + queryOf(feedQuery(q))
	if !p.IsBegun && q.After == nil {
		v.Linked = linkedSite(r.lang, r.base)
	}
	return s.show(w, r, http.StatusOK, "search", v)
}

// showFaults shows the search form again with all filters, and names the parameters with a faulty value. It counts what
// the other parameters find, but lists nothing, because the answer would be of another question.
func (s *Site) showFaults(w http.ResponseWriter, r request, sent url.Values, f *fault.Error) error {
	p := foundPage{Sorts: sorts(r.lang, search.Query{}), Suggest: suggestions(search.Filters{})}
	kept := maps.Clone(sent)
	for _, d := range f.Details {
		kept.Del(d.Name)
	}
	if q, err := search.Parse(kept, kyiv); err == nil {
		if err := s.takeTurn(&r); err != nil {
			return err
		}
		defer r.end()
		q.Filters = tidied(q.Filters)
		q.Facets, q.Apart, q.FacetLimit, q.Limit, q.After = facetsOf(), true, mostShown, 0, nil
		found, err := s.config.Searcher.Search(r.Context(), q)
		if err != nil {
			return err
		}
		q.Limit = search.DefaultLimit
		p = newFoundPage(r.lang, s.config.Names, q, found, "")
	}
	p.Sent = sent
	for _, d := range f.Details {
		p.Faults, p.Marked = append(p.Faults, faultText(r.lang, d)), append(p.Marked, d.Name)
	}
	v := s.view(r, texts["search.title"].in(r.lang), p)
	v.Section, v.NoIndex, v.Scripts = "search", true, searchScripts
	w.Header().Set("Cache-Control", "no-store")
	return s.show(w, r, http.StatusBadRequest, "search", v)
}

// Wrong returns the attributes of the field of a faulty parameter. Other fields have none.
func (p foundPage) Wrong(name string) template.HTMLAttr {
	if slices.Contains(p.Marked, name) {
		return ` aria-invalid="true" aria-describedby="wrong"`
	}
	return ""
}

// Day returns the day of a parameter. It is "" for another text, because the field of a day takes none.
func (p foundPage) Day(name string) string {
	text := p.Sent.Get(name)
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return ""
	}
	return text
}

// readQuery returns the parameters of a query string, and its faults. Quantities are read as people write them: with a
// comma, and with blanks between thousands.
func readQuery(l Lang, raw string) (url.Values, []fault.Detail) {
	sent, faults := query.Read(raw, ofPage)
	for _, name := range quantityParams {
		for i, text := range sent[name] {
			number := blanks.Replace(text)
			if typedNumber.MatchString(number) && (l != English || !thousands.MatchString(number)) {
				sent[name][i] = strings.Replace(number, ",", ".", 1)
			}
		}
	}
	return sent, faults
}

var (
	quantityParams = []string{"quantity_from", "quantity_to"}
	blanks         = strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "")
	typedNumber    = regexp.MustCompile(`^[0-9]+(,[0-9]+)?$`)
	thousands      = regexp.MustCompile(`^[1-9][0-9]{0,2},[0-9]{3}$`) // in English: 1,000 is no 1
)

// hasEmpty reports whether a query string has a parameter without a value, as forms without script send them.
func hasEmpty(raw string) bool {
	return slices.ContainsFunc(strings.Split(raw, "&"), func(part string) bool {
		name, value, _ := strings.Cut(part, "=")
		return name != "" && value == ""
	})
}

// faultText says for people that a parameter is faulty.
func faultText(l Lang, d fault.Detail) string {
	name := d.Name
	said, wrong := name, texts["search.fault"].in(l)
	if text, isKnown := texts["filter."+name]; isKnown {
		said = text.in(l)
	}
	switch {
	case name == query.Whole:
		return texts["search.fault.query"].in(l)
	case d.Description == query.Twice:
		wrong = texts["search.fault.twice"].in(l)
	case !slices.Contains(search.Params(), name):
		near := fmt.Sprintf(texts["search.unknown.nearest"].in(l), nearest.To(name, search.Params()))
		return fmt.Sprintf(texts["search.unknown"].in(l), name) + " " + near
	case name == "q":
		wrong += ", " + texts["search.fault.text"].in(l)
	}
	return said + ": " + wrong
}

// ofPage has the parameters of a search as people send them.
var ofPage = query.Params{Names: append(search.Params(), moreParam), Lists: search.OfAPI.Lists, IsPage: true}

// moreParam is a parameter that names a facet. The page shows as many values of this facet as it may.
const moreParam = "more"

const (
	firstShown = 10 // values of a facet that are shown at first
	mostShown  = 30 // regions that are shown; Ukraine has 27
)

// tidied returns filters with each value once, in the form in which facets have it. A custodian that is only a
// number is the organisation with this number in the register of organisations (UA-EDR).
func tidied(f search.Filters) search.Filters {
	for _, p := range search.Properties {
		if p.Levels != nil {
			continue
		}
		var values []string
		for _, value := range f.ValuesOf(p.Name) {
			value = cmp.Or(p.Term(value), value)
			if p.Name == search.ByCustodian && strings.Trim(value, "0123456789") == "" {
				value = "UA-EDR-" + value
			}
			if !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
		f = f.With(p.Name, values)
	}
	return f.With(search.ByClassification, narrowest(f.ValuesOf(search.ByClassification)))
}

// narrowest removes each chosen code that has another chosen code below it. With both codes, the search would find all
// assets with the upper code, and the lower code would have no effect.
func narrowest(codes []string) []string {
	return slices.DeleteFunc(slices.Clone(codes), func(code string) bool {
		prefix, _ := assetfilter.CodePrefix(code)
		return slices.ContainsFunc(codes, func(other string) bool {
			longer, _ := assetfilter.CodePrefix(other)
			return longer != prefix && strings.HasPrefix(longer, prefix)
		})
	})
}

// plainQuery returns a question without the facets that only the site asks for.
func plainQuery(q search.Query) search.Query {
	q.Facets, q.FacetLimit, q.Apart = nil, 0, false
	return q
}

// feedQuery returns the question for the Atom feed of a search. Its hits are the newest first.
func feedQuery(q search.Query) search.Query {
	q = plainQuery(q)
	q.After, q.Sort, q.Limit = nil, search.NewestFirst, search.DefaultLimit
	return q
}

// queryOf returns a question as the query part of an address; "" if it has no parameters.
func queryOf(q search.Query) string {
	if encoded := q.Values().Encode(); encoded != "" {
		return "?" + encoded
	}
	return ""
}

func newFoundPage(l Lang, names codenames.Lists, q search.Query, found search.Result, more search.FacetName,
) foundPage {
	plain := plainQuery(q)
	found.Facets = distinct(found.Facets)
	p := foundPage{
		Query: q, Sent: plain.Values(), Total: found.Total, Suggest: suggestions(q.Filters),
		Sorts: sorts(l, q), Units: unitsOf(l, q), Rows: rowsOf(q),
	}
	root := "/" + string(l) + "/"
	words, back := newFoundWords(cmp.Or(found.Range.Rest, q.Text), found.Reading), backFrom(plain)
	for _, h := range found.Hits {
		if a, err := h.Decode(); err == nil { // err is always nil, because the index itself has encoded the asset
			shown := newHit(l, names, a)
			shown.Path = assetPath(l, a.ID) + back
			shown.Marked, shown.Line = words.in(shown.Title), words.line(a.Description)
			if h.Picture != "" {
				shown.Picture = filelink.Picture(filelink.GetPath+"/"+h.Picture, filelink.SmallPicture)
				shown.Pictures = h.Pictures
			}
			p.Hits = append(p.Hits, shown)
		}
	}
	for _, f := range found.Facets {
		shown := newFilter(l, q, f, more)
		p.Facets = append(p.Facets, shown)
		p.IsOpen = p.IsOpen || shown.IsWhole
	}
	p.Active = chips(l, "/", plain, found.Facets)
	p.IsBegun = q.Text != "" || len(p.Active) > 0
	p.Read = newReading(l, root, plain, found)
	if found.Total == 0 {
		p.Missing = quoted(found.NotFound)
		p.Tries = tries(l, root, q, found.Others)
	}
	p.Clear = root + queryOf(search.Query{Text: q.Text, Limit: q.Limit})
	at := func(c *search.Cursor) string {
		to := plain
		to.After = c
		return root + queryOf(to)
	}
	rows := int64(max(1, q.Limit))
	p.Page = 1 + (found.Before+rows-1)/rows
	p.Pages = p.Page + (max(0, found.Total-found.Before-int64(len(found.Hits)))+rows-1)/rows
	if found.Next != nil {
		p.Next = at(found.Next)
	}
	if found.Prev != nil {
		p.Prev = at(found.Prev)
	}
	if p.Page > 2 {
		p.First = at(nil)
	}
	news := feedQuery(plain)
	p.Counts = "/" + string(l) + statisticsPath + queryOf(news)
	news.Sort = search.LatestPublished
	if of := queryOf(news); len(of) <= mostExportQuery {
		p.News = "/" + string(l) + "/feed.atom" + of
	}
	api := plain
	api.After, api.Zone = nil, nil // in the API, days are days of UTC
	if of := queryOf(api); len(of) <= mostExportQuery {
		p.API = "/api/" + routes.Current + routes.Search + of
	}
	api.Limit = search.DefaultLimit
	for _, path := range routes.Exports {
		_, form, _ := strings.Cut(path, ".")
		if query := queryOf(api); len(query) <= mostExportQuery {
			above := "/" + string(l)
			if !slices.Contains(export.Endings, form) {
				above = "/api/" + routes.Current
			}
			form = strings.Replace(strings.ToUpper(form), "GEO", "Geo", 1)
			p.Exports = append(p.Exports, link{above + path + query, form})
		}
	}
	p.IsCut = found.Total > mostExported
	return p
}

// newReading says how a question was read. It returns the zero value if the question was read as it is written.
func newReading(l Lang, root string, q search.Query, found search.Result) (said reading) {
	q.After, q.Exact = nil, true
	if in := found.Range; in.Words != "" {
		said.Range, said.Insist = areaText(l, in), root+queryOf(q)
	}
	switch r := found.Reading; {
	case r.Has(search.Stopped):
		said.IsStopped = true
	case r.Has(search.ByAlso):
		for _, w := range r.Replaced() {
			said.Also = joined(" ", said.Also, quoted([]string{w.Said}))
		}
		said.Insist = root + queryOf(q)
	case r.IsAnother():
		said.Used, said.LeftOut, said.IsPartial = quoted(r.Used()), quoted(r.LeftOut()), r.Has(search.ByMissing)
		said.Insist = root + queryOf(q)
	}
	return said
}

// areaText says a range of areas for people: "площа до 500 м²".
func areaText(l Lang, in search.Range) string {
	said := texts["search.read.area"].in(l)
	for _, bound := range []struct {
		text string
		at   *float64
	}{{"search.from", in.From}, {"search.to", in.To}} {
		if bound.at != nil {
			said += " " + texts[bound.text].in(l) + " " + decimal(l, strconv.FormatFloat(*bound.at, 'f', -1, 64))
		}
	}
	return said + "\u00a0" + texts["unit."+string(in.Unit)].in(l)
}

// quoted returns words, each in quotation marks.
func quoted(words []string) string {
	var all []string
	for _, w := range words {
		all = append(all, "«"+w+"»")
	}
	return strings.Join(all, " ")
}

// mostExported is the largest number of assets in a file of a search (docs/contract.md, "Exports").
const mostExported = 10_000

// mostExportQuery is the maximum number of bytes of a query in a link to an export, to the API, or to a feed of new
// assets. A page leaves out links with longer queries, so that it stays small although it has many filters.
const mostExportQuery = 300

// tries returns links to other searches, which find something.
func tries(l Lang, root string, q search.Query, others []search.Query) (all []link) {
	for _, other := range others {
		says := other.Text
		if other.Exact != q.Exact {
			says = texts["search.freely"].in(l)
		}
		if path := repeated(root, queryOf(plainQuery(other))); path != "" {
			all = append(all, link{path, says})
		}
	}
	return all
}

// newHit returns a found asset for a list.
func newHit(l Lang, names codenames.Lists, a assetfilter.Asset) hit {
	h := hit{
		ID: a.ID, Title: a.Title, TitleLang: string(Ukrainian), Number: a.AssetID, Status: a.Status,
		Lead: codenames.Cut(a.Description, 200), Custodian: a.AssetCustodian.Name, Modified: timeOf(a.DateModified),
	}
	if l == English && a.TitleEn != "" {
		h.Title, h.TitleLang = a.TitleEn, string(English)
	}
	if len(a.Items) == 0 {
		return h
	}
	first := a.Items[0]
	h.IsFirst = len(a.Items) > 1
	h.Class, h.ClassLang = first.Classification.Description, string(Ukrainian)
	if name, lang := codeName(l, names, first.Classification.Scheme, first.Classification.ID); name != "" {
		h.Class, h.ClassLang = name, string(lang)
	}
	h.Class = joined(", ", h.Class, first.Classification.ID)
	region := first.Address.Region
	if isCity(first.Address.Locality, region) {
		region = ""
	}
	h.Place = joined(", ", first.Address.StreetAddress, first.Address.Locality, region)
	if len(first.Quantity) > 0 {
		unit := first.Unit.Name
		if u, known := unitOf(first.Unit.Code); known {
			unit = u.afterText(l, string(first.Quantity))
		}
		h.Quantity = joined("\u00a0", decimal(l, string(first.Quantity)), unit)
	}
	return h
}

// joined joins texts with a mark between them. It leaves out empty texts.
func joined(mark string, all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(text string) bool { return text == "" }), mark)
}

// newFilter returns a facet for the page. The chosen values that f.Values does not have come first.
func newFilter(l Lang, q search.Query, f search.Facet, more search.FacetName) filter {
	name := string(f.Name)
	f.Values = namelessLast(f)
	to := filter{Name: name, More: f.More, IsWhole: f.Name == more}
	if to.Typed = isTyped(f.Name); to.Typed && f.Name != more && len(f.Values) > firstShown {
		f.Values, to.More = f.Values[:firstShown], true
	}
	chosen := q.Filters.ValuesOf(f.Name)
	for _, value := range chosen {
		if !slices.ContainsFunc(f.Values, func(c search.Count) bool { return c.Value == value }) {
			c := chosenIn(f, value)
			shown := choice{Value: value, Name: valueName(l, f.Name, c), Count: c.Count, Chosen: true}
			if c.Count == 0 {
				shown.Count = -1
			}
			to.Values = append(to.Values, shown)
		}
	}
	for _, c := range f.Values {
		to.Values = append(to.Values, choice{
			Value: c.Value, Name: valueName(l, f.Name, c), Count: c.Count, Chosen: slices.Contains(chosen, c.Value),
		})
	}
	for i := range to.Values {
		to.Values[i].ID = name + "-" + to.Values[i].Value
	}
	to.Active = len(chosen)
	return to
}

// namelessLast returns the values of a facet. Codes without a name come last.
func namelessLast(f search.Facet) []search.Count {
	isNamed := func(c search.Count) bool { return f.Name != search.ByClassification || c.Name != "" }
	named := slices.DeleteFunc(slices.Clone(f.Values), func(c search.Count) bool { return !isNamed(c) })
	return append(named, slices.DeleteFunc(slices.Clone(f.Values), isNamed)...)
}

// isTyped reports whether a facet may have more values than a page can show, so that people type a value. The page
// shows all regions, and all values of a facet with a closed list.
func isTyped(name search.FacetName) bool {
	f, _ := assetfilter.Find(assetfilter.Name(name))
	return name != search.ByRegion && f.Values == nil
}

// chosenIn returns a value of the filter, with the name and the count that the facet has for it.
func chosenIn(f search.Facet, value string) search.Count {
	for _, c := range f.Chosen {
		if c.Value == value {
			return c
		}
	}
	return search.Count{Value: value}
}

// valueName returns the name that people see for a value of a facet.
func valueName(l Lang, name search.FacetName, c search.Count) string {
	switch {
	case name == search.ByStatus:
		return word(l, "status", c.Value)
	case name == search.ByType:
		return word(l, "assetType", c.Value)
	case name == search.ByMonth || name == search.ByKyivMonth:
		return month(l, c.Value)
	case name == search.ByClassification && nameIn(l, c) == "":
		return fmt.Sprintf(texts["search.nameless"].in(l), c.Value)
	case name == search.ByClassification:
		return nameIn(l, c) + ", " + c.Value
	case name == "quantity_unit":
		return texts["unit."+c.Value].in(l)
	case c.Name != "":
		return c.Name
	}
	return c.Value
}

// chips returns the filters that are in effect on a page, each with the path of the page without this filter.
// The names of values come from facets.
func chips(l Lang, page string, q search.Query, facets []search.Facet) []chip {
	q.After = nil
	names := map[string]string{} // names of values
	for _, f := range facets {
		for _, c := range slices.Concat(f.Values, f.Chosen) {
			names[string(f.Name)+"/"+c.Value] = valueName(l, f.Name, c)
		}
	}
	sent := q.Values()
	var all []chip
	for _, name := range search.FilterParams() {
		for _, value := range sent[name] {
			without := url.Values{}
			for other, values := range sent {
				for _, v := range values {
					if other != name || v != value {
						without.Add(other, v)
					}
				}
			}
			path := "/" + string(l) + page
			if len(without) > 0 {
				path = repeated(path, "?"+without.Encode())
			}
			said := cmp.Or(names[name+"/"+value], valueName(l, search.FacetName(name), search.Count{Value: value}))
			all = append(all, chip{texts["filter."+name].in(l), said, path})
		}
	}
	return all
}

func defaultSort(q search.Query) search.Sort {
	if q.Text != "" {
		return search.ByRelevance
	}
	return search.NewestFirst
}

// sorts returns the orders of hits that people can choose.
func sorts(l Lang, q search.Query) []choice {
	var all []choice
	for _, sort := range search.Sorts {
		if sort == search.ByRelevance && q.Text == "" {
			continue
		}
		value := string(sort)
		if sort == defaultSort(q) { // no value for the default: with a text, the default becomes relevance
			value = ""
		}
		all = append(all, choice{
			Value: value, Name: texts["sort."+string(sort)].in(l), Chosen: sort == q.Sort,
		})
	}
	return all
}

// unitsOf returns the units that a range of quantities may have, and the choice of no unit.
func unitsOf(l Lang, q search.Query) (all []choice) {
	for _, unit := range append([]search.Unit{""}, search.Units...) {
		all = append(all, choice{
			Value: string(unit), Name: texts["unit."+string(unit)].in(l), Chosen: unit == q.Filters.Quantity.Unit,
		})
	}
	return all
}

const rowsParam = "limit"

// rowChoices has the numbers of assets on a page that people can choose.
var rowChoices = []int{search.DefaultLimit, 50, search.MaxLimit}

// rowsIn returns the chosen number of assets on a page, or the default if the number is not one of rowChoices.
func rowsIn(sent url.Values) int {
	n, err := strconv.Atoi(sent.Get(rowsParam))
	if err != nil || !slices.Contains(rowChoices, n) {
		return search.DefaultLimit
	}
	return n
}

func rowsOf(q search.Query) (all []choice) {
	for _, n := range rowChoices {
		value := strconv.Itoa(n)
		shown := choice{Value: value, Name: value, Chosen: n == q.Limit}
		if n == search.DefaultLimit { // the form leaves out the default
			shown.Value = ""
		}
		all = append(all, shown)
	}
	return all
}
