package index

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/filelink"
	"asset-registry/shared/isotime"
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

// asset is an asset as the index reads it.
type asset assetfilter.Asset

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
	for _, p := range search.Properties {
		a.values(p, func(term, named, name string) {
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
		if number, ok := a.Items[i].Number(); ok {
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

// values calls the function `add` for each term of a property, with the value and its name for people.
func (a *asset) values(of search.Property, add func(term, value, name string)) {
	zones := map[search.FacetName]*time.Location{search.ByMonth: time.UTC, search.ByKyivMonth: isotime.Kyiv()}
	zone, isMonth := zones[of.Name]
	if !isMonth {
		of.Each((*assetfilter.Asset)(a), add)
	} else if at, err := a.Rectification.StartDate.Time(); err == nil {
		add(at.In(zone).Format("2006-01"), "", "")
	}
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
	for _, o := range []*assetfilter.Organisation{&a.AssetCustodian, &a.AssetHolder} {
		t.text(wordField, o.Name, o.NameEn, o.NameRu, o.Identifier.LegalName, o.Identifier.Text(),
			o.Identifier.Key())
		t.address(&o.Address)
	}
	for n := range a.Items {
		i := &a.Items[n]
		t.text(wordField, i.Description, i.DescriptionEn, i.DescriptionRu, i.Registration.RegistrationID)
		if _, ok := i.Number(); ok && len(i.Quantity) <= maxCode {
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

func (t *termSet) address(a *assetfilter.Address) {
	t.text(wordField, a.StreetAddress, a.Locality, a.Region, a.PostalCode, a.CountryName)
	names, beside := ukrainian.Renamed(a.Locality, a.Region)
	t.text(wordField, names...)
	for _, key := range beside {
		t.add(wordField, cut(key, maxTerm))
	}
}

func (t *termSet) classification(c *assetfilter.Class) {
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
		Rectification: assetfilter.Period{StartDate: client.Timestamp(code(string(a.Rectification.StartDate)))},
		AssetCustodian: assetfilter.Organisation{Name: text(a.AssetCustodian.Name), Identifier: assetfilter.Identifier{
			Scheme: code(a.AssetCustodian.Identifier.Scheme), ID: shownID(&a.AssetCustodian.Identifier, code),
		}},
	}
	for _, i := range a.Items[:min(len(a.Items), shownItems)] {
		shown := assetfilter.Item{
			Description: text(i.Description), Unit: assetfilter.Unit{Code: code(i.Unit.Code), Name: code(i.Unit.Name)},
			Classification: assetfilter.Class{
				Scheme: code(i.Classification.Scheme), ID: code(i.Classification.ID),
				Description: text(i.Classification.Description),
			},
			Address: assetfilter.Address{
				StreetAddress: text(i.Address.StreetAddress), Locality: text(i.Address.Locality), Region: text(i.Address.Region),
			},
		}
		if _, ok := i.Number(); ok && len(i.Quantity) <= maxCode && i.Quantity.Kind() == '0' {
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

// shownID returns the id as a hit has it. A short id stays unchanged. Of a long id, a hit has the beginning of its
// text.
func shownID(i *assetfilter.Identifier, begin func(string) string) jsontext.Value {
	whole := i.Text()
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
