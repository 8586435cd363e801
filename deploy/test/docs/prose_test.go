package docs

import (
	"regexp"
	"strings"
	"testing"
)

// badStart finds a sentence that starts as docs/style.md, "Prose", forbids. A
// sentence starts after a comment sign, a heading, a quote, or another sentence.
var badStart = regexp.MustCompile("(?m)(?:^\\s*(?://|#+|--|\\*|- )\\s*|[.:!?] +|[\"`])((?:What|Who|Whose|That) [a-z]+)")

// TestNoSentenceStartsAsTheStyleForbids reads every comment, text and document.
func TestNoSentenceStartsAsTheStyleForbids(t *testing.T) {
	sources(t, func(path, text string) {
		if path == "docs/style.md" || strings.HasPrefix(path, "deploy/test/docs/") {
			return // they name the words
		}
		for _, at := range badStart.FindAllStringSubmatchIndex(text, -1) {
			line := strings.Count(text[:at[2]], "\n") + 1
			t.Errorf("%s:%d: got a sentence that starts with %q, want subject, verb, object", path, line, text[at[2]:at[3]])
		}
	})
}
