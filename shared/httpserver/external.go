package httpserver

import (
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// internalPrefix starts the names of headers that only our own services may
// send.
const internalPrefix = "X-Registry-"

// SanitizeExternal removes internal headers from a request that comes from outside the registry. It returns the
// request's id. This is the client's X-Request-ID if it is safe to log. Otherwise it is a new id, which
// SanitizeExternal also sets in the request.
func SanitizeExternal(r *http.Request) (id string) {
	for name := range r.Header {
		if strings.HasPrefix(name, internalPrefix) {
			delete(r.Header, name)
		}
	}
	if id = r.Header.Get(RequestIDHeader); !isRequestID(id) {
		id = newRequestID()
		r.Header[RequestIDHeader] = []string{id}
	}
	return id
}

// newRequestID returns a random UUID (RFC 9562, version 4). It does not use random bytes of the operating system. The
// id need not be secret, and these bytes would cost more than the rest of this function.
func newRequestID() string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 4<<4
	id[8] = id[8]&0x3f | 2<<6
	return id.String()
}

const requestIDCharacters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_."

// isRequestID reports whether a client's request id is safe to log.
func isRequestID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, requestIDCharacters) == ""
}
