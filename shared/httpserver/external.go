package httpserver

import (
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// internalPrefix starts the names of headers that only our own services may
// send.
const internalPrefix = "X-Registry-"

// SanitizeExternal removes internal headers from a request that comes from
// outside the registry. It returns the request's id: the client's X-Request-ID
// if that is safe to log, else a new one, which it sets.
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

const requestIDCharacters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_."

// isRequestID reports whether a client's request id is safe to log.
func isRequestID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, requestIDCharacters) == ""
}
