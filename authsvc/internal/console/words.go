package console

import (
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	english        = "en"
	ukrainian      = "uk"
	languageCookie = "registry-language"
)

//go:embed words.txt
var wordList string

// phrase is a form of English texts with values, and its Ukrainian text.
type phrase struct {
	form *regexp.Regexp
	text string
}

// dictionary returns the Ukrainian texts by the English ones, and those with values.
var dictionary = sync.OnceValues(func() (texts map[string]string, phrases []phrase) {
	texts = map[string]string{}
	for line := range strings.Lines(wordList) {
		en, uk, ok := strings.Cut(strings.TrimSpace(line), " | ")
		if !ok || line[0] == '#' {
			continue
		}
		texts[en] = uk
		if form := strings.ReplaceAll(regexp.QuoteMeta(en), `\{\}`, "(.*?)"); strings.Contains(en, "{}") {
			phrases = append(phrases, phrase{regexp.MustCompile("^(?s:" + form + ")$"), uk})
		}
	}
	return texts, phrases
})

// in returns a text in a language, with values for each {}. The result `known` is false if the text stays English.
func in(language, text string, values ...string) (said string, known bool) {
	texts, phrases := dictionary()
	uk, known := texts[text]
	if language != ukrainian {
		uk, known = text, true
	}
	for _, p := range phrases {
		if found := p.form.FindStringSubmatch(text); !known && found != nil {
			uk, known, values = p.text, true, found[1:]
		}
	}
	if !known {
		uk = text
	}
	parts := strings.SplitN(uk, "{}", len(values)+1)
	for i, value := range values[:len(parts)-1] {
		parts[0] += value + parts[i+1]
	}
	return parts[0], known
}

// wordsOf returns the functions with which templates show texts in a language.
func wordsOf(language string, now func() time.Time) template.FuncMap {
	t := func(text any, values ...any) string {
		told := make([]string, len(values))
		for i, value := range values {
			told[i] = fmt.Sprint(value)
		}
		said, _ := in(language, fmt.Sprint(text), told...)
		return said
	}
	return template.FuncMap{
		"lang": func() string { return language },
		"t":    t,
		// A text that other services made may have no Ukrainian form.
		"said": func(text string) template.HTML {
			said, known := in(language, text)
			if said = template.HTMLEscapeString(said); !known {
				said = `<span lang="en">` + said + `</span>`
			}
			return template.HTML(said)
		},
		"value": func(field, text string) string {
			if slices.Contains([]string{"blocked", "test", "levels", "role", "similar", "status", "state"}, field) {
				return t(text)
			}
			return text
		},
		"ago":    func(at time.Time) string { return t(ago(now().Sub(at))) },
		"act":    func(action string) string { return t(act(action)) },
		"label":  func(field string) string { return t(label(field)) },
		"levels": func(levels string) string { return t(toldLevels(levels)) },
	}
}

// languageOf returns the language that a user has chosen, or else the one that the browser prefers (RFC 9110, 12.5.4).
func languageOf(r *http.Request) string {
	if kept, err := r.Cookie(cookieOf(r, languageCookie, http.SameSiteLaxMode).Name); err == nil &&
		(kept.Value == english || kept.Value == ukrainian) {
		return kept.Value
	}
	best, weight := english, 0.0
	for _, part := range strings.SplitN(r.Header.Get("Accept-Language"), ",", 20) {
		name, params, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), ";")
		name, _, _ = strings.Cut(name, "-")
		q := 1.0
		if _, text, given := strings.Cut(params, "="); given {
			q, _ = strconv.ParseFloat(strings.TrimSpace(text), 64) // 0 after an error
		}
		if (name == english || name == ukrainian) && q > weight {
			best, weight = name, q
		}
	}
	return best
}

// chooseLanguage keeps a language in a cookie, and leads back to the page that has the link.
func (c *Console) chooseLanguage(w http.ResponseWriter, r *http.Request) error {
	kept := cookieOf(r, languageCookie, http.SameSiteLaxMode)
	if kept.Value, kept.MaxAge = r.PathValue("language"), 365*24*60*60; kept.Value != english && kept.Value != ukrainian {
		return errNoPage
	}
	http.SetCookie(w, kept)
	next := root
	if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
		next = inside(from.RequestURI())
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}
