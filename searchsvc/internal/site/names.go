package site

import (
	"slices"

	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
)

// codeName returns the name of a code in the operator's lists, and its language: the English name falls
// back to the Ukrainian one. Both are "" if the lists have none. Without a scheme, the code is one of
// classifications.
func codeName(l Lang, names codenames.Lists, scheme, code string) (said string, lang Lang) {
	name := names.Of(scheme, code)
	if scheme == "" {
		name = names.Classification(code)
	}
	switch said = name.In(string(l)); said {
	case "":
		return "", ""
	case name.Uk:
		return said, Ukrainian
	}
	return said, English
}

// withName returns the parts of a classification with the name of the code, unless the record has the same.
func (c cursor) withName(parts []part) []part {
	name, lang := codeName(c.l, c.names, c.v.string("scheme"), c.v.string("id"))
	if name == "" || slices.ContainsFunc(parts, func(p part) bool { return p.Text == name }) {
		return parts
	}
	if lang == c.l {
		lang = ""
	}
	return append(parts, part{Text: " — "}, part{Text: name, Lang: string(lang)})
}

// codeByName returns the part of the code of a classification as its name in the operator's lists. It has no
// path if they have none.
func (c cursor) codeByName() part {
	name, lang := codeName(c.l, c.names, c.v.string("scheme"), c.v.string("id"))
	if name == "" {
		return part{}
	}
	p := c.repeat("id")
	p.Text, p.Value, p.Code = name, p.Text, false
	if lang != c.l {
		p.Lang = string(lang)
	}
	return p
}

// nameIn returns the name of a value of a facet in a language; "" if it has none.
func nameIn(l Lang, c search.Count) string {
	return codenames.Name{Uk: c.Name, En: c.NameEn}.In(string(l))
}
