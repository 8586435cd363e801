// Package docspage serves the documentation page of the API (docs/contract.md,
// "Documentation page"): guides, then the reference of one version.
//
// The page is HTML that can be read without scripts. A script only copies the examples, and sends them if the
// sandbox keys are valid. All files are part of the program, so the page needs no other host.
//
// Pages and files are made once, on the first request, and compressed once. Later requests only copy the result.
package docspage

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"

	"asset-registry/docs"
	"asset-registry/shared/routes"
	"asset-registry/shared/static"
)

// Root is the path of the page of the current version. All other paths of the
// site are below it.
const Root = "/docs"

// SandboxKey is the API key that the page sends in a sandbox.
const SandboxKey = "broker"

// Options configure a site.
type Options struct {
	// Document returns the OpenAPI document of a version in JSON.
	Document func(version string) []byte
	// BaseURL is the public address of the registry in examples.
	BaseURL string
	// OwnURL is the address of the listener. Without BaseURL, the examples have this address, and a script
	// replaces it by the address in the browser. If OwnURL is empty too, the examples have localAddress.
	OwnURL string
	// Limits are the rate limits that the page shows. The list may be empty.
	Limits []Limit
	// Lifecycle returns two dates of a version, such as "2027-01-31": when it becomes deprecated, and when it ends. ""
	// stands for no date. Lifecycle may be nil.
	Lifecycle func(version string) (deprecated, sunset string)
}

// Limit is a row of the table of rate limits.
type Limit struct {
	Name    string
	Counts  string
	Windows []string // "100 a second"
}

// localAddress is the address at which the programs of the registry listen by default.
const localAddress = "http://127.0.0.1:8080"

//go:embed assets examples guides templates
var embedded embed.FS

// Site is the documentation page with its files. It is safe for concurrent use.
type Site struct {
	options   Options
	templates map[string]*template.Template // the keys are codes of languages
	files     map[string]*static.File       // the keys are paths
	pages     map[string]page               // the keys are paths
}

// page makes both forms of a page: without and with the sandbox key.
type page struct {
	plain, sandbox func() (*static.File, error) // each makes the form once
}

// New returns a site. It fails only if an embedded file is faulty.
func New(o Options) (*Site, error) {
	if o.Lifecycle == nil {
		o.Lifecycle = func(string) (string, string) { return "", "" }
	}
	s := &Site{
		options: o, templates: map[string]*template.Template{}, files: map[string]*static.File{}, pages: map[string]page{},
	}
	for _, a := range assets() {
		s.files[a.path] = a.file
	}
	all, err := docs.Files.ReadDir(".")
	for _, d := range all {
		text, readErr := docs.Files.ReadFile(d.Name())
		err = errors.Join(err, readErr)
		s.files[Root+"/"+d.Name()] = static.New("text/plain; charset=utf-8", "no-cache", text)
	}
	if err != nil {
		return nil, fmt.Errorf("read the documents: %w", err)
	}
	for _, l := range languages {
		var err error
		if s.templates[l.code], err = parse(l.code); err != nil {
			return nil, fmt.Errorf("parse the documentation page: %w", err)
		}
		for _, v := range routes.Targets() {
			s.pages[pathOf(v, l.code)] = page{
				plain:   sync.OnceValues(func() (*static.File, error) { return s.render(v, l.code, false) }),
				sandbox: sync.OnceValues(func() (*static.File, error) { return s.render(v, l.code, true) }),
			}
		}
	}
	return s, nil
}

// pathOf returns the path of the page of a version in a language.
func pathOf(version, language string) string {
	path := Root
	if language != languages[0].code {
		path += "/" + language
	}
	if version != routes.Current {
		path += "/" + version
	}
	return path
}

// Pages returns the paths of the pages.
func (s *Site) Pages() []string { return sortedKeys(s.pages) }

// Files returns the paths of the documents, and of the scripts, styles and pictures of the pages. The paths of the
// latter contain the hash of the file's content.
func (s *Site) Files() []string { return sortedKeys(s.files) }

// ServePage answers with a page. If sandbox is true, the page can send its examples with the sandbox key. The
// request's path must be one of Pages.
func (s *Site) ServePage(w http.ResponseWriter, r *http.Request, sandbox bool) error {
	p := s.pages[r.URL.Path]
	form := p.plain
	if sandbox {
		form = p.sandbox
	}
	f, err := form()
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("X-Frame-Options", "DENY")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	f.ServeHTTP(w, r)
	return nil
}

