package index

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"
	segment "github.com/blevesearch/scorch_segment_api/v2"
	"github.com/blevesearch/vellum/levenshtein"
	"github.com/go-json-experiment/json/jsontext"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/nearest"
	"asset-registry/shared/ukrainian"
)

// Limits of the second tries of one search (docs/search.md, "Second tries").
const (
	// mostWork is the largest work of all tries. Its unit is an automaton's move along a letter of a term. A look-up, an
	// automaton, a set of assets and a text of a hit count as many of these moves as take about the same time.
	mostWork      = 800_000
	wordWork      = 250   // making the keys of a word
	lookupWork    = 30    // asking a segment for a term, or for the next term of a range
	automatonWork = 4_000 // making an automaton for a letter of a word
	setWork       = 20    // joining two sets of assets of a segment
	assetsAMove   = 2_000 // assets of a segment whose numbers two sets join as fast as an automaton moves
	hitWork       = 3_000 // reading the texts of a hit

	leastNear    = 4   // letters that a word needs to be compared
	mostCompared = 500 // terms that one comparison reads in a segment
	mostRead     = 8   // assets whose texts are read for a word to show

	// letterWork is the work of comparing one letter of a word with all terms, as a number of bytes of JSON that can be
	// decoded in this time.
	letterWork = 64 << 10
)

// vocabulary has the words of a view. It implements meaning.Vocabulary for one search. When its work is done, or after
// an error, it finds no further words.
type vocabulary struct {
	view   *view
	err    error
	left   int64                // work that is left
	work   int64                // what the comparisons cost (search.Result.Work)
	opened map[string][]*reader // the keys are fields; the values have a reader for each segment
}

// spend counts work that is to be done. It reports whether so much was left.
func (v *vocabulary) spend(work int64) bool {
	if v.left >= 0 {
		v.left -= work
	}
	return v.left >= 0
}

// IsSpent implements meaning.Vocabulary.
func (v *vocabulary) IsSpent() bool { return v.left < 0 }

// cost returns the work of matching a plan: the sets of its terms, joined for each word, and for each number of words
// that may be missing.
func (v *view) cost(p *plan) (work int64) {
	sets := int64(0)
	for _, w := range p.words {
		for _, made := range w.phrases {
			for _, c := range made {
				if sets += int64(1 + len(c.terms)); c.begin {
					sets += mostEndings
				}
			}
		}
	}
	if p.reading.Has(search.ByMissing) {
		sets += int64(3 * len(p.words) * (1 + max(1, len(p.words)/mayMiss)))
	}
	return sets * (v.assets/assetsAMove + int64(len(v.parts))*(lookupWork+setWork))
}

// readers returns, for each segment, a reader of a field.
func (v *vocabulary) readers(field string) (all []*reader) {
	if all, ok := v.opened[field]; ok {
		return all
	}
	for i := range v.view.parts {
		r, err := newReader(v.view.parts[i].segment, field)
		if err != nil {
			v.err = cmp.Or(v.err, err)
			return nil
		}
		all = append(all, r)
	}
	if v.opened == nil {
		v.opened = map[string][]*reader{}
	}
	v.opened[field] = all
	return all
}

// The method `has` reports whether a field has at least one of the terms.
func (v *vocabulary) has(field string, terms ...string) bool {
	for _, r := range v.readers(field) {
		for _, term := range terms {
			if !v.spend(lookupWork) {
				return false
			}
			found, err := r.dictionary.Contains([]byte(cut(term, maxTerm)))
			if err != nil {
				v.err = cmp.Or(v.err, err)
				return false
			}
			if found {
				return true
			}
		}
	}
	return false
}

// Has implements meaning.Vocabulary.
func (v *vocabulary) Has(keys []string) bool { return v.spend(wordWork) && v.has(wordField, keys...) }

// IsPlace implements meaning.Vocabulary.
func (v *vocabulary) IsPlace(keys []string) bool { return v.has(placeField, keys...) }

