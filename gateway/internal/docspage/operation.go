package docspage

import (
	"html/template"
	"regexp"
	"slices"
	"strings"
)

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
