package ukrainian

import (
	"strings"
	"unicode"
)

// script is the script of a word's letters.
type script int

const (
	otherScript script = iota
	latin
	cyrillic
)

func scriptOf(word string) script {
	for _, r := range word {
		if s := scriptOfRune(r); s != otherScript {
			return s
		}
	}
	return otherScript
}

// scriptOfRune returns the script of a small letter.
func scriptOfRune(r rune) script {
	switch { // the cases for the letters of most texts come first
	case r >= 'а' && r <= 'ї', unicode.Is(unicode.Cyrillic, r):
		return cyrillic
	case r >= 'a' && r <= 'z', unicode.Is(unicode.Latin, r):
		return latin
	default:
		return otherScript
	}
}

// The small letters of the two scripts that look alike. Letters at the same index belong together. The lists also have
// letters that look alike only as capitals, because a word may have been written in capitals.
const (
	latinLetters    = "aceiopxykmhtb"
	cyrillicLetters = "асеіорхукмнтв"
)

var toCyrillic, toLatin = pairs(latinLetters, cyrillicLetters), pairs(cyrillicLetters, latinLetters)

func pairs(from, to string) map[rune]rune {
	m, letters := map[rune]rune{}, []rune(to)
	for i, r := range []rune(from) {
		m[r] = letters[i]
	}
	return m
}

// oneScript rewrites a word that has Latin and Cyrillic letters, so that all its letters are of one script. The
// result is Latin if the word has a letter that only Latin has, and no letter that only Cyrillic has. Otherwise the
// result is Cyrillic.
func oneScript(word string) string {
	hasLatin, hasCyrillic := false, false
	for _, r := range word {
		switch scriptOfRune(r) {
		case cyrillic:
			hasCyrillic = true
		case latin:
			hasLatin = true
		}
	}
	if !hasLatin || !hasCyrillic {
		return word
	}
	onlyLatin, onlyCyrillic := false, false // the word has a letter that only this script has
	for _, r := range word {
		_, alike := toLatin[r]
		onlyCyrillic = onlyCyrillic || scriptOfRune(r) == cyrillic && !alike
		_, alike = toCyrillic[r]
		onlyLatin = onlyLatin || scriptOfRune(r) == latin && !alike
	}
	if onlyLatin && !onlyCyrillic {
		return replace(word, toLatin)
	}
	return replace(word, toCyrillic)
}

func replace(word string, letters map[rune]rune) string {
	return strings.Map(func(r rune) rune {
		if other, ok := letters[r]; ok {
			return other
		}
		return r
	}, word)
}

// lookAlike replaces each Latin letter of a word by the Cyrillic letter that looks like it, because somebody may have
// typed a Ukrainian word with Latin letters. ok is false if the word is not Latin, or if it has a letter that does not
// look like any Cyrillic letter.
func lookAlike(word string) (other string, ok bool) {
	if scriptOf(word) != latin {
		return "", false
	}
	for _, r := range word {
		if _, ok := toCyrillic[r]; !ok {
			return "", false
		}
	}
	return replace(word, toCyrillic), true
}