// IsValue implements meaning.Vocabulary.
func (v *vocabulary) IsValue(word string) bool {
	for _, name := range []search.FacetName{search.ByStatus, search.ByType, search.ByOwner} {
		if v.has(search.PropertyOf(name).Field, word) {
			return true
		}
	}
	return false
}

// HasID implements meaning.Vocabulary.
func (v *vocabulary) HasID(beginning string) bool { return len(v.begins(idField, beginning, 1)) > 0 }

// HasCode implements meaning.Vocabulary.
func (v *vocabulary) HasCode(beginning string) bool {
	return v.has(search.PropertyOf(search.ByClassification).Field, beginning)
}

// Begins implements meaning.Vocabulary.
func (v *vocabulary) Begins(beginning string, most int) []string {
	return v.begins(wordField, beginning, most)
}

func (v *vocabulary) begins(field, beginning string, most int) (all []string) {
	for _, r := range v.readers(field) {
		if !v.spend(lookupWork * int64(most)) {
			return nil
		}
		found, err := r.begins(beginning, most)
		v.err = cmp.Or(v.err, err)
		all = append(all, found...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), most)]
}

// Said implements meaning.Vocabulary. It reads the shown texts of a few assets. Assets with the key in their titles
// come first.
func (v *vocabulary) Said(key, like string) (best string) {
	left := mostRead
	for _, field := range []string{titleField, wordField} {
		for i, r := range v.readers(field) {
			if !v.spend(setWork + v.view.assets/assetsAMove) {
				return best
			}
			having, err := r.postings(cut(key, maxTerm))
			v.err = cmp.Or(v.err, err)
			living := roaring.New()
			having.addTo(living)
			if part := &v.view.parts[i]; part.deleted != nil {
				living.AndNot(part.deleted)
			}
			for all := living.Iterator(); all.HasNext() && left > 0 && v.err == nil && v.spend(hitWork); left-- {
				hit, err := place{part: &v.view.parts[i], number: all.Next()}.hit()
				v.err = err
				best = v.nearestForm(best, hit.Asset, key, like)
			}
		}
	}
	return best
}

// nearestForm returns the word with a key in the texts of a JSON object, or the argument `best` if that word is nearer
// to the text `like`. It makes the keys of those words only that begin as the key does.
func (v *vocabulary) nearestForm(best string, object []byte, key, like string) string {
	hasKey := func(keys []string) bool { return slices.Contains(keys, key) }
	texts := jsontext.NewDecoder(bytes.NewReader(object))
	for {
		token, err := texts.ReadToken()
		if err != nil {
			return best
		}
		in, n := texts.StackIndex(texts.StackDepth())
		if isName := in == '{' && n%2 == 1; isName || token.Kind() != '"' {
			continue
		}
		for f := range ukrainian.Written(token.String(), maxShown) {
			if beginsAlike(f.Text, key) && v.spend(wordWork) && slices.ContainsFunc(ukrainian.Words(f.Text), hasKey) &&
				(best == "" || nearest.Distance(f.Text, like) < nearest.Distance(best, like)) {
				best = f.Text
			}
		}
	}
}

// beginsAlike reports whether a word may have a key: both begin with the same letter, or one of them is not Cyrillic.
func beginsAlike(word, key string) bool {
	a, _ := utf8.DecodeRuneInString(word)
	b, _ := utf8.DecodeRuneInString(key)
	return a == b || a < 'а' || b < 'а' || a == 'ґ'
}

// nearTerm is a term that differs from a key in few letters.
type nearTerm struct {
	term     string
	distance int
	count    uint64 // number of assets that have the term
}

// distances returns a builder of automata. An automaton finds the terms that differ from a word by up to two letters.
var distances = sync.OnceValues(func() (*levenshtein.LevenshteinAutomatonBuilder, error) {
	return levenshtein.NewLevenshteinAutomatonBuilder(2, true)
})

