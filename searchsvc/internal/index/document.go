package index

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // a container image may have no files with time zones
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/filelink"
	"asset-registry/shared/replica"
	"asset-registry/shared/ukrainian"
)

// Limits of one asset in the index. An asset has at most 4 MiB of text.
const (
	maxID      = 100                  // bytes of an id; an asset with a longer id is not found
	maxShown   = 300                  // characters of a text that a hit shows; fewer if the hit would be too large
	maxCode    = 100                  // characters of a code that a hit shows
	shownItems = 3                    // items that a hit shows
	maxTerms   = assetfilter.MaxTerms // different words of an asset; searches for further words do not find it
	maxWords   = 50_000               // words that are read from an asset; reading them takes at most half a second
	maxTerm    = 64                   // bytes of a word; the rest is cut off
	maxKey     = assetfilter.MaxTerm
)

// asset has the fields of an asset that the index uses. A hit has them in this order.
type asset struct {
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
	Rectification  period           `json:"rectificationPeriod,omitzero"`
	AssetCustodian organisation     `json:"assetCustodian,omitzero"`
	Items          []item           `json:"items,omitzero"`
	AssetHolder    organisation     `json:"assetHolder,omitzero"`
	Decisions      []decision       `json:"decisions,omitzero"`
	Documents      []document       `json:"documents,omitzero"`
	Processes      []process        `json:"relatedProcesses,omitzero"`
}

type period struct {
	StartDate client.Timestamp `json:"startDate,omitzero"`
}

type organisation struct {
	Name       string     `json:"name,omitzero"`
	NameEn     string     `json:"name_en,omitzero"`
	NameRu     string     `json:"name_ru,omitzero"`
	Identifier identifier `json:"identifier,omitzero"`
	Address    address    `json:"address,omitzero"`
}

type identifier struct {
	Scheme    string         `json:"scheme,omitzero"`
	ID        jsontext.Value `json:"id,omitzero"` // a string or a number
	LegalName string         `json:"legalName,omitzero"`
}

type item struct {
	Description    string           `json:"description,omitzero"`
	DescriptionEn  string           `json:"description_en,omitzero"`
	DescriptionRu  string           `json:"description_ru,omitzero"`
	Classification classification   `json:"classification,omitzero"`
	Additional     []classification `json:"additionalClassifications,omitzero"`
	Unit           unit             `json:"unit,omitzero"`
	Quantity       jsontext.Value   `json:"quantity,omitzero"`
	Address        address          `json:"address,omitzero"`
	Registration   registration     `json:"registrationDetails,omitzero"`
}

type classification struct {
	Scheme        string `json:"scheme,omitzero"`
	ID            string `json:"id,omitzero"`
	Description   string `json:"description,omitzero"`
	DescriptionEn string `json:"description_en,omitzero"`
	DescriptionRu string `json:"description_ru,omitzero"`
}

type unit struct {
	Code string `json:"code,omitzero"`
	Name string `json:"name,omitzero"`
}

type address struct {
	StreetAddress string `json:"streetAddress,omitzero"`
	Locality      string `json:"locality,omitzero"`
	Region        string `json:"region,omitzero"`
	PostalCode    string `json:"postalCode,omitzero"`
	CountryName   string `json:"countryName,omitzero"`
}

type registration struct {
	RegistrationID string `json:"registrationID,omitzero"`
}

type decision struct {
	Title      string `json:"title,omitzero"`
	DecisionID string `json:"decisionID,omitzero"`
}

type process struct {
	RelatedProcessID string `json:"relatedProcessID,omitzero"`
	Identifier       string `json:"identifier,omitzero"`
}

type document struct {
	ID           string `json:"id,omitzero"`
	DocumentType string `json:"documentType,omitzero"`
	Title        string `json:"title,omitzero"`
	Format       string `json:"format,omitzero"`
	SHA256       string `json:"sha256,omitzero"`
	URL          string `json:"url,omitzero"`
}

// isFound reports whether searches must find an asset (docs/search.md, Q2). Only such assets are in the index.
func isFound(e replica.Entry, a *asset) bool {
	if e.Test || len(e.ID) > maxID {
		return false
	}
	return slices.Contains(assetfilter.Statuses, a.Status)
}

