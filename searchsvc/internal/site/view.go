package site

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
	"asset-registry/shared/static"
)

//go:embed templates assets
var embedded embed.FS

// Root is the beginning of the paths of style sheets, scripts and pictures.
const Root = "/site/"

// files returns the embedded files; the keys are their paths. It makes them once in a process. If the content of a
// file changes, its path changes too, so browsers may cache files for a year.
var files = sync.OnceValue(func() map[string]*static.File {
	all := map[string]*static.File{}
	for name, contentType := range map[string]string{
		"site.css": "text/css; charset=utf-8", "proof.js": "text/javascript; charset=utf-8",
		"suggest.js": "text/javascript; charset=utf-8", "asset.js": "text/javascript; charset=utf-8",
		"pictures.js": "text/javascript; charset=utf-8",
		"icon.svg":    "image/svg+xml",
	} {
		content, err := embedded.ReadFile("assets/" + name)
		if err != nil { // cannot happen: all files of the list are embedded
			panic(fmt.Sprintf("site: %v", err))
		}
		if path.Ext(name) != ".svg" {
			content = lean(content, path.Ext(name))
		}
		f := static.New(contentType, "max-age=31536000, immutable", content)
		all[Root+f.Tag()+"/"+name] = f
	}
	return all
})

// signs matches the signs of a style sheet, with the blanks around them. Blanks before a colon mean something.
var signs = regexp.MustCompile(`\s*([{};,])\s*|(:)\s+`)

// lean returns a script or a style sheet without indentation, blank lines and lines of comments. In a style
// sheet, it also removes the blanks around signs.
func lean(source []byte, kind string) []byte {
	var kept []string
	for line := range strings.Lines(string(source)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			kept = append(kept, line)
		}
	}
	if kind == ".css" {
		css := signs.ReplaceAll([]byte(strings.Join(kept, "\n")), []byte("$1$2"))
		return bytes.ReplaceAll(css, []byte(";}"), []byte("}"))
	}
	return []byte(strings.Join(kept, "\n"))
}

// filePath returns the path of the embedded file with a name.
func filePath(name string) (string, error) {
	for at := range files() {
		if path.Base(at) == name {
			return at, nil
		}
	}
	return "", fmt.Errorf("there is no file %q", name)
}

// views has the templates of all pages, by language and name.
type views map[Lang]map[string]*template.Template

// pages are the names of the templates of pages.
var pages = []string{"search", "asset", "changes", "statistics", "about", "data", "problem"}

func parseViews() (views, error) {
	all := views{}
	for _, l := range Langs() {
		base := template.New("").Funcs(functions(l))
		base, err := base.ParseFS(embedded, "templates/base.html", "templates/parts.html")
		if err != nil {
			return nil, fmt.Errorf("parse the templates of the site: %w", err)
		}
		all[l] = map[string]*template.Template{}
		for _, name := range pages {
			page, err := base.Clone()
			if err == nil {
				page, err = page.ParseFS(embedded, "templates/"+name+".html")
			}
			if err != nil {
				return nil, fmt.Errorf("parse the templates of the site: %w", err)
			}
			all[l][name] = page
		}
	}
	return all, nil
}

// functions are the functions that templates can call.
func functions(l Lang) template.FuncMap {
	return template.FuncMap{
		"t": func(name string, args ...any) (string, error) {
			t, known := texts[name]
			if !known {
				return "", fmt.Errorf("there is no text %q", name)
			}
			if len(args) == 0 {
				return t.in(l), nil
			}
			return fmt.Sprintf(t.in(l), args...), nil
		},
		"flat":    flat,
		"file":    filePath,
		"count":   func(n int64) string { return count(l, n) },
		"counted": func(name string, n int64) string { return counted(l, name, n) },
		"left":    func(of, without int) int64 { return int64(of - without) },
		"moment":  func(at time.Time) string { return moment(l, at) },
		"second":  func(at time.Time) string { return second(l, at) },
		"machine": func(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) },
		"lasted":  func(from, until time.Time) string { return lasted(l, until.Sub(from)) },
		"word":    func(path string, value any) string { return word(l, path, fmt.Sprint(value)) },
		"label":   func(name string) string { return label(l, name) },
		"link":    func(rest string) string { return "/" + string(l) + rest },
		"asset":   func(id string) string { return "/" + string(l) + "/assets/" + url.PathEscape(id) },
	}
}