// Near implements meaning.Vocabulary. A term that differs by two letters must begin with the same letter as the
// key.
func (v *vocabulary) Near(key string, letters int) []string {
	if utf8.RuneCountInString(key) < leastNear {
		return nil
	}
	builder, err := distances()
	if err != nil {
		v.err = cmp.Or(v.err, err)
		return nil
	}
	var found []nearTerm
	for distance := 1; distance <= letters; distance++ {
		begin := ""
		if distance > 1 {
			begin = string([]rune(key)[:1])
		}
		v.work += int64(utf8.RuneCountInString(key)) * letterWork
		if !v.spend(int64(utf8.RuneCountInString(key)) * automatonWork) {
			return nil
		}
		automaton, err := builder.BuildDfa(key, uint8(distance))
		if err != nil { // the word is too long to be compared
			break
		}
		for _, r := range v.readers(wordField) {
			found = v.compare(found, r, automaton, key, distance, begin)
		}
		if len(found) > 0 {
			break
		}
	}
	slices.SortFunc(found, func(a, b nearTerm) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.count, a.count), cmp.Compare(a.term, b.term))
	})
	var terms []string
	for _, c := range found {
		if !slices.Contains(terms, c.term) && isNear(key, c.term) {
			terms = append(terms, c.term)
		}
	}
	return terms
}

// isNear reports whether a key may be a misspelt form of a term. The term must be neither a verb nor a number. It must
// have at least leastNear letters, and may be at most one letter shorter than the key.
func isNear(key, term string) bool {
	letters := utf8.RuneCountInString(term)
	return !strings.ContainsAny(term, "+0123456789") && letters >= leastNear && letters >= utf8.RuneCountInString(key)-1
}

// compare adds the terms of a segment that differ from a key by at most the given number of letters. It compares them
// again, because the automaton also accepts some terms that differ by one letter more.
func (v *vocabulary) compare(
	found []nearTerm, r *reader, to *levenshtein.DFA, key string, letters int, begin string,
) []nearTerm {
	from, until := beginningOf(begin)
	all := r.dictionary.AutomatonIterator(counted{to, v}, from, until)
	for range mostCompared {
		entry, err := all.Next()
		if err != nil || entry == nil {
			v.err = cmp.Or(v.err, err)
			return found
		}
		if at := slices.IndexFunc(found, func(c nearTerm) bool { return c.term == entry.Term }); at >= 0 {
			found[at].count += entry.Count
		} else if distance := nearest.Distance(key, entry.Term); distance <= letters {
			found = append(found, nearTerm{entry.Term, distance, entry.Count})
		}
	}
	return found
}

// counted is an automaton whose moves are work. When no work is left, it accepts nothing more.
type counted struct {
	*levenshtein.DFA
	v *vocabulary
}

// CanMatch implements segment.Automaton.
func (c counted) CanMatch(state int) bool { return c.v.spend(1) && c.DFA.CanMatch(state) }

// beginningOf returns the range of the terms that begin with a text. "" means all terms.
func beginningOf(text string) (from, until []byte) {
	if text == "" {
		return nil, nil
	}
	until = []byte(text)
	for i := len(until) - 1; i >= 0; i-- {
		if until[i] < 0xff {
			until[i]++
			return []byte(text), until[:i+1]
		}
	}
	return []byte(text), nil
}

// begins returns the first terms that begin with a text.
func (r *reader) begins(beginning string, most int) (terms []string, err error) {
	from, until := beginningOf(beginning)
	all := r.dictionary.AutomatonIterator(anything{}, from, until)
	for len(terms) < most {
		entry, err := all.Next()
		if err != nil || entry == nil {
			return terms, err
		}
		terms = append(terms, entry.Term)
	}
	return terms, nil
}

// anything is an automaton that accepts every term.
type anything struct{}

var _ segment.Automaton = anything{}

func (anything) Start() int               { return 0 }
func (anything) IsMatch(int) bool         { return true }
func (anything) CanMatch(int) bool        { return true }
func (anything) WillAlwaysMatch(int) bool { return true }
func (anything) Accept(int, byte) int     { return 0 }