// parse reads the asset of an entry of the feed.
func parse(e replica.Entry) (*asset, error) {
	a := &asset{}
	if err := json.Unmarshal(e.JSON, a); err != nil {
		return nil, fmt.Errorf("%w: asset %s: %w", replica.ErrEntry, e.ID, err)
	}
	if a.ID != e.ID {
		return nil, fmt.Errorf("%w: asset %s has the id %.50q", replica.ErrEntry, e.ID, a.ID)
	}
	return a, nil
}

// fields returns the terms of each field of the index, and the JSON of the hit.
func (a *asset) fields(position int64) (terms map[string][]string, hit []byte, err error) {
	t := termSet{fields: map[string]map[string]bool{}, words: maxWords}
	filtered := a.filtered()
	for _, p := range search.Properties {
		a.values(p, filtered, func(term, named, name string) {
			t.add(p.Field, term)
			if p.Names != "" {
				t.name(p.Names, named, name)
			}
		})
	}
	t.add(positionField, numberTerm(position))
	if at, err := a.Rectification.StartDate.Time(); err == nil {
		t.add(publishedField, numberTerm(at.UnixMicro()))
	}
	for i := range a.Items {
		if number, ok := a.Items[i].number(); ok {
			t.add(quantityField, floatTerm(number))
		}
	}
	a.amounts(&t)
	for i := range a.Items {
		in := a.Items[i].Address
		names, _ := ukrainian.Renamed(in.Locality, in.Region)
		for _, name := range append(names, in.Locality, in.Region) {
			t.place(name)
		}
	}
	for _, term := range nameTerms(a.AssetCustodian.Name) {
		t.add(custodianField, term)
	}
	a.words(&t)
	hit, err = a.hit()
	return t.lists(), hit, err
}

// kyiv returns the time zone of the site.
var kyiv = sync.OnceValue(func() *time.Location {
	zone, err := time.LoadLocation("Europe/Kyiv")
	if err != nil { // cannot happen: the program contains the time zones
		panic(fmt.Sprintf("index: %v", err))
	}
	return zone
})

// values calls the function `add` for each term of a property, with the value and its name for people.
func (a *asset) values(of search.Property, filtered *assetfilter.Asset, add func(term, value, name string)) {
	zone, isMonth := map[search.FacetName]*time.Location{search.ByMonth: time.UTC, search.ByKyivMonth: kyiv()}[of.Name]
	if !isMonth {
		of.Each(filtered, add)
	} else if at, err := a.Rectification.StartDate.Time(); err == nil {
		add(at.In(zone).Format("2006-01"), "", "")
	}
}

// filtered returns the properties of the asset that filters use.
func (a *asset) filtered() *assetfilter.Asset {
	f := &assetfilter.Asset{
		Status: string(a.Status), Type: a.AssetType, Owner: a.Owner,
		Custodian: a.AssetCustodian.Identifier.key(), CustodianName: a.AssetCustodian.Name,
	}
	for i := range a.Items {
		item := &a.Items[i]
		f.Items = append(f.Items, assetfilter.Item{
			Code: item.Classification.ID, CodeName: item.Classification.Description,
			Region: item.Address.Region, Locality: item.Address.Locality,
		})
	}
	return f
}

// place adds the keys of the name of a place, if the name is one word.
func (t *termSet) place(name string) {
	words := ukrainian.Words(ukrainian.Place(name))
	if len(words) != 1 {
		return
	}
	for _, key := range words[0] {
		if !strings.HasPrefix(key, "+") {
			t.add(placeField, cut(key, maxTerm))
		}
	}
}

// words adds the words of an asset. It leaves out contact points, because they contain the names of people.
func (a *asset) words(t *termSet) {
	t.title(a.Title, a.TitleEn, a.TitleRu)
	t.text(wordField, a.Description, a.DescriptionEn, a.DescriptionRu, a.ID, a.AssetID)
	for _, o := range []*organisation{&a.AssetCustodian, &a.AssetHolder} {
		t.text(wordField, o.Name, o.NameEn, o.NameRu, o.Identifier.LegalName, o.Identifier.text(),
			o.Identifier.key())
		t.address(&o.Address)
	}
	for n := range a.Items {
		i := &a.Items[n]
		t.text(wordField, i.Description, i.DescriptionEn, i.DescriptionRu, i.Registration.RegistrationID)
		if _, ok := i.number(); ok && len(i.Quantity) <= maxCode {
			t.text(wordField, string(i.Quantity))
		}
		t.address(&i.Address)
		t.classification(&i.Classification)
		for n := range i.Additional {
			t.classification(&i.Additional[n])
		}
	}
	for _, d := range a.Decisions {
		t.text(wordField, d.Title, d.DecisionID)
	}
	for _, p := range a.Processes {
		t.text(wordField, p.RelatedProcessID, p.Identifier)
	}
	for _, d := range a.Documents {
		if d.DocumentType != client.InformationDetails { // every asset has a document of this type, with the same title
			t.text(wordField, d.Title)
		}
	}
}

