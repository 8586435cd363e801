package meaning

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// The letters on the keys of a keyboard, in the Latin and in the Cyrillic layout, in the same order. The Cyrillic
// layout is the Ukrainian one.
const (
	latinKeys    = "qwertyuiop[]asdfghjkl;'zxcvbnm,.`\\"
	cyrillicKeys = "йцукенгшщзхїфівапролджєячсмитьбю'ґ"
)

var toOtherKeys, toLatinKeys = func() (map[rune]rune, map[rune]rune) {
	to, from := map[rune]rune{}, map[rune]rune{}
	latin := []rune(latinKeys)
	for i, r := range []rune(cyrillicKeys) {
		to[latin[i]], from[r] = r, latin[i]
	}
	for r, key := range map[rune]rune{'ъ': ']', 'ы': 's', 'э': '\'', 'ё': '`', 'ʼ': '`', '’': '`'} {
		from[r] = key
	}
	return to, from
}()

// otherLayout returns the text that the same keys write in the other layout. If the text has no letters, or has
// a character without a key, the result is "".
func otherLayout(text string) string {
	letters := []rune(strings.ToLower(text))
	keys := toOtherKeys
	if slices.ContainsFunc(letters, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }) {
		keys = toLatinKeys
	} else if !slices.ContainsFunc(letters, func(r rune) bool { return r >= 'a' && r <= 'z' }) {
		return ""
	}
	for i, r := range letters {
		other, ok := keys[r]
		if !ok {
			return ""
		}
		letters[i] = other
	}
	return string(letters)
}

// Layouts returns a text as it is, with its last word in the other layout of the keyboard, and with all words in it.
func Layouts(text string) []string {
	words := strings.Split(text, " ")
	for i, w := range words {
		words[i] = cmp.Or(otherLayout(w), w)
	}
	last := strings.LastIndexByte(text, ' ') + 1
	return slices.Compact([]string{text, text[:last] + words[len(words)-1], strings.Join(words, " ")})
}

// mostSpellings is the largest number of spellings of one word that are tried.
const mostSpellings = 96

// spellings returns other spellings of a word. A Latin word is written in Cyrillic letters. A Cyrillic word is
// written as in Ukrainian instead of Russian, and in Latin letters.
func spellings(word string) []string {
	word = strings.ToLower(word)
	isCyrillic := strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) })
	if !isCyrillic {
		return spell(word, fromLatin)
	}
	return append(spell(word, fromRussian), spell(word, intoLatin)...)
}

// spell returns the spellings of a word that a table produces. It goes through the word from the start. At each
// place, it replaces the next letters by each text that the table has for them. Long groups of letters and likely
// spellings come first.
func spell(word string, table map[string][]string) []string {
	type draft struct{ made, rest string }
	drafts := []draft{{rest: word}}
	var done []string
	for len(drafts) > 0 && len(done) < mostSpellings {
		var next []draft
		for _, d := range drafts {
			if d.rest == "" {
				done = append(done, d.made)
				continue
			}
			for _, one := range firstLetters(d.rest, table) {
				next = append(next, draft{d.made + one[1], d.rest[len(one[0]):]})
			}
		}
		drafts = next[:min(len(next), mostSpellings)]
	}
	return slices.DeleteFunc(done, func(spelt string) bool { return spelt == word })
}

// firstLetters returns pairs. Each pair has a beginning of the word, and a text that may replace this beginning.
func firstLetters(word string, table map[string][]string) (pairs [][2]string) {
	at := 0
	for n := range word {
		if at++; at > 6 {
			break
		}
		if n > 0 {
			for _, to := range table[word[:n]] {
				pairs = append(pairs, [2]string{word[:n], to})
			}
		}
	}
	if at <= 5 {
		for _, to := range table[word] {
			pairs = append(pairs, [2]string{word, to})
		}
	}
	slices.SortStableFunc(pairs, func(a, b [2]string) int { return len(b[0]) - len(a[0]) })
	if len(pairs) == 0 {
		first := string([]rune(word)[:1])
		pairs = append(pairs, [2]string{first, first})
	}
	return pairs
}

// table reads a table from a list of entries such as "zh=ж" or "g=г,ґ".
func table(list string) map[string][]string {
	all := map[string][]string{}
	for one := range strings.FieldsSeq(list) {
		from, to, _ := strings.Cut(one, "=")
		all[from] = strings.Split(to, ",")
	}
	return all
}

// fromLatin has the official romanisation of 2010, and other spellings that people use. The index does not
// distinguish г and ґ, and ignores soft signs, apostrophes and double consonants.
var fromLatin = table(`
	shch=щ sch=щ,ш zgh=зг zh=ж kh=х ts=ц tz=ц ch=ч sh=ш ya=я ia=я,іа ja=я ye=є ie=є,іє je=є yu=ю iu=ю ju=ю yi=ї
	yo=йо io=йо,іо jo=йо ck=к ph=ф th=т,тг oo=у ee=і qu=кв
	a=а b=б c=к,ц,с d=д e=е,є f=ф g=г h=г,х i=і,и,й,ї j=й,дж,ж k=к l=л m=м n=н o=о p=п q=к r=р s=с t=т u=у v=в w=в x=кс
	y=и,й,і z=з
`)

// intoLatin maps Cyrillic letters to the Latin letters that stand for them in names of makers and models.
var intoLatin = table(`
	а=a б=b в=v,w г=g,h ґ=g д=d е=e є=e,ye ж=zh,j з=z,s и=i,y і=i,y ї=yi,i й=y,i,j к=k,c л=l м=m н=n о=o п=p р=r с=s,c т=t
	у=u,oo ф=f х=h,kh,x ц=c,ts ч=ch ш=sh щ=shch ь= ю=yu,u,iu я=ya,ia ы=y э=e ё=yo ъ= кс=x дж=j,g нд=nd,nd
`)

// fromRussian maps Russian letters and endings to Ukrainian letters and endings. The index does not distinguish ы
// and и, or э and е.
var fromRussian = table(`
	о=о,і е=е,і,є,и и=и,і ы=и,і э=е ё=йо,е,ьо ъ= ие=іє,ія,ів ия=ія ая=а яя=я ое=е ее=є ые=і ие=і ый=ий ого=ого ение=ення
	ание=ання ость=ість ск=ськ цк=цьк ица=иця цо=це це=це ец=ець ств=ств чик=чик щик=щик хозяй=господар г=г нн=нн
`)
