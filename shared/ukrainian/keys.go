package ukrainian

import (
	"slices"
	"strings"
)

// stems returns the keys of a Ukrainian word.
func stems(word string) []string {
	word = bareWord(word)
	k := &keySet{}
	if isWhole(word) {
		k.add(word)
		return k.all
	}
	k.nominal(word)
	k.verbal(word)
	return k.all
}

// keySet collects the keys of a word.
type keySet struct{ all []string }

func (k *keySet) add(stem string) {
	if stem = finish(stem); !slices.Contains(k.all, stem) {
		k.all = append(k.all, stem)
	}
}

// finish removes from a stem the letters and signs that only some forms of a word have.
func finish(stem string) string {
	stem = smooth.Replace(stem)
	letters := []rune(stem)
	out := letters[:0]
	for i, r := range letters {
		if i > 0 && r == letters[i-1] && !isVowel(r) { // keep only one of two equal consonants
			continue
		}
		out = append(out, r)
	}
	return string(out)
}

// minStem is the least number of letters of a stem.
const minStem = 2

// cutEnding returns the stem before the longest ending that the word has from a list. ok is
// false if the word has none of these endings.
func cutEnding(word string, endings []string) (stem, ending string, ok bool) {
	for _, e := range endings {
		if stem, ok := strings.CutSuffix(word, e); ok && len([]rune(stem)) >= minStem {
			return stem, e, true
		}
	}
	return word, "", false
}

// shortEndings are the endings of one letter.
var shortEndings = strings.Fields("а я о е є у ю и і ї")

// nominal adds the keys of a noun or an adjective.
func (k *keySet) nominal(word string) {
	stem, ending, ok := cutEnding(word, endings)
	if !ok || ending == "ь" || ending == "й" {
		k.bare(stem, ending)
		return
	}
	k.add(stem)
	k.softened(stem, ending)
	k.derived(stem, ending)
	if short, ok := strings.CutSuffix(word, "й"); ok {
		k.add(short)
	}
	if young, _, ok := cutEnding(word, youngEndings); ok && strings.HasSuffix(young, "ен") {
		k.add(young)
	}
	if len([]rune(ending)) > 1 { // a shorter ending may be the right one: "основі" is a form of "основа", not of "осн"
		if short, last, ok := cutEnding(word, shortEndings); ok && hasVowel(short) {
			k.add(short)
			k.softened(short, last)
		} else if !ok {
			k.bare(word, "")
		}
	}
}

// bare adds the keys of a form without an ending. Other forms of the word may lack the last
// vowel of this form ("будинок", "будинку"), or change it ("ніч", "ночі").
func (k *keySet) bare(stem, ending string) {
	k.add(stem)
	letters := []rune(stem)
	n := len(letters)
	if n < 3 || isVowel(letters[n-1]) {
		return
	}
	at := n - 2
	if !isVowel(letters[at]) && n > 3 && isVowel(letters[at-1]) {
		at--
	}
	switch letters[at] {
	case 'о', 'е', 'є':
		if at == n-2 && at > 0 {
			k.add(string(letters[:at]) + string(letters[at+1:]))
		}
	case 'і', 'ї':
		for _, other := range "ое" {
			k.add(string(letters[:at]) + string(other) + string(letters[at+1:]))
		}
	}
}

// softenings maps a consonant at the end of a stem to the original consonants. Some endings change the original
// consonant to this one.
var softenings = map[rune][]rune{'з': {'г'}, 'ц': {'к'}, 'с': {'х'}, 'ж': {'г'}, 'ч': {'к'}, 'ш': {'х'}}

// softened adds the key of the original stem if the ending may have softened the last consonant of that stem.
func (k *keySet) softened(stem, ending string) {
	letters := []rune(stem)
	last := letters[len(letters)-1]
	first := []rune(ending)[0]
	if first != 'і' && first != 'е' && first != 'и' {
		return
	}
	for _, hard := range softenings[last] {
		letters[len(letters)-1] = hard
		k.add(string(letters))
	}
}

func hasVowel(stem string) bool { return strings.ContainsAny(stem, vowels) }

// verbal adds the keys of a verb. They begin with verbMark.
func (k *keySet) verbal(word string) {
	for _, reflexive := range []string{"ся", "сь"} {
		if short, ok := strings.CutSuffix(word, reflexive); ok && len([]rune(short)) > minStem {
			word = short
			break
		}
	}
	stem, ending, ok := cutEnding(word, verbEndings)
	if !ok || !hasVowel(stem) {
		return
	}
	k.add(verbMark + stem)
	first := []rune(ending)[0]
	if strings.ContainsRune("уюеєая", first) {
		for _, before := range verbSoftenings {
			if root, ok := strings.CutSuffix(stem, before.soft); ok {
				for _, hard := range before.hard {
					k.add(verbMark + root + hard)
				}
				break
			}
		}
	}
}

// verbMark marks keys of verbs, so that they differ from the keys of nouns.
const verbMark = "+"

var verbSoftenings = []struct {
	soft string
	hard []string
}{
	{"бл", []string{"б"}}, {"пл", []string{"п"}}, {"вл", []string{"в"}}, {"мл", []string{"м"}}, {"фл", []string{"ф"}},
	{"дж", []string{"д"}}, {"ждж", []string{"зд"}}, {"щ", []string{"ст", "ск"}}, {"ж", []string{"з", "г"}},
	{"ч", []string{"т", "к"}}, {"ш", []string{"с", "х"}},
}

// shortStems are the stems of two consonants in words of three letters. If the two consonants of such a word are not in
// this list, the word keeps its ending: it is an abbreviation, a preposition or a numeral. So "ПРУ" does not get the
// same key as "при".
var shortStems = []string{"дн", "сн", "пс", "тл", "зл"}

// isWhole reports whether a word has no ending: it is a Roman numeral, or has three letters and would lose its
// only vowel.
func isWhole(word string) bool {
	if strings.Trim(word, "іх") == "" {
		return true
	}
	letters := []rune(word)
	return len(letters) == 3 && isVowel(letters[2]) && !hasVowel(string(letters[:2])) &&
		!slices.Contains(shortStems, string(letters[:2]))
}

// derivations are suffixes of adjectives that are made of nouns. The field `least` is the least number of letters of
// the noun. Adjectives of places get no key of the noun, because the name of a region is not the name of a town.
var derivations = []struct {
	suffix string
	least  int
}{{"ськ", 5}, {"ян", 4}, {"ов", 5}, {"ев", 5}, {"н", 4}}

// ofPlaces are the nouns that get the suffix -ськ although they are not places.
var ofPlaces = strings.Fields("склад завод банк рибаль господар")

var adjectiveEndings = strings.Fields("ий ого ому им ими их ої ою а у е і")

// derived adds the key of the noun that an adjective is made of ("складське", "склад").
func (k *keySet) derived(stem, ending string) {
	if !slices.Contains(adjectiveEndings, ending) {
		return
	}
	if noun, ok := nounsOf()[stem]; ok {
		k.nominal(noun)
		return
	}
	for _, d := range derivations {
		noun, ok := strings.CutSuffix(stem, d.suffix)
		if !ok || len([]rune(noun)) < d.least {
			continue
		}
		last := []rune(noun)[len([]rune(noun))-1]
		if isVowel(last) || d.suffix == "ськ" && !slices.Contains(ofPlaces, noun) ||
			d.suffix == "н" && ending == "і" && (last == 'р' || last == 'х') { // "лікарні" and "поверхні" are nouns
			return
		}
		k.add(noun)
		return
	}
}
