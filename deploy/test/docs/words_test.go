package docs

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// Bounds of words. They only fall: a document that grows makes room elsewhere.
const (
	mostContract  = 9_200  // words of docs/contract.md, without rows of tables
	mostDocuments = 62_000 // words of all documents in docs
)

// words counts the words of a text. A word has a letter or a digit. Code blocks and old anchors do not count, and rows
// of tables only if the parameter `rows` is true.
func words(text string, rows bool) (n int) {
	text = oldAnchor.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), "")
	for line := range strings.Lines(text) {
		if !rows && strings.HasPrefix(line, "|") {
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				n++
			}
		}
	}
	return n
}

// TestDocumentsHaveFewWords counts the words of the contract, and of all documents in the folder docs, also of those
// that are generated.
func TestDocumentsHaveFewWords(t *testing.T) {
	const text = "One, two.\n\n| three | 4 |\n|---|---|\n<a id=\"5\"></a>\n```\nsix\n```\n"
	if got, all := words(text, false), words(text, true); got != 2 || all != 4 {
		t.Fatalf("got %d words, and %d with rows, want 2 and 4", got, all)
	}
	all := 0
	for _, d := range documents(t) {
		if got := words(d.text, false); d.path == "docs/contract.md" && got > mostContract {
			t.Errorf("%s: got %d words outside of tables, want at most %d", d.path, got, mostContract)
		}
		if filepath.Dir(d.path) == "docs" {
			all += words(d.text, true)
		}
	}
	if all > mostDocuments {
		t.Errorf("got %d words in docs, want at most %d", all, mostDocuments)
	}
}
