package docspage

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"strings"

	"asset-registry/shared/routes"
)

// guides has the names and titles of the guides, in the order of the page. The text of a guide is in the
// template NAME.html.
var guides = []struct{ name, title string }{
	{"first-asset", "First asset in five minutes"},
	{"documents", "Documents and their files"},
	{"tokens", "Tokens and ownership"},
	{"recovery", "Recovery and large loads"},
	{"states", "States"},
	{"lots", "Lots and the concierge"},
	{"deletion", "Deletion"},
	{"feed", "Following the feed"},
	{"errors", "Errors"},
	{"limits", "Limits"},
	{"versions", "Versions"},
}

// view is the data of a page.
type view struct {
	Up        string // relative path from the page to the root of the registry: ".", ".." or "../.."
	Home      string // path of the page of the current version
	Language  string
	Languages []languageView
	Base      string // address of the registry, in examples
	Fixed     bool   // the operator has configured Base
	Version   string
	Current   string
	Sandbox   bool
	Versions  []versionView
	Limits    []Limit
	Guides    []guideView
	Reference
}

// versionView is a version in the list of versions.
type versionView struct {
	Name, Path           string
	Shown                bool // this page shows this version
	Deprecated, SunsetOn string
}

// languageView is the page of the same version in one language.
type languageView struct{ Code, Name, Path string }

// guideView is a guide with its text.
type guideView struct {
	Name, Title string
	Text        template.HTML
}

// view returns the data for the page about a version, in a language.
func (s *Site) view(version, language string, sandbox bool) (view, error) {
	reference, err := newReference(s.options.Document(version))
	if err != nil {
		return view{}, fmt.Errorf("read the OpenAPI document of version %s: %w", version, err)
	}
	v := view{
		Up:        up(pathOf(version, language)),
		Home:      pathOf(routes.Current, language),
		Language:  language,
		Base:      cmp.Or(s.options.BaseURL, s.options.OwnURL, localAddress),
		Fixed:     s.options.BaseURL != "",
		Version:   version,
		Current:   routes.Current,
		Sandbox:   sandbox,
		Limits:    s.options.Limits,
		Reference: reference,
	}
	for _, name := range routes.Targets() {
		deprecated, sunset := s.options.Lifecycle(name)
		v.Versions = append(v.Versions, versionView{
			Name: name, Path: pathOf(name, language), Shown: name == version, Deprecated: deprecated, SunsetOn: sunset,
		})
	}
	for _, l := range languages {
		v.Languages = append(v.Languages, languageView{l.code, l.name, pathOf(version, l.code)})
	}
	for _, g := range guides {
		var text bytes.Buffer
		if err := s.templates[language].ExecuteTemplate(&text, g.name+".html", v); err != nil {
			return view{}, fmt.Errorf("make the guide %q: %w", g.title, err)
		}
		// The template has already escaped the values in the text.
		v.Guides = append(v.Guides, guideView{g.name, g.title, template.HTML(text.String())})
	}
	return v, nil
}

// The function `up` returns the relative path from the page at the given path to the root of the registry.
func up(path string) string {
	if depth := strings.Count(path, "/"); depth > 1 {
		return strings.TrimSuffix(strings.Repeat("../", depth-1), "/")
	}
	return "."
}
