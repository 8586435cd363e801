package console

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/testing/expect"
)

// translated reports a text of a source that has no Ukrainian form.
func translated(t *testing.T, text, of string) {
	t.Helper()
	if uk, known := in(ukrainian, text); !known || uk == "" {
		t.Errorf("%s: got no Ukrainian for %q", of, text)
	}
}

// TestEveryTextOfATemplateHasUkrainian also finds text that no function translates.
func TestEveryTextOfATemplateHasUkrainian(t *testing.T) {
	action := regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	named := regexp.MustCompile(`\bt "((?:[^"\\]|\\.)*)"`)
	outside := regexp.MustCompile(`(?s)<code.*?</code>|<a [^>]*hreflang.*?</a>|<!DOCTYPE html>|<[^>]*>`)
	shown := regexp.MustCompile(`\b(?:aria-label|placeholder|data-label|title|data-said)="([^"]*)"`)
	letters := regexp.MustCompile(`[A-Za-z]{2}`)
	untranslated := regexp.MustCompile(`\b(UTC|CSV|NDJSON|ark_)\b|ark_…`)
	pages := expect.Get(fs.Glob(files, "templates/*.html"))(t)
	for _, page := range pages {
		text := string(expect.Get(files.ReadFile(page))(t))
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			translated(t, found[1], page)
		}
		if strings.Contains(text, `{{define "attributes"}} id=`) {
			text = regexp.MustCompile(`\{\{define "attributes"\}\}.*`).ReplaceAllString(text, "")
		}
		text = action.ReplaceAllString(text, "")
		naked := []string{outside.ReplaceAllString(text, "")}
		for _, found := range shown.FindAllStringSubmatch(text, -1) {
			naked = append(naked, found[1])
		}
		for _, text := range naked {
			if text = untranslated.ReplaceAllString(text, ""); letters.MatchString(text) {
				t.Errorf("%s: got text outside the function t: %q", page, strings.Join(strings.Fields(text), " "))
			}
		}
	}
}

// TestEveryFaultHasUkrainian reads the faults that pages can show, and the texts of the console, from the sources.
func TestEveryFaultHasUkrainian(t *testing.T) {
	sentence := regexp.MustCompile(`^("?7"? |[A-Z]).* |^[A-Z].*[a-z]\.$`)
	faults := regexp.MustCompile(`^(New|Add|AddQuery)$`)
	verb := regexp.MustCompile(`%[-+#.\d]*[a-z]`)
	for _, of := range []string{".", "../admin", "../apikey", "../staff", "../assetclient", "../ending"} {
		for _, name := range expect.Get(filepath.Glob(of + "/*.go"))(t) {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file := expect.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
			check := func(e ast.Expr) {
				text := verb.ReplaceAllString(literal(e), "7")
				if sentence.MatchString(text) && !strings.Contains(text, "/console") && text != ofGateways {
					translated(t, text, name)
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if s, ok := n.Fun.(*ast.SelectorExpr); ok && faults.MatchString(s.Sel.Name) || fmt.Sprint(n.Fun) == "refused" {
						for _, arg := range n.Args {
							check(arg)
						}
					}
				case *ast.KeyValueExpr:
					if of == "." {
						check(n.Value)
					}
				case *ast.CompositeLit:
					for _, e := range n.Elts {
						if of == "." {
							check(e)
						}
					}
				}
				return true
			})
		}
	}
	for _, text := range acts {
		translated(t, text, "an action")
	}
	for _, text := range append(append(adminapi.States(), assetStates...), order...) {
		translated(t, text, "a state or field")
	}
	for _, l := range (keyForm{}).Levels() {
		translated(t, l.Allows, "a level")
	}
	for _, fields := range [][]string{newKeyFields, rotateFields, revokeFields, newBrokerFields, editBrokerFields, recoverFields} {
		for _, field := range fields {
			translated(t, label(field), "a field")
		}
	}
	script := string(expect.Get(os.ReadFile("assets/console.js"))(t))
	for _, set := range regexp.MustCompile(`(?:textContent = |replaceChildren\()["`+"`"+`][^$]`).FindAllString(script, -1) {
		t.Errorf("got %s in the script, want the texts of the page", set)
	}
}

// ofGateways is a fault of reports by gateways, which no page shows.
const ofGateways = "This is not a report about the use of keys."

// literal returns the text of a string literal, or of a sum of them.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	}
	return ""
}

func TestTheLanguageOfABrowser(t *testing.T) {
	for header, want := range map[string]string{
		"": english, "uk": ukrainian, "uk-UA,uk;q=0.9,en;q=0.8": ukrainian, "en-GB, uk;q=0.9": english, "pl, uk;q=0.1": ukrainian,
		"uk;q=0": english, "UK": ukrainian, "en;q=0.5,uk;q=x": english, "ru": english, strings.Repeat("pl,", 30) + "uk": english,
	} {
		for kept, chosen := range map[string]string{"": want, "en": english, "uk": ukrainian, "x": want} {
			r := &http.Request{Header: http.Header{"Accept-Language": {header}, "Cookie": {languageCookie + "=" + kept}}}
			expect.Equal(t, languageOf(r), chosen, "%.40s, and %q chosen", header, kept)
		}
	}
}

func TestValuesStayAsTheyAre(t *testing.T) {
	said, known := in(ukrainian, "Example {} <b> does not accept this sign-in any more. Sign in again.")
	expect.Equal(t, said, "Example {} <b> більше не приймає цього входу. Увійдіть ще раз.", "%t", known)
	said, _ = in(ukrainian, "Edit {}", "Edit {} {}")
	expect.Equal(t, said, "Зміна: Edit {} {}", "a title")
	texts, _ := dictionary()
	for en, uk := range texts {
		expect.Equal(t, strings.Count(uk, "{}"), strings.Count(en, "{}"), "values of %q", en)
	}
}
