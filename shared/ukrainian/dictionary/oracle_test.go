package dictionary

import (
	"bufio"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
	"asset-registry/shared/ukrainian"
)

var (
	dictionary = flag.String("hunspell", "", "directory with uk_UA.dic and uk_UA.aff")
	tuning     = flag.Bool("tuning", false, "measure on the words that the rules were made with, and show what they miss")
)

// rule makes a form of a word: it replaces an ending of the words that match.
type rule struct {
	remove, add string
	matches     *regexp.Regexp
}

// readRules reads the rules of an affix file by their flags.
func readRules(r io.Reader) (map[rune][]rule, error) {
	rules := map[rune][]rule{}
	known := map[string]*regexp.Regexp{}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 5 || f[0] != "SFX" {
			continue
		}
		if known[f[4]] == nil {
			compiled, err := regexp.Compile("(?:" + f[4] + ")$")
			if err != nil {
				return nil, err
			}
			known[f[4]] = compiled
		}
		add, _, _ := strings.Cut(f[3], "/")
		one := rule{strings.TrimPrefix(f[2], "0"), strings.TrimPrefix(add, "0"), known[f[4]]}
		rules[[]rune(f[1])[0]] = append(rules[[]rune(f[1])[0]], one)
	}
	return rules, nil
}

// lexeme is a word of the dictionary with its forms.
type lexeme struct {
	lemma string
	forms []string // other than the lemma
}

// isHeldOut reports whether a lemma is only for tests. The rules were made with the other lemmas.
func isHeldOut(lemma string) bool {
	h := fnv.New32()
	h.Write([]byte(lemma))
	return h.Sum32()%2 == 0
}

// readLexemes returns the words that have forms, with these forms.
func readLexemes(t *testing.T) []lexeme {
	t.Helper()
	expect.FatalIf(t, *dictionary == "", "name the dictionary with -hunspell; make test-search does so")
	affixes, err := os.Open(filepath.Join(*dictionary, "uk_UA.aff"))
	expect.OK(t, err)
	defer affixes.Close()
	rules, err := readRules(affixes)
	expect.OK(t, err)
	words, err := os.Open(filepath.Join(*dictionary, "uk_UA.dic"))
	expect.OK(t, err)
	defer words.Close()
	var all []lexeme
	for lines := bufio.NewScanner(words); lines.Scan(); {
		lemma, flags, _ := strings.Cut(lines.Text(), "/")
		one := lexeme{lemma: lemma}
		for _, f := range flags {
			for _, r := range rules[f] {
				if strings.HasSuffix(lemma, r.remove) && r.matches.MatchString(lemma) {
					one.forms = append(one.forms, strings.TrimSuffix(lemma, r.remove)+r.add)
				}
			}
		}
		slices.Sort(one.forms)
		one.forms = slices.Compact(one.forms)
		if len(one.forms) > 0 && len([]rune(lemma)) > 2 {
			all = append(all, one)
		}
	}
	return all
}

// meets reports whether a question with one word finds a text with another word.
func meets(question, text string) bool {
	keys := map[string]bool{}
	ukrainian.Each(text, 1000, func(key string) { keys[key] = true })
	for _, word := range ukrainian.Words(question) {
		if !slices.ContainsFunc(word, func(key string) bool { return keys[key] }) {
			return false
		}
	}
	return true
}

// TestFormsOfAWordMeet searches for 2,000 forms of held-out words. The text has the lemma.
// At least 95 percent of the searches must find it.
func TestFormsOfAWordMeet(t *testing.T) {
	lexemes := readLexemes(t)
	for seed := range uint64(3) {
		const questions = 2000
		r, met, keys := rand.New(rand.NewPCG(seed, 2)), 0, 0
		missed := map[string]int{}
		for n := 0; n < questions; {
			l := lexemes[r.IntN(len(lexemes))]
			if isHeldOut(l.lemma) == *tuning {
				continue
			}
			n++
			form := l.forms[r.IntN(len(l.forms))]
			ukrainian.Each(form, 1000, func(string) { keys++ })
			if meets(form, l.lemma) {
				met++
			} else if *tuning {
				missed[fmt.Sprintf("%s ~ %s", form, l.lemma)]++
			}
		}
		recall := float64(met) / questions
		t.Logf("seed %d: recall %.3f, %.2f keys a form", seed, recall, float64(keys)/questions)
		expect.ErrorIf(t, recall < 0.95, "seed %d: got the recall %.3f, want 0.95", seed, recall)
		if *tuning && seed == 0 {
			for pair := range missed {
				t.Log(pair)
			}
		}
	}
}
