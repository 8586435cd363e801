package site

import (
	"slices"

	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
)

// codeName returns the name of a code from the operator's lists, and the language of the name. If the English name is
// missing, it returns the Ukrainian one. Both results are "" if the lists have no name for the code. If the scheme is
// "", codeName looks for the code in each classification.
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

// withName adds the name of a code to the parts of a classification, unless one of them already has this text.
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

// codeByName returns a part for the code of a classification. The part shows the name that the operator's lists have
// for the code, in place of the code. It is empty if the lists have no name.
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

// nameIn returns the name of a value of a facet in a language; "" if the value has no name.
func nameIn(l Lang, c search.Count) string {
	return codenames.Name{Uk: c.Name, En: c.NameEn}.In(string(l))
}
