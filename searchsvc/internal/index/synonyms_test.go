package index

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/ukrainian"
)

// synonymLine is a line of the project's synonyms: what people say, and the phrases of texts.
type synonymLine struct {
	text        string
	said, meant []string
}

// synonymLines returns the lines that have more than words of addresses.
func synonymLines(t *testing.T) (all []synonymLine) {
	t.Helper()
	_, list, _ := strings.Cut(string(expect.Get(os.ReadFile("../meaning/synonyms.txt"))(t)), "# Legal forms")
	for line := range strings.Lines(list) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "and bodies") {
			continue
		}
		said, meant, isOneWay := strings.Cut(line, " > ")
		l := synonymLine{line, strings.Split(said, ", "), strings.Split(meant, ", ")}
		if !isOneWay {
			l.meant = l.said
		}
		all = append(all, l)
	}
	return all
}

func sameWords(text string) string {
	var keys []string
	for _, a := range ukrainian.Ask(text) {
		keys = append(keys, a.Keys[0])
	}
	return strings.Join(keys, " ")
}

// TestEachSynonymIsSaidOnce fails for a line that says only what other lines say.
func TestEachSynonymIsSaidOnce(t *testing.T) {
	known := map[string]bool{}
	lines := synonymLines(t)
	expect.ErrorIf(t, len(lines) < 371+400, "got %d lines, want 400 besides the first 371", len(lines))
	for _, l := range lines {
		isNew := false
		for _, said := range l.said {
			for _, meant := range l.meant {
				pair := sameWords(said) + " > " + sameWords(meant)
				isNew = isNew || !known[pair] && sameWords(said) != sameWords(meant)
				known[pair] = true
			}
		}
		if !isNew {
			t.Errorf("%q: got only words that other lines have, want something new", l.text)
		}
	}
}

// TestEachSynonymFindsAnAsset asks for each phrase that people say. One of the assets that are called otherwise must be
// found, although other assets have the words of the phrase.
func TestEachSynonymFindsAnAsset(t *testing.T) {
	x := openIndex(t, t.TempDir())
	t.Cleanup(func() { expect.Try(t, x.Close()) })
	change := replica.Change{State: stateAt(1765000000000000)}
	titles := map[string]bool{}
	for _, l := range synonymLines(t) {
		for _, title := range l.meant {
			if titles[title] {
				continue
			}
			titles[title] = true
			position := int64(1764000000000000) + int64(len(titles))
			text := expect.Get(json.Marshal(map[string]any{
				"id": madeID("synonym", title), "dateModified": stamp(position), "status": "active", "title": title,
			}))(t)
			change.Entries = append(change.Entries, replica.Entry{ID: madeID("synonym", title), Position: position, JSON: text})
		}
	}
	expect.OK(t, x.Apply(change))
	for _, l := range synonymLines(t) {
		for _, said := range l.said {
			q := expect.Get(search.Parse(url.Values{"q": {said}, "limit": {"100"}}, nil))(t)
			r := mustSearch(t, x, q)
			if !slices.ContainsFunc(r.Hits, func(h search.Hit) bool {
				title := expect.Get(h.Decode())(t).Title
				return sameWords(title) != sameWords(said) && slices.Contains(l.meant, title)
			}) {
				t.Errorf("%q of %q: got %s, want an asset of the line", said, l.text, fmt.Sprint(r.Total, r.Reading.Steps, r.Reading.Used()))
			}
		}
	}
}
