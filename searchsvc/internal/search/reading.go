package search

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// Step names a second try (docs/search.md, "Second tries").
type Step string

// The steps, in their order.
const (
	BySmall    Step = "small"    // words that never decide are left out
	ByLayout   Step = "layout"   // words are read in the other layout of the keyboard
	ByCode     Step = "code"     // numbers are beginnings of ids and codes, and models are read apart
	BySpelling Step = "spelling" // words are read in another spelling or script
	BySynonym  Step = "synonym"  // other words of the same meaning will do
	ByPrefix   Step = "prefix"   // words are beginnings of others
	ByNearest  Step = "nearest"  // words are replaced by the nearest ones
	ByKnown    Step = "known"    // words that no asset has are left out
	ByMissing  Step = "missing"  // one word may be missing
)

// Steps are all steps.
var Steps = []Step{
	BySmall, ByLayout, ByCode, BySpelling, BySynonym, ByPrefix, ByNearest, ByKnown, ByMissing,
}

// Reading is a question as it was asked of the index. The zero value reads no words.
type Reading struct {
	Steps   []Step `json:"s,omitempty"` // that were made; none: the question is as it was asked
	Words   []Word `json:"w,omitempty"`
	Unknown bool   `json:"-"` // a word is one that no asset has
}

// Word is a word of a question.
type Word struct {
	Text string   `json:"t"`           // as it was asked
	Out  bool     `json:"o,omitempty"` // it is left out
	By   []string `json:"b,omitempty"` // phrases that stand for it, one of which will do; none: itself
	Said string   `json:"d,omitempty"` // the first of them, for people
	// Fixed is true for a word that may not be missing.
	Fixed bool `json:"f,omitempty"`
}

// The signs before a phrase of Word.By that is no text.
const (
	Key       = "=" // a key of the index
	Beginning = "^" // the beginning of keys
	Code      = "#" // the beginning of codes of property
	ID        = "@" // the beginning of ids
)

// signs are all of these. A word that stands for several has none of them.
const signs = Key + Beginning + Code + ID

// The bounds of a reading.
const (
	maxBy      = 24    // phrases that stand for a word
	MaxPhrase  = 100   // characters of one, and of a word
	MaxOthers  = 128   // synonyms of all words
	MaxLetters = 2_000 // characters of these
	maxReading = 16 << 10
)

// IsAnother tells whether the reading differs from the question.
func (r Reading) IsAnother() bool { return len(r.Steps) > 0 }

// Has tells whether a step was made.
func (r Reading) Has(s Step) bool { return slices.Contains(r.Steps, s) }

// Used returns the words that an asset was looked for by, as people write them.
func (r Reading) Used() (all []string) {
	for _, w := range r.Words {
		if !w.Out {
			all = append(all, w.said())
		}
	}
	return all
}

// LeftOut returns the words that were left out.
func (r Reading) LeftOut() (all []string) {
	for _, w := range r.Words {
		if w.Out {
			all = append(all, w.Text)
		}
	}
	return all
}

// Replaced returns the words that others stood for.
func (r Reading) Replaced() (all []Word) {
	for _, w := range r.Words {
		if !w.Out && len(w.By) > 0 && w.Said != w.Text {
			all = append(all, w)
		}
	}
	return all
}

func (w Word) said() string {
	if len(w.By) > 0 {
		return w.Said
	}
	return w.Text
}

var errReading = errors.New("the words are none that the registry has written")

// text returns the reading as a part of a cursor.
func (r Reading) text() string {
	text, err := json.Marshal(r)
	if err != nil { // it has texts only
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseReading(text string) (r Reading, err error) {
	if len(text) > maxReading {
		return Reading{}, errReading
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(plain, &r) != nil || !r.isBounded() || r.text() != text {
		return Reading{}, errReading
	}
	return r, nil
}

func (r Reading) isBounded() bool {
	if len(r.Words) > MaxWords || len(r.Steps) == 0 || len(r.Steps) > len(Steps) {
		return false
	}
	for _, s := range r.Steps {
		if !slices.Contains(Steps, s) {
			return false
		}
	}
	phrases, letters := 0, 0
	for _, w := range r.Words {
		if len(w.By) > 1 {
			phrases += len(w.By)
			letters += utf8.RuneCountInString(strings.Join(w.By, ""))
			if slices.ContainsFunc(w.By, func(one string) bool { return strings.IndexAny(one, signs) == 0 }) {
				return false
			}
		}
		for _, one := range append([]string{w.Text, w.Said}, w.By...) {
			if utf8.RuneCountInString(one) > MaxPhrase || strings.ContainsRune(one, 0) {
				return false
			}
		}
		if len(w.By) > maxBy {
			return false
		}
	}
	return phrases <= MaxOthers && letters <= MaxLetters
}
