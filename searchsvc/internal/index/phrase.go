package index

import (
	"strings"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/ukrainian"
)

// phrase is met by an asset if the asset meets all conditions of the phrase.
type phrase []condition

// newPhrases returns the phrases for an element of search.Word.By.
func newPhrases(text string) []phrase {
	for sign, c := range map[string]condition{
		search.Key:       {field: wordField},
		search.Beginning: {field: wordField, begin: true},
		search.ID:        {field: idField, begin: true},
		search.Code:      {field: search.PropertyOf(search.ByClassification).Field},
	} {
		if term, ok := strings.CutPrefix(text, sign); ok {
			c.terms = []string{cut(term, maxTerm)}
			return []phrase{{c}}
		}
	}
	return phrasesOf(ukrainian.Ask(text)...)
}

func word(keys []string) condition {
	terms := make([]string, len(keys))
	for i, key := range keys {
		terms[i] = cut(key, maxTerm)
	}
	return condition{field: wordField, terms: terms}
}

// phrasesOf returns the phrases for words of a question. A run of numbers may also stand apart.
func phrasesOf(words ...ukrainian.Asked) (all []phrase) {
	var joined, apart phrase
	for _, a := range words {
		joined = append(joined, word(a.Keys))
		for _, keys := range a.Apart {
			apart = append(apart, word(keys))
		}
		if a.Apart == nil {
			apart = append(apart, word(a.Keys))
		}
	}
	if len(joined) > 0 {
		all = append(all, joined)
	}
	if len(apart) > len(joined) {
		all = append(all, apart)
	}
	return all
}
