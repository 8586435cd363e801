package ukrainian

import (
	"slices"
	"strings"
)

// fold returns a word in which letters that people confuse have one form.
func fold(word string) string { return folding.Replace(word) }

var folding = strings.NewReplacer("ґ", "г", "ё", "е", "ы", "и", "э", "е", "ъ", "")

// smooth removes the parts of a stem that only some of its forms have: apostrophes, soft signs, and the sound
// й before a vowel.
var smooth = strings.NewReplacer("'", "", "ь", "", "ї", "і", "є", "е", "йо", "о")

// endings are the endings of nouns and adjectives. The first line has the longest ones.
var endings = sorted(`
	ами ями ові еві єві ого ього ому ьому ими іми ами ями ої ьої ою ьою ею єю ам ям ах ях
	ом ем єм ям ів їв ев єв ей єй ий ій їй им ім їм их іх їх ьо
	а я о е є у ю и і ї ь й
`)

// youngEndings are the endings that follow -ен in names of young animals and people.
var youngEndings = sorted("яти яті ям ят ятам ятами ятах")

// verbEndings are endings of verbs, with the vowel or the suffix before them: "купувати" and "купую" have the same
// stem. The -ся or -сь of a reflexive verb is removed first.
var verbEndings = sorted(join(
	infinitives, past, present,
	each("ув", startingWithA(infinitives), startingWithA(past)),
	each("юв", startingWithA(infinitives), startingWithA(past)),
	each("н", "ути ув ула уло ули увши", "у еш е еть емо ем ете уть"),
))

// Endings of verbs, which verbEndings puts together.
const (
	past = `
		ав ала ало али яв яла яло яли ив ила ило или ів іла іло іли їв їла їло їли ув ула уло ули юв юла юло юли
		ла ло ли авши явши ивши івши ївши увши ювши вши ши ано яно ено єно уто ито ято
	`
	present = `
		у ю еш єш иш їш е є ить їть ять ать емо єм ем ємо имо їмо им їм ете єте ите їте уть ють еть єть
		аю яю аєш яєш ає яє аєть яєть аємо яємо аєм яєм аєте яєте ають яють
		ію ієш іє ієть іємо ієм ієте іють ую юю уєш юєш ує ює уєть юєть уємо юємо уєм юєм уєте юєте ують юють
		ай яй аймо яймо айте яйте уй юй уймо юймо уйте юйте ій іймо ійте
		и імо ім іть й ймо йте мо те ь ьмо ьте аючи яючи уючи юючи учи ючи ачи ячи чи
	`
)

// infinitives are the endings of infinitives, and of the future tense that is made of infinitives.
var infinitives = join(each("", "ати яти ити іти їти ути юти ти"),
	each("ати", future), each("яти", future), each("ити", future), each("іти", future), each("їти", future),
	each("ути", future), each("юти", future), each("ти", future))

const future = "му меш ме меть мемо мем мете муть"

func join(lists ...string) string { return strings.Join(lists, " ") }

// The function `each` puts a text before each word of lists.
func each(before string, lists ...string) string {
	var all []string
	for _, word := range strings.Fields(join(lists...)) {
		all = append(all, before+word)
	}
	return join(all...)
}

func startingWithA(list string) string {
	return join(slices.DeleteFunc(strings.Fields(list), func(e string) bool { return !strings.HasPrefix(e, "а") })...)
}

func sorted(list string) []string {
	all := strings.Fields(list)
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(all)
}

const vowels = "аеєиіїоуюя"

func isVowel(r rune) bool { return strings.ContainsRune(vowels, r) }
