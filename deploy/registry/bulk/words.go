package bulk

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// messages are the lines of reports: English, then Ukrainian. {} stands for a value.
//
//go:embed words.txt
var messages string

// phrase is a form of English messages, and its Ukrainian text.
type phrase struct {
	form *regexp.Regexp
	text string
}

var phrases = sync.OnceValue(func() (found []phrase) {
	for line := range strings.Lines(messages) {
		english, ukrainian, ok := strings.Cut(strings.TrimSpace(line), " | ")
		if ok && !strings.HasPrefix(line, "#") {
			form := strings.ReplaceAll(regexp.QuoteMeta(english), `\{\}`, "(.*?)")
			found = append(found, phrase{regexp.MustCompile("^(?s:" + form + ")$"), ukrainian})
		}
	}
	return found
})

// In returns a message in a language, uk or en. Messages that are not known stay English.
func In(language, text string) string {
	if _, err := strconv.Unquote(text); language != "uk" || err == nil { // a value stays as it is
		return text
	}
	for _, p := range phrases() {
		if values := p.form.FindStringSubmatch(text); values != nil {
			parts := strings.Split(p.text, "{}")
			for i := range len(parts) - 1 {
				parts[i] += In(language, values[i+1])
			}
			return strings.Join(parts, "")
		}
	}
	return text
}

// In returns the finding in one line, in a language.
func (f Finding) In(language string) string {
	text := In(language, f.Text)
	if f.Column != "" {
		text = In(language, f.Column) + ": " + text
	}
	if f.Row > 0 {
		text = In(language, fmt.Sprint("row ", f.Row)) + ", " + text
	}
	if f.Level != Refusal {
		text = In(language, string(f.Level)) + ": " + text
	}
	return text
}
