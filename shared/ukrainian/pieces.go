package ukrainian

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A text is processed in pieces. So the part of a text after the words that count takes no time.
const (
	pieceSize = 256  // characters after which a piece ends at the next blank
	pieceMost = 1024 // the most characters of a piece
)

// pieces returns the pieces of a text. The characters are not in their normal form yet.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			end := endOfPiece(text)
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

// endOfPiece returns the number of bytes of the first piece of a text.
func endOfPiece(text string) int {
	size := 0
	for i, r := range text {
		if size == pieceMost || size >= pieceSize && unicode.IsSpace(r) && !isByDigit(text, i) {
			return i
		}
		size++
	}
	return len(text)
}

// isByDigit reports whether a digit stands before or after the blank at an index: blanks may stand within numbers.
func isByDigit(text string, blank int) bool {
	after := strings.TrimLeftFunc(text[blank:min(len(text), blank+utf8.UTFMax+1)], unicode.IsSpace)
	return blank > 0 && isASCIIDigit(text[blank-1]) || after != "" && isASCIIDigit(after[0])
}

// Cut returns at most the given number of characters from the beginning of a text.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i]
		}
		n++
	}
	return text
}
