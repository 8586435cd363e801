package meaning

import (
	_ "embed"
	"slices"
	"strings"
	"unicode/utf8"

	"asset-registry/shared/ukrainian"
)

// towns are names of towns that no asset may have yet. A question for a place where nothing is
// finds nothing, and not what is elsewhere.
//
//go:embed towns.txt
var townNames string

// towns has the keys of the names of places, each with the letters of the shortest name: of one
// word, and of two words with a blank.
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

// isTown tells whether a word is the name of a place. It is hardly shorter than the name.
func isTown(a ukrainian.Asked) bool {
	for _, key := range nominal(a.Keys) {
		if least := towns[key]; least > 0 && utf8.RuneCountInString(a.Text) >= least-1 {
			return true
		}
	}
	return false
}

// endingsOfTowns are endings that hardly any other word has.
var endingsOfTowns = strings.Fields("ськ цьк піль поль град город")

// looksLikeTown tells whether a word has the ending of many names of places.
func looksLikeTown(text string) bool {
	return utf8.RuneCountInString(text) > 5 &&
		slices.ContainsFunc(endingsOfTowns, func(ending string) bool { return strings.HasSuffix(text, ending) })
}

// isTownOfTwo tells whether two words are the name of a place.
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
