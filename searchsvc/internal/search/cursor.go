package search

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// Cursor is the place of a hit in an order of hits. The page that it leads to begins with the hit after this place,
// or, if Back is true, ends with the hit before this place.
type Cursor struct {
	Sort Sort
	Back bool  // if too few hits come before the place to fill a page, the cursor leads to the first page
	Key  int64 // the score for ByRelevance, the publication in microseconds since the epoch, or the area; 0: no key
	At   int64 // dateModified in microseconds since the epoch; no two assets share it
	// Weights are the weights of the words on the first page, for ByRelevance. All pages use them for their
	// scores, so no asset moves to another page when the number of assets changes.
	Weights []int64
	// Reading is how the first page read the question. All pages use it. The zero value means: as the question
	// is written.
	Reading Reading
}

// String returns the cursor as a client sends it. The text is short and safe in a URL.
func (c Cursor) String() string {
	text := string(c.Sort) + "," + strconv.FormatInt(c.Key, 36) + "," + strconv.FormatInt(c.At, 36)
	if c.Back {
		text = backMark + text
	}
	if len(c.Weights) > 0 {
		text += ","
		for _, w := range c.Weights {
			text += strconv.FormatInt(w, 36) + "."
		}
	}
	text = base64.RawURLEncoding.EncodeToString([]byte(text))
	if c.Reading.IsAnother() {
		text += "." + c.Reading.text()
	}
	return text
}

const backMark = "<" // begins a cursor that leads to the previous page

var errCursor = errors.New("the cursor is none that the registry has written")

// maxCursor is the largest length of a cursor that the registry writes, without the text of the field Reading.
const maxCursor = 64 + (MaxWeights*3+1)*4/3

// MaxWeights is the largest number of weights: those of the words, and those of the words as they were asked, if other
// words are found, too.
const MaxWeights = 2 * MaxWords

// maxWeight is the largest weight of a word. A count of assets has at most 64 bits, and a weight is one more than the
// number of bits of such a count.
const maxWeight = 65

// parseWeights reads weights. A full stop follows each weight.
func parseWeights(text string) (weights []int64, ok bool) {
	for one := range strings.SplitSeq(strings.TrimSuffix(text, "."), ".") {
		w, err := strconv.ParseInt(one, 36, 64)
		if err != nil || w < 1 || w > maxWeight || len(weights) == MaxWeights {
			return nil, false
		}
		weights = append(weights, w)
	}
	return weights, true
}

// ParseCursor reads a cursor.
func ParseCursor(text string) (c Cursor, err error) {
	place, words, hasWords := strings.Cut(text, ".")
	if len(place) > maxCursor {
		return Cursor{}, errCursor
	}
	plain, err := base64.RawURLEncoding.DecodeString(place)
	if err != nil {
		return Cursor{}, errCursor
	}
	forward, back := strings.CutPrefix(string(plain), backMark)
	parts := strings.Split(forward, ",")
	var weights []int64
	if len(parts) == 4 {
		var ok bool
		if weights, ok = parseWeights(parts[3]); !ok {
			return Cursor{}, errCursor
		}
	} else if len(parts) != 3 {
		return Cursor{}, errCursor
	}
	key, err1 := strconv.ParseInt(parts[1], 36, 64)
	at, err2 := strconv.ParseInt(parts[2], 36, 64)
	c = Cursor{Sort: Sort(parts[0]), Back: back, Key: key, At: at, Weights: weights}
	if hasWords {
		if c.Reading, err = parseReading(words); err != nil {
			return Cursor{}, errCursor
		}
	}
	if err1 != nil || err2 != nil || c.String() != text {
		return Cursor{}, errCursor
	}
	return c, nil
}
