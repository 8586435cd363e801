package docs

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// promising are the documents in which each promise must have a name. A test must have this name in its comment.
var promising = []string{"docs/contract.md", "docs/log.md", "docs/mirrors.md", "docs/search.md",
	"docs/snapshot.md"}

// promiseNothing has phrases that promise nothing although they contain a strong word. The keys are the reasons.
var promiseNothing = map[string][]string{
	"a heading, or a list of other texts": {"the fields of each object", "change the asset at all",
		"any other key"},
	"the word means another thing": {"at once", "each other", "any more"},
	"advice to clients":            {"checks each file"},
	"leave to do something":        {"may end at any time", "may be removed at any time"},
}

// strong finds words that make a sentence a promise (docs/contributing.md, "How a promise is made").
var strong = regexp.MustCompile(`(?i)\b(?:never|always|exactly|at most|once|unique|all|each|any)\b`)

var (
	promiseName = regexp.MustCompile(`§([a-z0-9]+(?:-[a-z0-9]+)*)`)
	codeSpan    = regexp.MustCompile("`[^`]*`")
	newSentence = regexp.MustCompile("[.!?] +(?:[A-Z*\\[]|`)")
	newItem     = regexp.MustCompile(`^\s*(?:- |\d+\. )`)
)

// promisesOf returns the names of the promises in a document. It also returns the sentences that have a strong
// word but no name. A table after a sentence counts as named if the sentence is named. Strong words within the
// given phrases do not count. The result `used` lists the phrases that were found.
func promisesOf(text string, phrases []string) (names, nameless, used []string) {
	lead := "" // the last sentence before the current table
	for _, block := range blocksOf(codeBlock.ReplaceAllString(text, "")) {
		isRow := strings.HasPrefix(block, "|")
		for _, sentence := range sentencesOf(block) {
			for _, match := range promiseName.FindAllStringSubmatch(sentence, -1) {
				names = append(names, match[1])
			}
			isNamed := promiseName.MatchString(sentence) || isRow && promiseName.MatchString(lead)
			bare := codeSpan.ReplaceAllString(sentence, "")
			for _, phrase := range phrases {
				if strings.Contains(bare, phrase) {
					used, bare = append(used, phrase), strings.ReplaceAll(bare, phrase, "")
				}
			}
			if strong.MatchString(bare) && !isNamed {
				nameless = append(nameless, sentence)
			}
			if !isRow {
				lead = sentence
			}
		}
	}
	return names, nameless, used
}

// blocksOf returns the paragraphs, list items, table rows and headings of a document, each as one line.
func blocksOf(text string) (blocks []string) {
	isOpen := false // whether the next line may belong to the last block
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		isAlone := strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#")
		switch {
		case strings.TrimSpace(line) == "":
			isOpen = false
			continue
		case isAlone || !isOpen || newItem.MatchString(line):
			blocks = append(blocks, strings.TrimSpace(line))
		default:
			blocks[len(blocks)-1] += " " + strings.TrimSpace(line)
		}
		isOpen = !isAlone
	}
	return blocks
}

// sentencesOf returns the sentences in a block. A table row counts as one sentence.
func sentencesOf(block string) (sentences []string) {
	if strings.HasPrefix(block, "|") {
		return []string{block}
	}
	begin := 0
	hidden := codeSpan.ReplaceAllStringFunc(block, func(code string) string { return strings.Repeat("`", len(code)) })
	for _, at := range newSentence.FindAllStringIndex(hidden, -1) {
		sentences = append(sentences, block[begin:at[0]+1])
		begin = at[1] - 1
	}
	return append(sentences, block[begin:])
}

// readers finds the line "Promises:" in the comment of a test, and the name of the test. Tests in suites may begin
// with a small letter.
var readers = regexp.MustCompile(`(?m)^// Promises: (.+)\n(?://.*\n)*func ((?:\([^)]*\) )?\w+)`)

var testFunc = regexp.MustCompile(`^[Tt]est[A-Z]`)

