package asset

import (
	"testing"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/testing/expect"
)

// TestThumbnails reads single documents. Only an illustration whose file is a picture of this registry must have
// addresses of small pictures.
// Promises: thumbnails
func TestThumbnails(t *testing.T) {
	documents := parts[2]
	ours := record.Object{
		{Name: "documentType", Value: "illustration"}, {Name: "format", Value: "image/webp"},
		{Name: "url", Value: "https://registry.example/get/1"}, {Name: sha256Field, Value: "b"},
		{Name: previousVersions, Value: record.List{}},
	}
	const want = `[{"url":"https://registry.example/get/1/320","side":320},{"url":"https://registry.example/get/1/1200","side":1200}]`
	for _, c := range []struct {
		name     string
		version  Version
		document record.Object
		want     string
	}{
		{"an illustration", "2.5", ours, want},
		{"in version 2.4", "2.4", ours, ""},
		{"of another type", "2.5", ours.With("documentType", "notice"), ""},
		{"of another format", "2.5", ours.With("format", "application/pdf"), ""},
		{"without a format", "2.5", ours.Without("format"), ""},
		{"of another server, or without bytes", "2.5", ours.Without(sha256Field), ""},
		{"in a list or an answer to a write", "2.5", ours.Without(previousVersions), ""},
	} {
		got := ""
		if value, there := NewView(c.version).Part(documents, c.document).Lookup(thumbnails); there {
			got = string(record.Append(nil, value))
		}
		expect.Equal(t, got, c.want, "%s", c.name)
	}
	if got := NewView("2.5").Part(documents, nil); got != nil {
		t.Errorf("a removed document: got %v, want none", got)
	}
}
