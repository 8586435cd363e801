package ukrainian

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A text is processed in pieces. So the part of a text after the words that count takes no time.
const (
	pieceSize = 256     // characters after which a piece ends at the next blank
	pieceMost = 1024    // a piece with so many characters ends at the next character that no word can have
	maxRun    = maxWord // maximum number of letters, digits and apostrophes in a row that are kept
	maxMarks  = maxWord // maximum number of marks that are kept in a row of letters
)

// pieces returns the pieces of a text. If a row of letters and digits is longer than a word may be, pieces drops the
// rest of the row. The characters are not in their normal form yet.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			var piece string
			if piece, text = nextPiece(text); !yield(piece) {
				return
			}
		}
	}
}

// nextPiece returns the first piece of a text, and the rest.
func nextPiece(text string) (piece, rest string) {
	var (
		kept           strings.Builder
		letters, marks int // in the current row of letters
		size           int // characters of the piece so far
		from           int // index of the first byte that was not yet written to the builder (the variable `kept`)
		isCut          bool
	)
	for i, r := range text {
		switch {
		case isLetter(r): // most runes are letters
			letters++
		case unicode.IsMark(r):
			marks++
		case isRow(r):
			letters++
		default:
			if isCut {
				from, isCut = i, false
			}
			if size >= pieceMost || size >= pieceSize && unicode.IsSpace(r) && !isByDigit(text, i) {
				kept.WriteString(text[from:i])
				return kept.String(), text[i:]
			}
			letters, marks = 0, 0
		}
		switch isOver := letters > maxRun || marks > maxMarks; {
		case isCut:
		case isOver:
			kept.WriteString(text[from:i])
			isCut = true
		default:
			size++
		}
	}
	if from == 0 && !isCut {
		return text, ""
	}
	if !isCut {
		kept.WriteString(text[from:])
	}
	return kept.String(), ""
}

// isByDigit reports whether a digit stands before or after the blank at an index: blanks may stand within numbers.
func isByDigit(text string, blank int) bool {
	after := strings.TrimLeftFunc(text[blank:min(len(text), blank+utf8.UTFMax+1)], unicode.IsSpace)
	return blank > 0 && isASCIIDigit(text[blank-1]) || after != "" && isASCIIDigit(after[0])
}

// isRow reports whether a rune may be a part of a word, perhaps in its normal form: ① is 1.
func isRow(r rune) bool {
	return isPart(r) || strings.ContainsRune("'`’‘‛′", r) ||
		r > unicode.MaxASCII && !unicode.IsSpace(r) && !unicode.IsPunct(r)
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
