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
	Text    string
	Href    template.URL
	Foreign bool // the link leads out of the registry
}

// written matches an address within a text.
var written = regexp.MustCompile("https?://[^\\s\\x{200e}\\x{200f}" +
	"\\x{202a}-\\x{202e}\\x{2066}-\\x{2069}<>\"'`«»“”„()\\[\\]{}|\\\\^]+")

// addresses returns a text in spans, of which its addresses are links. It is nil for a text without
// addresses. The spans together are the text.
func addresses(text string) []span {
	return spansOf(text, written, func(found string) span {
		address := strings.TrimRight(found, ".,;:!?…")
		return span{address, safeLink(address), true}
	})
}

// dialled matches what may be a telephone number within a text.
var dialled = regexp.MustCompile(`\+?\(?[0-9][0-9 .()\x{a0}\x{2010}\x{2011}\x{2013}-]*[0-9]`)

// telephones is addresses for telephone numbers, such as two numbers or one with an extension.
func telephones(text string) []span {
	return spansOf(text, dialled, func(found string) span { return span{found, phoneLink(found), false} })
}

// spansOf returns a text in spans. link returns the link that a found part begins with.
func spansOf(text string, parts *regexp.Regexp, link func(found string) span) (spans []span) {
	plain := 0 // where the text before the next link begins
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
