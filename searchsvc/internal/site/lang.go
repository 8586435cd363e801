package site

import "golang.org/x/text/language"

// Lang is a language of the site. It is the first segment of the path of each page.
type Lang string

// The languages of the site.
const (
	Ukrainian Lang = "uk"
	English   Lang = "en"
)

// Langs returns every language. The first one is for browsers that prefer none of them.
func Langs() []Lang { return []Lang{Ukrainian, English} }

// supported has the languages of Langs, in their order.
var supported = language.NewMatcher([]language.Tag{language.Ukrainian, language.English})

// negotiate returns the language that a browser prefers, according to its header Accept-Language.
func negotiate(header string) Lang {
	_, at := language.MatchStrings(supported, header)
	return Langs()[at]
}

// text is a text in each language.
type text struct{ uk, en string }

// The method `in` returns the text in language l.
func (t text) in(l Lang) string {
	if l == English {
		return t.en
	}
	return t.uk
}

// forms are the forms of a noun after a number: 1 актив, 2 активи, 5 активів. English uses only one and many.
type forms struct{ one, few, many string }

// noun is a counted noun in each language.
type noun struct{ uk, en forms }

// The method `after` returns the form of a noun that follows a number (Unicode CLDR, "Plural Rules").
func (n noun) after(l Lang, number int64) string {
	if l == English {
		if number == 1 {
			return n.en.one
		}
		return n.en.many
	}
	switch ten, hundred := number%10, number%100; {
	case ten == 1 && hundred != 11:
		return n.uk.one
	case ten >= 2 && ten <= 4 && (hundred < 12 || hundred > 14):
		return n.uk.few
	default:
		return n.uk.many
	}
}