func (t *termSet) address(a *address) {
	t.text(wordField, a.StreetAddress, a.Locality, a.Region, a.PostalCode, a.CountryName)
	names, beside := ukrainian.Renamed(a.Locality, a.Region)
	t.text(wordField, names...)
	for _, key := range beside {
		t.add(wordField, cut(key, maxTerm))
	}
}

func (t *termSet) classification(c *classification) {
	t.text(wordField, c.ID, c.Description, c.DescriptionEn, c.DescriptionRu)
}

// hit returns the fields of a hit as JSON (search.Hit). It cuts texts, so that the JSON has at most
// search.MaxHit bytes.
func (a *asset) hit() (hit []byte, err error) {
	for most := maxShown; ; most /= 2 {
		// The answer to a search escapes the characters of HTML and JavaScript, so their escaped length counts.
		hit, err = json.Marshal(a.summary(most), jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true))
		if err != nil || len(hit) <= search.MaxHit {
			return hit, err
		}
	}
}

// summary returns the fields of a hit. It cuts each text to the given number of characters.
func (a *asset) summary(most int) *asset {
	text := func(text string) string { return codenames.Cut(text, most) }
	code := func(text string) string { return codenames.Cut(text, min(most, maxCode)) }
	s := &asset{
		ID: a.ID, DateModified: client.Timestamp(code(string(a.DateModified))), AssetID: code(a.AssetID),
		AssetType: code(a.AssetType), Status: a.Status, Date: code(a.Date), Title: text(a.Title),
		TitleEn: text(a.TitleEn), Description: text(a.Description), Owner: code(a.Owner),
		Rectification: period{client.Timestamp(code(string(a.Rectification.StartDate)))},
		AssetCustodian: organisation{Name: text(a.AssetCustodian.Name), Identifier: identifier{
			Scheme: code(a.AssetCustodian.Identifier.Scheme), ID: a.AssetCustodian.Identifier.shown(code),
		}},
	}
	for _, i := range a.Items[:min(len(a.Items), shownItems)] {
		shown := item{
			Description: text(i.Description), Unit: unit{code(i.Unit.Code), code(i.Unit.Name)},
			Classification: classification{
				Scheme: code(i.Classification.Scheme), ID: code(i.Classification.ID),
				Description: text(i.Classification.Description),
			},
			Address: address{
				StreetAddress: text(i.Address.StreetAddress), Locality: text(i.Address.Locality), Region: text(i.Address.Region),
			},
		}
		if _, ok := i.number(); ok && len(i.Quantity) <= maxCode && i.Quantity.Kind() == '0' {
			shown.Quantity = i.Quantity
		}
		s.Items = append(s.Items, shown)
	}
	return s
}

// pictures returns the file id of the first illustration, a blank, and the number of illustrations. It is "" if the
// asset has no illustration.
func (a *asset) pictures() string {
	newest := map[string]int{} // maps the id of each document to the index of its newest version
	for i := range a.Documents {
		newest[a.Documents[i].ID] = i
	}
	first, all := "", 0
	for i, d := range a.Documents {
		if id := filelink.PictureOf(d.DocumentType, d.Format, d.SHA256, d.URL); id != "" && newest[d.ID] == i {
			first = cmp.Or(first, id)
			all++
		}
	}
	if all == 0 {
		return ""
	}
	return first + " " + strconv.Itoa(all)
}

// number returns the quantity of an item. ok is false if it has no quantity.
func (i *item) number() (number float64, ok bool) {
	number, err := strconv.ParseFloat(strings.Trim(string(i.Quantity), `"`), 64)
	return number, err == nil && !math.IsInf(number, 0)
}

