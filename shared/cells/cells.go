// Package cells keeps the texts of tables from being read as formulas (docs/contract.md, "Exports"). Every table that
// people open has its texts from Harmless.
package cells

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	mark = "'" // a spreadsheet calculates no cell that begins with it

	// ends are the characters behind which a program may begin a cell: separators and line breaks.
	ends = ";\t\n\v\f\r\u0085\u2028\u2029"
)

// Harmless returns a text with a ' in front of each character with which a spreadsheet could begin a formula.
// No program calculates it, whichever separator it is told.
func Harmless(text string) string {
	return edit(text, func(rest string) string {
		if isFormula(rest) {
			return mark + rest
		}
		return rest
	})
}

// Plain takes away each ' that Harmless puts into a text. It changes a text that had such a ' before, too.
func Plain(text string) string {
	return edit(text, func(rest string) string {
		if after, isMarked := strings.CutPrefix(rest, mark); isMarked && isFormula(after) {
			return after
		}
		return rest
	})
}

// edit calls the function `change` with the rest of a text from each place where a program could begin a cell. The
// function may change what the rest begins with.
func edit(text string, change func(rest string) string) string {
	var edited strings.Builder
	isBegin := true
	for at, size := 0, 0; at < len(text); at += size {
		r, n := utf8.DecodeRuneInString(text[at:])
		size = n
		rest := text[at:]
		if isBegin {
			rest = change(rest)
		}
		// The edited text gets all that stands before the next character: nothing if `change` took a ' away.
		edited.WriteString(rest[:len(rest)-len(text[at+size:])])
		// A table doubles quotes, and a program may take the two for an empty text before the cell's own.
		isBegin = strings.ContainsRune(ends, r) || isBegin && at > 0 && r == '"'
	}
	return edited.String()
}

// call matches what a formula needs to call a function or a program, or to read another sheet or file.
var call = regexp.MustCompile(`[A-Za-z]\(|\p{Lu}{2}\(|!\$?[A-Za-z]`)

// isFormula reports whether a spreadsheet could calculate a cell that this text begins with. A sign before a digit or a
// blank begins a number or a line of a list, if the cell calls nothing. A sign alone is no formula.
func isFormula(text string) bool {
	first, size := utf8.DecodeRuneInString(text)
	switch first {
	case '=', '@', '＝', '＠':
		return true
	case '+', '-', '＋', '－':
		next, _ := utf8.DecodeRuneInString(text[size:])
		if !unicode.IsDigit(next) && !unicode.IsSpace(next) {
			return len(text) > size
		}
		cell := text
		if end := strings.IndexAny(text, ends); end >= 0 {
			cell = text[:end]
		}
		return call.MatchString(cell)
	}
	return false
}

// Letters returns the name of a column of a spreadsheet, such as AB, from its number.
func Letters(column int) (name string) {
	for ; column > 0; column = (column - 1) / 26 {
		name = string(rune('A'+(column-1)%26)) + name
	}
	return name
}
