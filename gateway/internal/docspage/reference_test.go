package docspage

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

func TestReferenceOfADocument(t *testing.T) {
	text, err := os.ReadFile("testdata/openapi.json")
	expect.OK(t, err)
	got, err := newReference(text)
	expect.OK(t, err)
	id := parameter{field{Name: "id", Type: "string", Rule: "pattern ^[0-9a-f]{32}$", Description: "The asset's id.",
		Required: true}, "path"}
	refusal := func(status string) response { return response{status, "A refusal.", "Error", "type-Error"} }
	asset := object{ID: "type-Asset", Name: "Asset", Description: "An asset.", Type: "object", Fields: []field{
		{Name: "title", Type: "string", Description: "Its name.", Required: true},
		{Name: "items", Type: "list of Item", Ref: "type-Item"},
		{Name: "quantity", Type: "number (decimal)", Description: "An exact decimal."},
		{Name: "status", Type: "string", Rule: "one of draft, pending; the registry's"},
	}}
	want := Reference{
		Title: "Asset registry",
		Groups: []group{
			{Name: "Assets", Description: "Create, read and change assets.", Operations: []operation{
				{ID: "get-/assets", Method: "GET", Path: "/assets", Summary: "List assets", tag: "Assets",
					Description: "A page of the feed. See **Following the feed**.",
					Parameters: []parameter{
						{field{Name: "limit", Type: "integer", Rule: "default 100; at least 1",
							Description: "Entries of a page."}, "query"},
						{field{Name: "offset", Type: "string", Description: "Where the page starts, exclusive."}, "query"},
					},
					Responses: []response{{"200", "A page.", "Page", "type-Page"}, refusal("404")}},
				{ID: "post-/assets", Method: "POST", Path: "/assets", Summary: "Create an asset", tag: "Assets", NeedsKey: true,
					Body: &body{Type: "object", Fields: []field{{Name: "data", Type: "Asset", Ref: "type-Asset",
						Description: "An asset.", Required: true}}, Example: "{\n  \"data\": {\n    \"title\": \"Office\"\n  }\n}"},
					Responses: []response{{"201", "The asset, and its tokens.", "object", ""}, refusal("401")}},
				{ID: "get-/assets/-id-", Method: "GET", Path: "/assets/{id}", Summary: "Read an asset", tag: "Assets",
					Parameters: []parameter{id},
					Responses:  []response{{Status: "200", Description: "The asset."}, refusal("404")}},
			}},
			{Name: "Service", Description: "The registry itself.", Operations: []operation{
				{ID: "get-/me", Method: "GET", Path: "/me", Summary: "Show the caller", tag: "Service", NeedsKey: true,
					Responses: []response{{Status: "200", Description: "The caller's key and limits."}, refusal("401")}},
			}},
		},
		Types: []object{
			asset,
			{ID: "type-Error", Name: "Error", Type: "object", Fields: []field{
				{Name: "errors", Type: "list of object", Required: true}, {Name: "status", Rule: "always error", Required: true}}},
			{ID: "type-Item", Name: "Item", Type: "object", Fields: []field{{Name: "id", Type: "string"}}},
			{ID: "type-Page", Name: "Page", Type: "object", Fields: []field{
				{Name: "data", Type: "list of Asset", Ref: "type-Asset"}}},
		},
	}
	unexported := cmp.AllowUnexported(operation{}, parameter{}, response{}, body{}, group{}, object{}, field{})
	expect.NoDiff(t, cmp.Diff(want, got, unexported), "the reference differs")
}

func TestProse(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"text is escaped", `a < b & "c"`, "<p>a &lt; b &amp; &#34;c&#34;</p>\n"},
		{"code and strong text", "`a<b` is **bold**", "<p><code>a&lt;b</code> is <strong>bold</strong></p>\n"},
		{"a link", "[RFC](https://example.org/a?b=1&c=2)",
			`<p><a href="https://example.org/a?b=1&amp;c=2">RFC</a></p>` + "\n"},
		{"a link to a script", "[a](javascript:alert)", "<p>a</p>\n"},
		{"a link to another host", "[a](//evil.example)", "<p>a</p>\n"},
		{"a link with a quote", `[a](#"onclick=x)`, `<p><a href="#&#34;onclick=x">a</a></p>` + "\n"},
		{"paragraphs and a list", "a\n\n- b\n- c", "<p>a</p>\n<ul><li>b</li><li>c</li></ul>\n"},
	} {
		t.Run(c.name, func(t *testing.T) { expect.Equal(t, string(prose(c.text)), c.want, "") })
	}
}
