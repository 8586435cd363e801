package meaning

import (
	_ "embed"
	"slices"
	"strings"
	"unicode/utf8"

	"asset-registry/shared/ukrainian"
)

// townNames are names of towns. In some of these towns there is no asset yet. A question for assets in such a town
// must find nothing, instead of assets in other places.
//
//go:embed towns.txt
var townNames string

// towns maps keys of names of places to lengths: the length of the shortest name that has the key. The key of a name
// with two words consists of a key of each word, with a blank between them.
var towns = func() map[string]int {
	set := map[string]int{}
	add := func(key, name string) {
		if n := utf8.RuneCountInString(name); set[key] == 0 || n < set[key] {
			set[key] = n
		}
	}
	names := strings.FieldsFunc(townNames, func(r rune) bool { return r == ',' || r == '\n' })
	for _, region := range ukrainian.Regions() {
		names = append(names, region.Key)
	}
	names = append(names, ukrainian.FormerNames()...)
	for _, name := range names {
		switch words := ukrainian.Words(name); len(words) {
		case 1:
			for _, key := range nominal(words[0]) {
				add(key, name)
			}
		case 2:
			for _, a := range words[0] {
				for _, b := range words[1] {
					add(a+" "+b, name)
				}
			}
		}
	}
	return set
}()

// isTown reports whether a word is the name of a place. At most one letter of the name may be missing. The word may be
// two letters longer; still longer words are others: "пологовий" is not the town Пологи.
func isTown(a ukrainian.Asked) bool {
	for _, key := range nominal(a.Keys) {
		letters := utf8.RuneCountInString(a.Text)
		if least := towns[key]; least > 0 && letters >= least-1 && letters <= least+2 {
			return true
		}
	}
	return false
}

// endingsOfTowns are endings that many names of towns have, but hardly any other words have.
var endingsOfTowns = strings.Fields("ськ цьк піль поль град город")

// looksLikeTown reports whether a word has an ending that is common in names of places.
func looksLikeTown(text string) bool {
	return utf8.RuneCountInString(text) > 5 &&
		slices.ContainsFunc(endingsOfTowns, func(ending string) bool { return strings.HasSuffix(text, ending) })
}

// isTownOfTwo reports whether two words are the name of a place. The arguments are the keys of the two words.
func isTownOfTwo(a, b []string) bool {
	for _, one := range a {
		for _, two := range b {
			if towns[one+" "+two] > 0 {
				return true
			}
		}
	}
	return false
}
