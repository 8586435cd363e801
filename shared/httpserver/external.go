package httpserver

import (
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// internalPrefix starts the names of headers that only our own services may send.
const internalPrefix = "X-Registry-"

// SanitizeExternal makes a request that comes from outside of the registry one that
// our services may believe: without what only they may say, and under a name,
// which it returns, that may stand in our logs.
func SanitizeExternal(r *http.Request) (id string) {
	for name := range r.Header {
		if strings.HasPrefix(name, internalPrefix) {
			delete(r.Header, name)
		}
	}
	if id = r.Header.Get(RequestIDHeader); !isRequestID(id) {
		id = uuid.NewString()
		r.Header.Set(RequestIDHeader, id)
	}
	return id
}

// isRequestID tells whether a client's name for its request may stand in our log.
func isRequestID(id string) bool {
	return id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool {
		return !strings.ContainsRune("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.", r)
	})
}
