package bulk

import (
	"bytes"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestATemplateNeedsNoMapping fills in a template in each language and form, and reads it by its headings.
func TestATemplateNeedsNoMapping(t *testing.T) {
	files := folder(t)
	for _, name := range []string{"1-а.jpg", "1-б.jpg", "1.pdf"} {
		expect.OK(t, files.root.WriteFile(name, []byte("%PDF-"), 0o600))
	}
	for at, language := range Languages {
		m := mapping(t, TemplateMapping(language))
		for _, asXLSX := range []bool{false, true} {
			var to bytes.Buffer
			expect.OK(t, WriteTemplate(&to, language, asXLSX))
			got := expect.Get(OfTemplate(Source{File: bytes.NewReader(to.Bytes())}))(t)
			expect.FatalIf(t, got == nil || got.Reference != m.Reference,
				"%s: got %v, want the mapping of the template", language, got)
			_, told := check(t, Source{File: bytes.NewReader(to.Bytes()), Mapping: got}, files)
			begins(t, told, []string{`skipped: row 2, "` + examples[at] + `"`, "the file has no rows"})
			got.Skip = nil
			checked, told := check(t, Source{File: bytes.NewReader(to.Bytes()), Mapping: got}, files)
			begins(t, told, nil)
			expect.Equal(t, checked.Documents, 3, "documents")
		}
	}
	for text, isTable := range map[string]bool{
		`{"reference":"1"}`: false, "\ufeff \n{": false, "x\n": false, "": false, "Лот;x\n": true, "Lot\tx\n": true, "PK\x03\x04": true,
	} {
		got := expect.Get(OfTemplate(Source{File: strings.NewReader(text)}))(t)
		expect.Equal(t, got != nil, isTable, "%q", text)
	}
}
