// Package codenames defines the format of the files in which an operator supplies names of codes
// (docs/search.md, "Names of codes").
package codenames

import (
	"slices"
	"strings"
)

// Schemes are the schemes of codes that have names.
var Schemes = []string{"CAV-PS", "CPV", "CPVS", "dk018", "kvtspz"}

// Langs are the languages of names.
var Langs = []string{"uk", "en"}

// File returns the scheme and the language of a file of names, such as CPV.uk.json. ok is false for
// other files.
func File(name string) (scheme, lang string, ok bool) {
	rest, isJSON := strings.CutSuffix(name, ".json")
	scheme, lang, _ = strings.Cut(rest, ".")
	return scheme, lang, isJSON && slices.Contains(Schemes, scheme) && slices.Contains(Langs, lang)
}
