package site

import (
	"html/template"
	"regexp"
	"strings"
)

// The bounds of links in one text. Further addresses and longer ones stay text.
const (
	mostAddresses = 20
	mostAddress   = 500 // bytes
)

// span is a part of a text. One with an address is a link.
type span struct {
	Text string
	Href template.URL
}

// written matches an address within a text.
var written = regexp.MustCompile("https?://[^\\s\\x{200e}\\x{200f}" +
	"\\x{202a}-\\x{202e}\\x{2066}-\\x{2069}<>\"'`«»“”„()\\[\\]{}|\\\\^]+")

// addresses returns a text in spans, of which its addresses are links. It is nil for a text without
// addresses. The spans together are the text.
func addresses(text string) (spans []span) {
	plain := 0 // where the text before the next link begins
	for _, at := range written.FindAllStringIndex(text, mostAddresses) {
		address := strings.TrimRight(text[at[0]:at[1]], ".,;:!?…")
		link := safeLink(address)
		if link == "" || len(address) > mostAddress {
			continue
		}
		if plain < at[0] {
			spans = append(spans, span{Text: text[plain:at[0]]})
		}
		spans, plain = append(spans, span{address, link}), at[0]+len(address)
	}
	if plain > 0 && plain < len(text) {
		spans = append(spans, span{Text: text[plain:]})
	}
	return spans
}
