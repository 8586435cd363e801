package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// badStart finds a sentence that starts as docs/style.md, "Prose", forbids. A
// sentence starts after a comment sign, a heading, a quote, or another sentence.
var badStart = regexp.MustCompile("(?m)(?:^\\s*(?://|#+|--|\\*|- )\\s*|[.:!?] +|[\"`])((?:What|Who|Whose|That) [a-z]+)")

// badStarts returns the line and the beginning of each sentence that the style forbids.
func badStarts(text string) (found []string) {
	for _, at := range badStart.FindAllStringSubmatchIndex(text, -1) {
		found = append(found, fmt.Sprintf("%d: %s", strings.Count(text[:at[2]], "\n")+1, text[at[2]:at[3]]))
	}
	return found
}

// ambiguous returns each "may not" with the words before it. Such a text may be a prohibition or a doubt. "May or
// may not" is clear.
func ambiguous(text string) []string {
	return mayNot.FindAllString(strings.ReplaceAll(text, "may or may not", ""), -1)
}

var mayNot = regexp.MustCompile(`.{0,30}\bmay not\b`)

// comments finds the comments of a source.
var comments = regexp.MustCompile(`//.*`)

// TestNoSentenceStartsAsTheStyleForbids checks every comment, text and document.
func TestNoSentenceStartsAsTheStyleForbids(t *testing.T) {
	files := 0
	clear := func(path, text string) {
		for _, found := range ambiguous(text) {
			t.Errorf("%s: got %q, want \"must not\" or \"perhaps\"", path, found)
		}
	}
	read := func(path, text string) {
		if path == "docs/style.md" || strings.HasPrefix(path, "deploy/test/docs/") {
			return // these files name the forbidden words
		}
		files++
		for _, found := range badStarts(text) {
			t.Errorf("%s:%s: got a sentence that starts so, want subject, verb, object", path, found)
		}
	}
	sources(t, func(path, text string) {
		read(path, text)
		if !strings.HasSuffix(path, "prose_test.go") {
			clear(path, strings.Join(comments.FindAllString(text, -1), "\n"))
		}
	})
	for _, d := range documents(t) {
		read(d.path, d.text)
		if d.path != "docs/style.md" {
			clear(d.path, d.text)
		}
	}
	if files < 500 {
		t.Errorf("got %d files, want at least 500", files)
	}
}

// TestBadStartsAreFound checks a text with forbidden sentences at each kind of place and with each word.
func TestBadStartsAreFound(t *testing.T) {
	text := "// What comes first\n\n\t# Who asks is told.\n-- Whose key this is\n * That one is gone\n- What a list says\n" +
		"Fine. That one is not.\nx := \"Who are you\"\n## What is new\nWell: What now\n`What else`\n" +
		"// That's fine, and What is here, too\nThat which begins a line of a document\n"
	want := []string{"1: What comes", "3: Who asks", "4: Whose key", "5: That one", "6: What a", "7: That one",
		"8: Who are", "9: What is", "10: What now", "11: What else"}
	expect.NoDiff(t, cmp.Diff(want, badStarts(text)), "")
	if got := ambiguous("A caller may not see it, which may or may not be so."); len(got) != 1 {
		t.Errorf(`got %q, want the first "may not" only`, got)
	}
}
