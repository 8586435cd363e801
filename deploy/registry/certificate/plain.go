package certificate

import (
	"net/http"
	"net/url"
	"strings"
	"sync"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
)

// answers has the answers to challenges that the authority may ask for now, by path.
type answers struct {
	mu     sync.Mutex
	byPath map[string]string
}

func (a *answers) add(path, answer string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byPath == nil {
		a.byPath = map[string]string{}
	}
	a.byPath[path] = answer
}

func (a *answers) remove(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byPath, path)
}

func (a *answers) get(path string) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, known := a.byPath[path]
	return answer, known
}

// challenges is the prefix of the paths at which an authority asks for answers (RFC 8555, section 8.3).
const challenges = "/.well-known/acme-challenge/"

// Plain returns the handler for plain HTTP. It answers challenges, and redirects other GET and HEAD requests to the
// same path on the host of the base URL. It reads no body and no file.
func (m *Manager) Plain(baseURL string) http.Handler {
	base := baseURL
	if u, err := url.Parse(baseURL); err == nil {
		base = u.Scheme + "://" + u.Host
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch answer, known := m.answers.get(r.URL.Path); {
		case known && reads:
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = w.Write([]byte(answer)) // an error only means that the authority has left
		case strings.HasPrefix(r.URL.Path, challenges):
			faulthttp.Write(w, fault.New(fault.NotFound, fault.URL, "challenge", "No such challenge is under way."))
		case reads:
			w.Header().Set("Location", base+target(r.URL))
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusMovedPermanently)
		default: // a broker may have sent its key in clear text; a redirect would hide this mistake
			w.Header().Set("Connection", "close")
			faulthttp.Write(w, fault.New(fault.Forbidden, fault.URL, "scheme",
				"Only HTTPS is understood here: use %s. A key that was sent by HTTP should be rotated.", base))
		}
	})
}

// target returns the path and the query of a request. If the path does not begin with a slash, it returns "/",
// because the path would otherwise become a part of the host in the redirect.
func target(u *url.URL) string {
	path := u.EscapedPath()
	if !strings.HasPrefix(path, "/") {
		return "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path
}
