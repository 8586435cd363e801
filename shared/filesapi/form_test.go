package filesapi

import (
	"net/http"
	"testing"
)

func TestFormBoundary(t *testing.T) {
	for _, c := range []struct {
		sent, boundary string
		isForm         bool
	}{
		{"multipart/form-data; boundary=b", "b", true},
		{`Multipart/Form-Data; charset=utf-8; BOUNDARY="a b"`, "a b", true},
		{"multipart/form-data", "", false},
		{"multipart/form-data; boundary=", "", false},
		{"multipart/mixed; boundary=b", "b", false},
		{"application/json", "", false},
		{"multipart/form-data; boundary", "", false},
		{"", "", false},
	} {
		boundary, isForm := FormBoundary(http.Header{"Content-Type": {c.sent}})
		if isForm != c.isForm || isForm && boundary != c.boundary {
			t.Errorf("%q: got %q, %t, want %q, %t", c.sent, boundary, isForm, c.boundary, c.isForm)
		}
	}
}
