package docspage

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"regexp"
	"slices"
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
	{"webhooks", "Webhooks"},
	{"errors", "Errors"},
	{"limits", "Limits"},
	{"versions", "Versions"},
}

// documents has the names of the documents for developers.
var documents = []string{"contract", "import", "log", "data", "search", "mirrors"}

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
	Documents []string
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
		Documents: documents,
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

// operation is one method of one path.
type operation struct {
	ID           string // anchor of the operation
	Method, Path string
	Summary      string
	Description  string
	NeedsKey     bool
	Parameters   []parameter
	Body         *body // nil: none
	Responses    []response
	Deprecated   bool
	Beside       bool // the path has no version in front
	tag          string
}

// Anchor returns a link to the operation, in a type whose slashes a template does not escape.
func (o operation) Anchor() template.URL { return template.URL("#" + o.ID) }

// Variables returns the path with variables of a shell: "/assets/$ID".
func (o operation) Variables() string {
	return inBraces.ReplaceAllStringFunc(o.Path, func(name string) string {
		return "$" + strings.ToUpper(strings.Trim(name, "{}"))
	})
}

var inBraces = regexp.MustCompile(`\{[^}]+\}`)

// OwnerToken reports whether a request may carry the owner token of an asset.
func (o operation) OwnerToken() bool {
	return slices.ContainsFunc(o.Parameters, func(p parameter) bool { return p.Name == "X-Access-Token" })
}

// languages are the languages of the page, the default one first, with their own names.
var languages = []struct{ code, name string }{{"en", "English"}, {"uk", "Українською"}}

// ukrainian maps the short English texts of the page to Ukrainian. Longer texts are in the guides, and the texts
// of the script are in docs.js.
var ukrainian = map[string]string{
	"Asset registry: documentation of the API, version": "Реєстр активів: документація API, версія",
	"Asset registry":           "Реєстр активів",
	"Skip to content":          "Перейти до змісту",
	"Versions":                 "Версії",
	"Language":                 "Мова",
	"Contents":                 "Зміст",
	"Documentation of the API": "Документація API",
	"In":                       "Мовою",

	"First asset in five minutes": "Перший актив за п’ять хвилин",
	"Documents and their files":   "Документи та їхні файли",
	"Tokens and ownership":        "Токени та власність",
	"Recovery and large loads":    "Відновлення та великі завантаження",
	"States":                      "Стани",
	"Lots and the concierge":      "Лоти та консьєрж",
	"Deletion":                    "Видалення",
	"Following the feed":          "Як стежити за стрічкою",
	"Webhooks":                    "Вебхуки",
	"The documents":               "Документи",
	"Errors":                      "Помилки",
	"Limits":                      "Ліміти",

	"States of an asset": "Стани активу",
	"owner":              "власник",
	"concierge":          "консьєрж",
	"The owner takes an asset from draft to pending, and from pending to deleted. The concierge takes it from pending " +
		"to verification, to active and to complete, and from verification or active back to pending.": "Власник " +
		"переводить актив зі стану draft у pending і з pending у deleted. Консьєрж переводить його з pending у " +
		"verification, active і complete, а також із verification або active назад у pending.",

	"Reference":  "Довідник",
	"Request":    "Запит",
	"Does":       "Що робить",
	"key":        "ключ",
	"deprecated": "застаріле",
	"Operations": "Операції",
	"Types":      "Типи",
	"Parameters": "Параметри",
	"Fields":     "Поля",
	"Answers":    "Відповіді",
	"Name":       "Назва",
	"Type":       "Тип",
	"Meaning":    "Значення",
	"required":   "обов’язково",
	"Body":       "Тіло",
}

// functions returns the functions of templates in a language: the function `t` translates a text, and the function
// `en` marks an element whose text is English.
func functions(language string) template.FuncMap {
	return template.FuncMap{
		"t": func(text string) (string, error) {
			if language == "en" {
				return text, nil
			}
			if translated, ok := ukrainian[text]; ok {
				return translated, nil
			}
			return "", fmt.Errorf("there is no translation of %q", text)
		},
		"en": func() template.HTMLAttr {
			if language == "en" {
				return ""
			}
			return ` lang="en"`
		},
	}
}
