// Package apikey finds the API key of a request, verifies it through a cache,
// and reports the use of keys to authsvc (docs/contract.md, "API keys").
package apikey

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/keyring"
)

// maxHeader is the maximum number of bytes of an Authorization header that is parsed.
const maxHeader = 1024

// Hash returns the hash of the API key in the Authorization header. For a
// missing or malformed header it returns a fault of kind Unauthorized that says
// what is wrong.
func Hash(h http.Header) (string, error) {
	key, err := parse(h)
	if err != nil {
		return "", err
	}
	return authapi.Hash(key), nil
}

// Seeds returns one seed for each of the registry's secrets, in hex, with commas between them. A seed is derived
// from the API key, a name that the client chose, and the secret. Nobody can calculate a seed without all three.
// Seeds and Hash return the same errors.
func Seeds(h http.Header, name string, secrets keyring.Ring) (string, error) {
	key, err := parse(h)
	if err != nil {
		return "", err
	}
	seeds := make([]string, len(secrets))
	for i, s := range secrets {
		own, err := hkdf.Key(sha256.New, []byte(key), s, "asset-registry idempotency", sha256.Size)
		if err != nil {
			return "", fmt.Errorf("derive seed: %w", err)
		}
		mac := hmac.New(sha256.New, own)
		mac.Write([]byte(name))
		seeds[i] = hex.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(seeds, ","), nil
}

// parse returns the API key of a request: the user name of Basic authentication
// (RFC 7617), with any password, or a Bearer token.
func parse(h http.Header) (string, error) {
	values := h.Values("Authorization")
	switch {
	case len(values) == 0:
		return "", refuse("An API key is needed: " +
			"send it as the user name of HTTP Basic authentication, with an empty password.")
	case len(values) > 1:
		return "", refuse("The header is sent more than once.")
	case len(values[0]) > maxHeader:
		return "", refuse("The header is too long for any API key.")
	}
	scheme, credentials, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	credentials = strings.TrimSpace(credentials)
	switch strings.ToLower(scheme) {
	case "basic":
		text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(credentials, "="))
		if err != nil {
			return "", refuse("The text after Basic is not Base64.")
		}
		credentials, _, _ = strings.Cut(string(text), ":")
	case "bearer":
	default:
		return "", refuse("The scheme must be Basic or Bearer.")
	}
	if credentials == "" {
		return "", refuse("The API key is empty.")
	}
	return credentials, nil
}

func refuse(description string) error {
	return fault.New(fault.Unauthorized, fault.Header, "Authorization", "%s", description)
}
