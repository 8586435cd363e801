package openapi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/deploy/test/openapi/documents"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// publishedDir holds the documents of the last release. When a release publishes new documents, they are copied
// here (docs/contributing.md).
const publishedDir = "testdata/published"

// TestNoPublishedDocumentBreaks fails if a change breaks clients of a published document, unless CHANGELOG.md names
// the change.
func TestNoPublishedDocumentBreaks(t *testing.T) {
	changelog := expect.Get(os.ReadFile("../../../CHANGELOG.md"))(t)
	for _, version := range append(routes.Targets(), "admin") {
		old := expect.Get(os.ReadFile(filepath.Join(publishedDir, version+".json")))(t)
		breaks := expect.Get(Breaks(old, current(t, version)))(t)
		for _, change := range breaks {
			if !isNamed(string(changelog), change) {
				t.Errorf("version %s breaks clients: %s. Undo it, or name it in CHANGELOG.md as `%s`", version, change, change)
			}
		}
	}
}

// isNamed reports whether a changelog names a change. One entry may stand for the same change in many fields:
// "body.*" for the fields of all bodies, and "*.scheme" for further codes in any list of schemes.
func isNamed(changelog, change string) bool {
	operation, place, _ := strings.Cut(change, ": ")
	field, says, _ := strings.Cut(place, ": ")
	if strings.HasSuffix(field, ".scheme") && strings.HasPrefix(says, "may now be ") {
		return strings.Contains(changelog, "`*.scheme: may now be a further code`")
	}
	return strings.Contains(changelog, "`"+change+"`") || operation != "" && strings.HasPrefix(field, "body.") &&
		strings.Contains(changelog, "`body.*: "+says+"`")
}

// current returns the document that this source tree has for an API version.
func current(t *testing.T, version string) []byte {
	t.Helper()
	var d []byte
	var err error
	if version == "admin" {
		d, err = documents.Admin()
	} else {
		d, err = documents.Public(version)
	}
	expect.OK(t, err)
	return d
}

// small is a document with one operation.
const small = `{"paths": {"/x": {"post": {
	"parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1}}],
	"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/In"}}}},
	"responses": {"200": {"headers": {"ETag": {}}, "content": {"application/json": {"schema":
		{"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "enum": ["x", "y"]}, "l": {"type": "array", "items": {"type": "string"}}}}}}}}
}}}, "components": {"schemas": {"In": {"type": "object", "additionalProperties": false, "required": ["a"],
	"properties": {"a": {"type": ["string", "null"], "enum": ["x", "y"]}, "b": {"type": "string"}}}}}}`

func TestBreaks(t *testing.T) {
	for _, test := range []struct {
		name     string
		from, to string // the new document is the old one, with the first text replaced by the second
		want     []string
	}{
		{"nothing changes", "", "", nil},
		{"a field is added", `"b": {`, `"c": {}, "b": {`, nil},
		{"an answer gets a field", `"l": {`, `"c": {}, "l": {`, nil},
		{"an operation goes", `"post"`, `"put"`, []string{"POST /x: removed"}},
		{"a parameter goes", `"limit"`, `"max"`, []string{"POST /x: lost the parameter query limit"}},
		{"a parameter is needed", `"parameters": [`, `"parameters": [{"name": "q", "in": "query", "required": true},`,
			[]string{"POST /x: needs the parameter query q"}},
		{"a parameter is narrower", `"minimum": 1`, `"minimum": 2`,
			[]string{"POST /x: parameter query limit: has another minimum"}},
		{"a field is needed", `"required": ["a"],
	"properties": {"a": {"type": ["string", "null"]`, `"required": ["a", "b"],
	"properties": {"a": {"type": ["string", "null"]`, []string{"POST /x: body: needs b"}},
		{"a field goes", `"b": {"type": "string"}`, `"c": {}`, []string{"POST /x: body: no longer accepts b"}},
		{"null is refused", `["string", "null"]`, `["string"]`, []string{"POST /x: body.a: no longer accepts null"}},
		{"a choice goes", `"null"], "enum": ["x", "y"]`, `"null"], "enum": ["x"]`,
			[]string{"POST /x: body.a: no longer accepts y"}},
		{"an answer gets a choice", `"string", "enum": ["x", "y"]`, `"string", "enum": ["x", "y", "z"]`,
			[]string{"POST /x: 200.a: may now be z"}},
		{"an answer loses a field", `"l": {`, `"m": {`, []string{"POST /x: 200: lost l"}},
		{"a field of an answer may be missing", `"type": "object", "required": ["a"], "properties": {"a": {"type": "string"`,
			`"type": "object", "required": [], "properties": {"a": {"type": "string"`, []string{"POST /x: 200: a may be missing"}},
		{"elements change", `"items": {"type": "string"}`, `"items": {"type": "integer"}`,
			[]string{"POST /x: 200.l[]: may now be integer"}},
		{"types become choices", `"a": {"type": ["string", "null"]`, `"a": {"anyOf": [{"type": "string"}, {"type": "null"}]`, nil},
		{"a list becomes shared", `"a": {"type": ["string", "null"], "enum": ["x", "y"]}`,
			`"a": {"anyOf": [{"type": "string", "enum": ["x", "y"]}, {"type": "null"}]}`, nil},
		{"a shared list loses a choice", `"a": {"type": ["string", "null"], "enum": ["x", "y"]}`,
			`"a": {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "null"}]}`,
			[]string{"POST /x: body.a: no longer accepts y"}},
		{"a status goes", `"200"`, `"201"`, []string{"POST /x: no longer answers 200"}},
		{"a header goes", `"ETag"`, `"X"`, []string{"POST /x: 200 lost the header ETag"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !strings.Contains(small, test.from) {
				t.Fatalf("the document lacks %s", test.from)
			}
			changed := strings.Replace(small, test.from, test.to, 1)
			if !json.Valid([]byte(changed)) {
				t.Fatalf("got %s, want JSON", changed)
			}
			got := expect.Get(Breaks([]byte(small), []byte(changed)))(t)
			expect.NoDiff(t, cmp.Diff(test.want, got), "breaks")
		})
	}
}
