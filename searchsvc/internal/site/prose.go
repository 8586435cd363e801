package site

import (
	"html/template"
	"regexp"
	"strings"
)

// Limits of links in one text. Longer addresses, and addresses after the first ones, are not links.
const (
	mostAddresses = 20
	mostAddress   = 500 // bytes of an address
)

// span is a part of a text. It is a link if it has an address.
type span struct {
	Text    string
	Href    template.URL
	Foreign bool // the link leads out of the registry
}

// written matches an address within a text.
var written = regexp.MustCompile("https?://[^\\s\\x{200e}\\x{200f}" +
	"\\x{202a}-\\x{202e}\\x{2066}-\\x{2069}<>\"'`«»“”„()\\[\\]{}|\\\\^]+")

// addresses splits a text into spans, in which each address is a link. It returns nil for a text without
// addresses. The texts of the spans, joined, are the text.
func addresses(text string) []span {
	return spansOf(text, written, func(found string) span {
		address := strings.TrimRight(found, ".,;:!?…")
		return span{address, safeLink(address), true}
	})
}

// dialled matches a text that may be a telephone number.
var dialled = regexp.MustCompile(`\+?\(?[0-9][0-9 .()\x{a0}\x{2010}\x{2011}\x{2013}-]*[0-9]`)

// telephones splits a text as the function `addresses` does, but its links are the telephone numbers in the text.
func telephones(text string) []span {
	return spansOf(text, dialled, func(found string) span { return span{found, phoneLink(found), false} })
}

// spansOf splits a text into spans. It calls the function `link` with each match of the expression. The span that
// link returns is the beginning of the match, such as an address without the full stop after it.
func spansOf(text string, parts *regexp.Regexp, link func(found string) span) (spans []span) {
	plain := 0 // start of the text before the next link
	for _, at := range parts.FindAllStringIndex(text, mostAddresses) {
		to := link(text[at[0]:at[1]])
		if to.Href == "" || len(to.Text) > mostAddress {
			continue
		}
		if plain < at[0] {
			spans = append(spans, span{Text: text[plain:at[0]]})
		}
		spans, plain = append(spans, to), at[0]+len(to.Text)
	}
	if plain > 0 && plain < len(text) {
		spans = append(spans, span{Text: text[plain:]})
	}
	return spans
}
