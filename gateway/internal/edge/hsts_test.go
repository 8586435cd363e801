package edge

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestHSTSIsASetting asks by HTTP and by HTTPS. Only a registry whose operator says so tells browsers to use HTTPS only,
// and never for other hosts.
// Promises: hsts
func TestHSTSIsASetting(t *testing.T) {
	for _, c := range []struct {
		hsts        time.Duration
		secure, tls bool
		want        string
	}{
		{0, true, true, ""}, {0, false, true, ""}, {time.Hour, false, false, ""},
		{time.Hour, false, true, "max-age=3600"}, {365 * 24 * time.Hour, true, false, "max-age=31536000"},
	} {
		h, err := New(http.NotFoundHandler(), Config{HSTS: c.hsts, Secure: c.secure})
		expect.OK(t, err)
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
			r := httptest.NewRequest(method, "/api/2.5/assets", nil)
			r.Header.Set("Origin", "https://other.example")
			if c.tls {
				r.TLS = &tls.ConnectionState{}
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			expect.Equal(t, w.Header().Get("Strict-Transport-Security"), c.want, "%s with %+v", method, c)
		}
	}
}