// flat removes the characters that change the direction of text. It is for places where no element is allowed,
// such as the title of a page. In other places, <bdi> limits their effect to the text itself.
func flat(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)
}

// view is the data of a page.
type view struct {
	Lang    Lang
	Title   string
	About   string // a sentence for search engines
	Section string // name of the menu entry that is marked
	Base    string // public address of the registry
	Rest    string // path and query after the language
	Kept    string // rest of the query, for links to other languages but not for search engines
	NoIndex bool   // search engines must not list the page
	Feed    string // path and query of an Atom feed, after the language; "": no feed
	Scripts []string
	Image   string // address of a picture for previews of links; "": no picture
	Linked  any    // JSON-LD; nil: the page has none
	State   asOf
	Body    any
}

// asOf says which state of the registry the search has.
type asOf struct {
	At     time.Time
	Assets int64
}

// Canonical returns the address of the page for search engines.
func (v view) Canonical() string { return v.In(v.Lang) }

// In returns the whole address of the page in a language.
func (v view) In(l Lang) string { return v.Base + "/" + string(l) + v.Rest }

// Path returns the path of the page in a language.
func (v view) Path(l Lang) string { return "/" + string(l) + v.Rest + v.Kept }

// Langs returns every language.
func (v view) Langs() []Lang { return Langs() }

// view returns the data of a page with a title.
func (s *Site) view(r request, title string, body any) view {
	rest := "/"
	for _, l := range Langs() {
		if after, cut := strings.CutPrefix(r.URL.Path, "/"+string(l)); cut && strings.HasPrefix(after, "/") {
			rest = after
		}
	}
	state := s.config.Searcher.State()
	return view{
		Lang: r.lang, Title: title, Base: r.base, Rest: (&url.URL{Path: rest}).EscapedPath(), Body: body,
		State: asOf{timeOf(state.Position.Offset), state.Assets},
	}
}

// addQuery adds the query of a search to the path of the page. If the query is too long, the address for search
// engines is the path alone.
func (v *view) addQuery(path, query string) {
	if v.Rest = repeated(path, query); v.Rest == "" {
		v.Rest, v.Kept = path, query
	}
}

// show makes a page from a template and answers with it.
func (s *Site) show(w http.ResponseWriter, r request, status int, name string, v view) error {
	var page bytes.Buffer
	if err := s.views[r.lang][name].ExecuteTemplate(&page, "page", v); err != nil {
		return fmt.Errorf("make the page %s: %w", name, err)
	}
	w.Header().Set("Content-Language", string(r.lang))
	return s.send(w, r, status, "text/html; charset=utf-8", page.Bytes())
}

// send ends the turns of a page and answers with it.
func (s *Site) send(w http.ResponseWriter, r request, status int, contentType string, page []byte) error {
	r.end()
	return Send(w, r.Request, s.config.Answers, status, contentType, page)
}

// Send sends an answer. One with status 200 gets an entity tag, or is 304 if the client already has it. All answers
// that are being sent share a budget of bytes. When the budget gets scarce, a client that reads too slowly loses its
// connection.
func Send(w http.ResponseWriter, r *http.Request, answers *memory.InFlight, status int, contentType string,
	body []byte) error {
	h, sender := w.Header(), httpserver.NewSender(w, httpserver.DefaultPace)
	if status == http.StatusOK { // a page about an error is small, so it needs no budget
		sum := sha256.Sum256(body)
		tag := `"` + hex.EncodeToString(sum[:12]) + `"`
		kept, release, ok := answers.Keep(r.Header.Get(httpserver.CallerHeader), sender, body)
		if !ok {
			return Busy()
		}
		defer release()
		h.Set("ETag", tag)
		h.Set("Cache-Control", "no-cache")
		if httpserver.HasTag(r.Header["If-None-Match"], tag) {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		body = kept
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_ = sender.SendAll(r.Context(), body, answers.IsCrowded) // the client may have left
	}
	return nil
}
