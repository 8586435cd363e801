package docspage

import (
	"html/template"
	"regexp"
	"strings"
)

// inline matches the parts of Markdown that descriptions use within a paragraph:
// code, strong text and links.
var inline = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*|\\[([^]]+)\\]\\(([^)\\s]+)\\)")

// safeLink matches the address of a link that the page may have. For a link to any other address, the page shows
// only the text.
var safeLink = regexp.MustCompile(`^(?:https?://|#|/[^/])`)

// prose returns a description in Markdown as HTML: paragraphs, lists with "- ", code, strong text and links. Any
// other Markdown stays unchanged.
func prose(text string) template.HTML {
	var b strings.Builder
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if paragraph = strings.TrimSpace(paragraph); paragraph == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(paragraph, "- "); ok {
			b.WriteString("<ul>")
			for _, item := range strings.Split(rest, "\n- ") {
				b.WriteString("<li>" + spans(item) + "</li>")
			}
			b.WriteString("</ul>\n")
			continue
		}
		b.WriteString("<p>" + spans(paragraph) + "</p>\n")
	}
	return template.HTML(b.String())
}

// spans returns the text of a paragraph as HTML.
func spans(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range inline.FindAllStringSubmatchIndex(text, -1) {
		part := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return template.HTMLEscapeString(text[m[2*n]:m[2*n+1]])
		}
		b.WriteString(template.HTMLEscapeString(text[at:m[0]]))
		switch {
		case m[2] >= 0:
			b.WriteString("<code>" + part(1) + "</code>")
		case m[4] >= 0:
			b.WriteString("<strong>" + part(2) + "</strong>")
		case safeLink.MatchString(text[m[8]:m[9]]):
			b.WriteString(`<a href="` + part(4) + `">` + part(3) + "</a>")
		default:
			b.WriteString(part(3))
		}
		at = m[1]
	}
	b.WriteString(template.HTMLEscapeString(text[at:]))
	return b.String()
}
