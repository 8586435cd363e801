package search

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// Cursor is the place of a hit in an order. The page after it begins with the next hit.
type Cursor struct {
	Sort Sort
	Key  int64 // the score of ByRelevance, or the publication in microseconds since the epoch; else 0
	At   int64 // dateModified in microseconds since the epoch; no two assets share it
	// Reading is that of the first page, so that all pages are of one. Zero: the question itself.
	Reading Reading
}

// String returns the cursor as a client sends it. The text is short and safe in a URL.
func (c Cursor) String() string {
	text := string(c.Sort) + "," + strconv.FormatInt(c.Key, 36) + "," + strconv.FormatInt(c.At, 36)
	text = base64.RawURLEncoding.EncodeToString([]byte(text))
	if c.Reading.IsAnother() {
		text += "." + c.Reading.text()
	}
	return text
}

var errCursor = errors.New("the cursor is none that the registry has written")

// maxCursor is the length of a cursor that the registry may write, without a reading.
const maxCursor = 64

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
	parts := strings.Split(string(plain), ",")
	if len(parts) != 3 {
		return Cursor{}, errCursor
	}
	key, err1 := strconv.ParseInt(parts[1], 36, 64)
	at, err2 := strconv.ParseInt(parts[2], 36, 64)
	c = Cursor{Sort: Sort(parts[0]), Key: key, At: at}
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