// readBy adds the tests in a Go file to the map in the parameter `tests`. The keys are the promises that the comments
// of the tests name. It returns functions whose comments name promises although they are not tests.
func readBy(path, text string, tests map[string][]string) (wrong []string) {
	for _, match := range readers.FindAllStringSubmatch(text, -1) {
		if !testFunc.MatchString(match[2]) {
			wrong = append(wrong, path+": "+match[2])
			continue
		}
		for _, name := range strings.Split(match[1], ", ") {
			tests[name] = append(tests[name], path+": "+match[2])
		}
	}
	return wrong
}

// unread returns the names that no test's comment has.
func unread(names []string, tests map[string][]string) (found []string) {
	for _, name := range names {
		if len(tests[name]) == 0 {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestEachPromiseHasAReader compares the promises in the documents with the promises that the comments of tests
// name. Each promise of a document must have a test. Each promise that a test names must be in a document.
func TestEachPromiseHasAReader(t *testing.T) {
	tests := map[string][]string{}
	sources(t, func(path, text string) {
		if filepath.Ext(path) != ".go" || strings.HasPrefix(path, "deploy/test/docs/") {
			return
		}
		for _, wrong := range readBy(path, text, tests) {
			t.Errorf("%s: got promises, want them at a test only", wrong)
		}
	})
	phrases := slices.Concat(slices.Collect(maps.Values(promiseNothing))...)
	var names, used []string
	for _, d := range documents(t) {
		if !slices.Contains(promising, d.path) {
			continue
		}
		found, nameless, phrases := promisesOf(d.text, phrases)
		names, used = append(names, found...), append(used, phrases...)
		for _, sentence := range nameless {
			t.Errorf("%s: got no name in %q, want one of a promise, such as §asset-size", d.path, sentence)
		}
	}
	for _, name := range unread(names, tests) {
		t.Errorf("§%s: got no test with it in a line \"// Promises:\", want one that fails if the promise breaks", name)
	}
	for name, readers := range tests {
		if !slices.Contains(names, name) {
			t.Errorf("%s: got the promise %s, want one of a document", strings.Join(readers, ", "), name)
		}
	}
	for _, phrase := range phrases {
		if !slices.Contains(used, phrase) {
			t.Errorf("the phrase %q: got no sentence with it, want it left out of the list", phrase)
		}
	}
	if len(names) < 100 {
		t.Errorf("got %d names of promises, want at least 100", len(names))
	}
}

// TestLostPromisesAreFound checks texts with three kinds of faults: promises without a name, names that no test
// has, and names that no document has. All faults must be found.
func TestLostPromisesAreFound(t *testing.T) {
	names, nameless, used := promisesOf("# All of it\n\nNo one sees it. It never\nends §end. `GET`s read all. Ask once.\n"+
		"```\nnever\n```\n- Text `all. Any` is\n  short.\n- Each one has `x`.\n\nA table §rows:\n\n| any | all |\n\nA list:\n\n| each |\n"+
		"| at most §two |\n| `once` |\n", []string{"Ask once", "All of it", "no such"})
	expect.NoDiff(t, cmp.Diff([]string{"end", "rows", "two"}, names), "the names")
	expect.NoDiff(t, cmp.Diff([]string{"`GET`s read all.", "- Each one has `x`.", "| each |"}, nameless),
		"the sentences without a name differ")
	expect.NoDiff(t, cmp.Diff([]string{"All of it", "Ask once"}, used), "the phrases")
	tests := map[string][]string{}
	wrong := readBy("x.go", "// TestA is one.\n// Promises: end, two\nfunc TestA(t *testing.T) {}\n\n// Promises: rows\n// and more\n"+
		"func helper() {}\n\n// Promises: gone\nfunc (a api) testB() {}\n\n// Promises: late\nfunc testC() {}\n", tests)
	expect.NoDiff(t, cmp.Diff([]string{"x.go: helper", "x.go: (a api) testB"}, wrong),
		"the functions that are no tests differ")
	want := map[string][]string{"end": {"x.go: TestA"}, "two": {"x.go: TestA"}, "late": {"x.go: testC"}}
	expect.NoDiff(t, cmp.Diff(want, tests), "the tests")
	if got := unread(names, tests); !slices.Equal(got, []string{"rows"}) {
		t.Errorf("got the promises %q without a test, want rows", got)
	}
}