func (i *identifier) key() string { return assetfilter.OrganisationKey(i.Scheme, i.ID) }

// shown returns the id as a hit has it. A short id stays unchanged. Of a long id, a hit has the beginning of its text.
func (i *identifier) shown(begin func(string) string) jsontext.Value {
	whole := i.text()
	if whole == "" {
		return nil
	}
	if cut := begin(whole); cut != whole || i.ID.Kind() != '0' {
		text, err := jsontext.AppendQuote(nil, cut)
		if err != nil { // cannot happen: whole comes from JSON, so it is valid UTF-8
			return nil
		}
		return text
	}
	return i.ID
}

func (i *identifier) text() string { return assetfilter.IDText(i.ID) }

// termSet has the terms of each field, each term once.
type termSet struct {
	fields map[string]map[string]bool
	words  int // number of words that may still be read
}

func (t *termSet) add(field, term string) {
	if term == "" || len(term) > maxKey {
		return
	}
	set := t.fields[field]
	if set == nil {
		set = map[string]bool{}
		t.fields[field] = set
	}
	if len(set) < maxTerms {
		set[term] = true
	}
}

// name adds the name of a value, so that facets can show the name.
func (t *termSet) name(field, key, name string) {
	isKey := key != "" && len(key) <= maxKey/2 && !strings.Contains(key, nameSeparator)
	if name = strings.TrimSpace(name); name != "" && isKey {
		t.add(field, key+nameSeparator+cut(name, maxKey/2-1))
	}
}

// text adds the words of texts.
func (t *termSet) text(field string, texts ...string) {
	for _, text := range texts {
		t.words -= ukrainian.Each(text, t.words, func(term string) { t.add(field, cut(term, maxTerm)) })
	}
}

// title adds the words of titles. They also count as words of the asset.
func (t *termSet) title(texts ...string) {
	for _, text := range texts {
		t.words -= ukrainian.Each(text, t.words, func(term string) {
			term = cut(term, maxTerm)
			t.add(titleField, term)
			t.add(wordField, term)
		})
		before, words := "", 0
		for w := range ukrainian.Written(text, maxTitle) {
			words++
			t.add(exactField, cut(w.Text, maxTerm))
			if before != "" {
				t.add(pairField, pairOf(before, w.Key))
			}
			before = w.Key
		}
		if words > 0 {
			t.add(lengthField, lengthTerm(words))
		}
	}
}

// maxTitle is the number of words of a title that the order of hits takes into account.
const maxTitle = 24

// pairOf returns the term for two neighbouring words.
func pairOf(a, b string) string { return cut(a, maxTerm/2) + " " + cut(b, maxTerm/2) }

// pairsOf returns a term for each pair of a key of one word and a key of the next word.
func pairsOf(first, second []string) (all []string) {
	for _, a := range first {
		for _, b := range second {
			all = append(all, pairOf(a, b))
		}
	}
	return all
}

// lengths divides titles into classes by their number of words. A title belongs to the first class whose element here
// is larger than the number of words of the title.
var lengths = []int{2, 3, 4, 5, 7, 10, 15}

// lengthTerm returns the term, a digit, for titles with the given number of words.
func lengthTerm(words int) string {
	at, _ := slices.BinarySearch(lengths, words+1)
	return strconv.Itoa(at)
}

// cut returns at most the given number of bytes of a text. It never cuts a character in two.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

func (t *termSet) lists() map[string][]string {
	lists := make(map[string][]string, len(t.fields))
	for field, set := range t.fields {
		list := make([]string, 0, len(set))
		for term := range set {
			list = append(list, term)
		}
		lists[field] = list
	}
	return lists
}

// numberTerm returns a number as a term. Terms sort in the order of their numbers.
func numberTerm(n int64) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(n)^1<<63))
}

func numberOf(term string) int64 {
	if len(term) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64([]byte(term)) ^ 1<<63)
}

// floatTerm returns a floating-point number as a term, from which floatOf returns the number.
func floatTerm(f float64) string {
	return string(binary.BigEndian.AppendUint64(nil, math.Float64bits(f)))
}

func floatOf(term string) float64 {
	if len(term) != 8 {
		return 0
	}
	return math.Float64frombits(binary.BigEndian.Uint64([]byte(term)))
}
