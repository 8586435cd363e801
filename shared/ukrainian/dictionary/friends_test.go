package dictionary

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// family returns the forms of a lemma and the lemma.
func family(byLemma map[string][]string, lemma string) []string {
	return append([]string{lemma}, byLemma[lemma]...)
}

// TestFalseFriendsDoNotMeet searches for random forms of words that look like other words. Few searches may find one
// of these other words.
func TestFalseFriendsDoNotMeet(t *testing.T) {
	byLemma := map[string][]string{}
	for _, l := range readLexemes(t) {
		byLemma[l.lemma] = append(byLemma[l.lemma], l.forms...)
	}
	text, err := os.ReadFile("testdata/false-friends.txt")
	expect.OK(t, err)
	var listed [][2]string
	for line := range strings.Lines(string(text)) {
		if a, b, ok := strings.Cut(strings.TrimSpace(line), " "); ok && a != "#" {
			listed = append(listed, [2]string{a, b})
		}
	}
	expectApart(t, "the list", byLemma, listed)
	expectApart(t, "words with one other letter", byLemma, neighbours(byLemma))
}

// expectApart makes 2,000 searches. Each searches for a form of one word of a pair, in a text with a form of the other
// word. At most 5 percent of the searches may find the text. expectApart skips forms that both words have.
func expectApart(t *testing.T, name string, byLemma map[string][]string, pairs [][2]string) {
	t.Helper()
	const questions = 2000
	r := rand.New(rand.NewPCG(1, 3))
	met, asked := 0, 0
	shown := map[string]bool{}
	for tries := 0; asked < questions && tries < 10*questions; tries++ {
		pair := pairs[r.IntN(len(pairs))]
		if r.IntN(2) == 0 {
			pair[0], pair[1] = pair[1], pair[0]
		}
		a, b := family(byLemma, pair[0]), family(byLemma, pair[1])
		question, text := a[r.IntN(len(a))], b[r.IntN(len(b))]
		if slices.Contains(b, question) || slices.Contains(a, text) {
			continue
		}
		asked++
		if meets(question, text) {
			met++
			shown[question+" ("+pair[0]+") ~ "+text+" ("+pair[1]+")"] = true
		}
	}
	precision := 1 - float64(met)/float64(asked)
	t.Logf("%s: %d pairs, precision %.3f", name, len(pairs), precision)
	if precision < 0.95 || asked < questions {
		t.Errorf("%s: got the precision %.3f in %d questions, want 0.95 in %d", name, precision, asked, questions)
	}
	if *tuning {
		for pair := range shown {
			t.Log(pair)
		}
	}
}

// neighbours returns pairs of lemmas that differ in one letter. It takes them from the lemmas that are only for
// tests (isHeldOut). The letter is not near the end, where an ending may begin.
func neighbours(byLemma map[string][]string) [][2]string {
	const wild = "*"
	byPattern := map[string][]string{}
	for lemma := range byLemma {
		letters := []rune(lemma)
		if isHeldOut(lemma) == *tuning || len(letters) < 5 || strings.ToLower(lemma) != lemma {
			continue
		}
		for i := range len(letters) - 2 {
			pattern := string(letters[:i]) + wild + string(letters[i+1:])
			byPattern[pattern] = append(byPattern[pattern], lemma)
		}
	}
	var pairs [][2]string
	for _, alike := range byPattern {
		slices.Sort(alike)
		for i := range len(alike) - 1 {
			if same := strings.NewReplacer("ґ", "г"); same.Replace(alike[i]) != same.Replace(alike[i+1]) {
				pairs = append(pairs, [2]string{alike[i], alike[i+1]})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) })
	return pairs
}
