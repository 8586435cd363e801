package httpapi

import (
	"net/http"
	"testing"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/testing/expect"
)

// TestOfficeFilesKeepTheirTypes has types of office programs, and others with xml in their names. A browser could run
// scripts in some of the others, so they lose their type.
func TestOfficeFilesKeepTheirTypes(t *testing.T) {
	const open, zip = "application/vnd.openxmlformats-officedocument.", "application/zip"
	for _, c := range []struct {
		declared, detected string
		isKept             bool
	}{
		{open + "wordprocessingml.document", zip, true},
		{open + "wordprocessingml.document", open + "wordprocessingml.document", true},
		{open + "spreadsheetml.sheet", open + "spreadsheetml.sheet", true},
		{open + "presentationml.presentation", open + "presentationml.presentation", true},
		{"application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text", true},
		{"application/vnd.oasis.opendocument.spreadsheet", zip, true},
		{"application/vnd.oasis.opendocument.presentation", zip, true},
		{open + "wordprocessingml.document", "text/html; charset=utf-8", false},
		{open + "spreadsheetml.sheet", "text/xml", false},
		{open + "wordprocessingml.document.main+xml", zip, false},
		{open + "spreadsheetml.sheet.main+xml", zip, false},
		{open + "spreadsheetml.template", zip, false},
		{"x/" + open + "spreadsheetml.sheet", zip, false},
		{"application/atom+xml", "text/plain", false}, {"application/vnd.ms-word.document.xml", zip, false},
		{"application/xhtml+xml", open + "spreadsheetml.sheet", false}, {"image/svg+xml", "image/png", false},
	} {
		h := http.Header{}
		protect(h, file.File{Declared: c.declared, Detected: c.detected, Title: "a"})
		want := map[bool]string{true: c.declared, false: plainType}[c.isKept]
		expect.Equal(t, h.Get("Content-Type"), want, "%s with the bytes of %s", c.declared, c.detected)
		expect.Equal(t, h.Get("Content-Disposition"), `attachment; filename="a"; filename*=UTF-8''a`, "%s", c.declared)
	}
}
