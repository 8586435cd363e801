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

// All steps, in the order in which a search takes them.
const (
	ByAlso     Step = "also"     // the words are found as they are; assets with words of the same meaning come after them
	BySmall    Step = "small"    // words that hardly matter, such as prepositions, are left out
	ByLayout   Step = "layout"   // words are read as if typed in the other layout of the keyboard
	ByCode     Step = "code"     // numbers are read as beginnings of ids and codes; models are split into parts
	BySpelling Step = "spelling" // words are read in another spelling or script
	BySynonym  Step = "synonym"  // other words of the same meaning are enough
	ByPrefix   Step = "prefix"   // words are read as beginnings of other words
	ByNearest  Step = "nearest"  // words are replaced by the most similar ones
	ByKnown    Step = "known"    // words that no asset has are left out
	ByMissing  Step = "missing"  // one word may be missing
	Stopped    Step = "stopped"  // the tries cost too much, so the search ended without a try that finds something
)

// Steps lists all steps in their order.
var Steps = []Step{
	ByAlso, BySmall, ByLayout, ByCode, BySpelling, BySynonym, ByPrefix, ByNearest, ByKnown, ByMissing, Stopped,
}

// Reading says how the search read the words of a question. The zero value has no words; it means that the search
// used the question as it is written.
type Reading struct {
	Steps   []Step `json:"s,omitempty"` // steps that changed something; none: the question is as it was asked
	Words   []Word `json:"w,omitempty"`
	Unknown bool   `json:"-"` // there is a word that no asset has
}

// Word is a word of a question.
type Word struct {
	Text string   `json:"t"`           // as it was asked
	Out  bool     `json:"o,omitempty"` // the word is left out
	By   []string `json:"b,omitempty"` // phrases that replace the word; an asset needs one of them; none: the word itself
	Said string   `json:"d,omitempty"` // the first phrase in the form that people write
	// Fixed is true for a word that must not be missing.
	Fixed bool `json:"f,omitempty"`
}

// The signs that may stand before a phrase of Word.By. They say that the phrase is not a text, but one of these:
const (
	Key       = "=" // a key of the index
	Beginning = "^" // the beginning of keys
	Code      = "#" // the beginning of codes of property
	ID        = "@" // the beginning of ids
)

// signs has all signs that may stand before a phrase. If a word has several phrases, none of them begins with a
// sign.
const signs = Key + Beginning + Code + ID

// Limits of a reading.
const (
	maxBy      = 24    // maximum number of phrases that replace a word
	MaxPhrase  = 100   // characters of a phrase, and of a word
	MaxOthers  = 128   // synonyms of all words together
	MaxLetters = 2_000 // characters of all synonyms together
	maxReading = 16 << 10
)

// IsAnother reports whether the reading differs from the question as it was asked.
func (r Reading) IsAnother() bool { return len(r.Steps) > 0 }

// Has reports whether a step changed the question.
func (r Reading) Has(s Step) bool { return slices.Contains(r.Steps, s) }

// Used returns the words that the search used, in the form that people write.
func (r Reading) Used() (all []string) {
	for _, w := range r.Words {
		if r.Has(ByAlso) {
			all = append(all, w.Text)
		} else if !w.Out {
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

// Replaced returns the words that were replaced by different words.
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
	if err != nil { // cannot happen: a Reading has only texts and flags
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
	// A reading without words would find all assets.
	if len(r.Used()) == 0 || len(r.Words) > MaxWords || len(r.Steps) == 0 || len(r.Steps) > len(Steps) {
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
