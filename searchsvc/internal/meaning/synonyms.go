package meaning

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/ukrainian"
)

// embedded has the synonyms of the project. Each line has words or phrases with the same meaning. In a line with
// the sign >, people say the words before the sign, and records have the words after the sign.
//
//go:embed synonyms.txt
var embedded string

// Synonyms has words and phrases with the same meaning. The zero value is empty.
type Synonyms struct{ entries map[string][]entry } // the keys are the keys of the first words of the phrases

// entry is a phrase, with other phrases that mean the same.
type entry struct {
	words  [][]string // for each word of the phrase, its keys
	others []string
}

// mostSynonyms is the largest number of phrases on each side of a line.
const mostSynonyms = 16

// NewSynonyms returns the synonyms of the project, and further synonyms from a text with lines of the same
// form.
func NewSynonyms(further string) (*Synonyms, error) {
	s := &Synonyms{entries: map[string][]entry{}}
	for i, list := range []string{embedded, further} {
		for n, line := range strings.Split(list, "\n") {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if err := s.add(line); err != nil {
				return nil, fmt.Errorf("line %d of the synonyms (list %d): %w", n+1, i+1, err)
			}
		}
	}
	return s, nil
}

func phrases(list string) (all []string) {
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// add adds the phrases of a line.
func (s *Synonyms) add(line string) error {
	from, to, isOneWay := strings.Cut(line, ">")
	said, meant := phrases(from), phrases(to)
	if !isOneWay {
		meant = said
	}
	if len(said) == 0 || len(meant) == 0 || !isOneWay && len(said) < 2 {
		return fmt.Errorf("%q needs two phrases with a comma or > between them", line)
	}
	if len(said) > mostSynonyms || len(meant) > mostSynonyms {
		return fmt.Errorf("a line may have %d phrases", mostSynonyms)
	}
	for _, phrase := range slices.Concat(said, meant) {
		if utf8.RuneCountInString(phrase) > search.MaxPhrase {
			return fmt.Errorf("%.20q is too long: a phrase may have %d characters", phrase, search.MaxPhrase)
		}
	}
	for _, phrase := range said {
		words := ukrainian.Words(phrase)
		if len(words) == 0 {
			return fmt.Errorf("%q has no words", phrase)
		}
		e := entry{words, slices.DeleteFunc(slices.Clone(meant), func(other string) bool { return other == phrase })}
		for _, key := range nominal(words[0]) {
			s.entries[key] = append(s.entries[key], e)
		}
	}
	return nil
}

// The method `of` finds the longest phrase that equals the first words of a list. It returns the phrases with the same
// meaning, and the number of these words (length).
func (s *Synonyms) of(words []word) (others []string, length int) {
	for _, key := range nominal(words[0].keysNow()) {
		for _, e := range s.entries[key] {
			if len(e.words) < length || !e.begins(words) {
				continue
			}
			if len(e.words) > length {
				others, length = nil, len(e.words)
			}
			for _, other := range e.others {
				if !slices.Contains(others, other) {
					others = append(others, other)
				}
			}
		}
	}
	return others, length
}

// begins reports whether a list of words begins with the phrase.
func (e entry) begins(words []word) bool {
	if len(e.words) > len(words) {
		return false
	}
	for i, keys := range e.words {
		now := nominal(words[i].keysNow())
		if !slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(now, key) }) {
			return false
		}
	}
	return true
}

// nominal returns the keys of a word except the keys of verbs, which say less about the word.
func nominal(keys []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return strings.HasPrefix(key, "+") })
}

// keysNow returns the keys of the replacement, if so far the word is replaced by exactly one word. Otherwise it
// returns the keys of the word as it was asked.
func (w *word) keysNow() []string {
	if len(w.By) == 1 {
		if asked := ukrainian.Ask(w.By[0]); len(asked) == 1 {
			return asked[0].Keys
		}
	}
	return w.keys
}