// ServeFile answers with a file. The request's path must be one of Files.
func (s *Site) ServeFile(w http.ResponseWriter, r *http.Request) {
	s.files[r.URL.Path].ServeHTTP(w, r)
}

// contentSecurityPolicy lets the page load and call only its own origin. It forbids scripts and styles within
// the page, and forbids other pages to show the page in frames.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

// asset is a file and its path.
type asset struct {
	path string
	file *static.File
}

// assets returns the embedded files, made once in a process.
var assets = sync.OnceValue(func() []asset {
	var all []asset
	for _, name := range []string{"assets/docs.css", "assets/docs.js", "assets/icon.svg"} {
		text, err := embedded.ReadFile(name)
		if err != nil { // cannot happen: the list names embedded files
			panic(fmt.Sprintf("docspage: %v", err))
		}
		f := static.New(contentTypes[path.Ext(name)], forever, text)
		all = append(all, asset{fmt.Sprintf("%s/files/%s/%s", Root, f.Tag(), path.Base(name)), f})
	}
	return all
})

// forever lets a browser keep a file for ever, because the path changes with the content of the file.
const forever = "max-age=31536000, immutable"

var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// assetPath returns the path of the embedded file with a base name.
func assetPath(name string) (string, error) {
	for _, a := range assets() {
		if path.Base(a.path) == name {
			return a.path, nil
		}
	}
	return "", fmt.Errorf("there is no file %q", name)
}

// parse parses the templates of the page and its guides in a language.
func parse(language string) (*template.Template, error) {
	return template.New("").Funcs(functions(language)).Funcs(template.FuncMap{
		"asset": assetPath,
		"lower": strings.ToLower,
		"prose": prose,
	}).ParseFS(embedded, "templates/*.html", "examples/*.html", "guides/"+language+"/*.html")
}

// render makes the page of a version in a language.
func (s *Site) render(version, language string, sandbox bool) (*static.File, error) {
	v, err := s.view(version, language, sandbox)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := s.templates[language].ExecuteTemplate(&text, "page.html", v); err != nil {
		return nil, fmt.Errorf("make the documentation page of version %s: %w", version, err)
	}
	return static.New("text/html; charset=utf-8", "no-cache", text.Bytes()), nil
}

// inline matches the parts of Markdown that descriptions use within a paragraph:
// code, strong text and links.
var inline = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*|\\[([^]]+)\\]\\(([^)\\s]+)\\)")

// safeLink matches the address of a link that the page may have. For a link to any other address, the page shows
// only the text.
var safeLink = regexp.MustCompile(`^(?:https?://|#|/[^/])`)

// prose returns a description in Markdown as HTML: paragraphs, lists with "- ", code, strong text and links. Any
// other Markdown stays unchanged.
func prose(text string) template.HTML {
	var b strings.Builder
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if paragraph = strings.TrimSpace(paragraph); paragraph == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(paragraph, "- "); ok {
			b.WriteString("<ul>")
			for _, item := range strings.Split(rest, "\n- ") {
				b.WriteString("<li>" + spans(item) + "</li>")
			}
			b.WriteString("</ul>\n")
			continue
		}
		b.WriteString("<p>" + spans(paragraph) + "</p>\n")
	}
	return template.HTML(b.String())
}

// spans returns the text of a paragraph as HTML.
func spans(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range inline.FindAllStringSubmatchIndex(text, -1) {
		part := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return template.HTMLEscapeString(text[m[2*n]:m[2*n+1]])
		}
		b.WriteString(template.HTMLEscapeString(text[at:m[0]]))
		switch {
		case m[2] >= 0:
			b.WriteString("<code>" + part(1) + "</code>")
		case m[4] >= 0:
			b.WriteString("<strong>" + part(2) + "</strong>")
		case safeLink.MatchString(text[m[8]:m[9]]):
			b.WriteString(`<a href="` + part(4) + `">` + part(3) + "</a>")
		default:
			b.WriteString(part(3))
		}
		at = m[1]
	}
	b.WriteString(template.HTMLEscapeString(text[at:]))
	return b.String()
}
