// Package apikey knows whose an API key is. Keys are known by their hash
// alone (authapi.Hash): no key is kept anywhere.
//
// A key that the registry makes is "ark_", 32 random letters and digits, and
// six characters of checksum, so that a secret scanner knows one when it sees
// it, and a mistyped one can be told from a revoked one. The keys of the
// sandbox are plain words, and exist only in a sandbox.
package apikey

import (
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"unicode/utf8"

	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
)

// Keys are all API keys of a registry, by hash. They do not change.
type Keys map[string]identity.Identity

// Verify returns whose key has a hash; false when nobody's.
func (k Keys) Verify(hash string) (identity.Identity, bool) {
	i, known := k[hash]
	return i, known
}

// IsID tells whether a text can be the id of a key, which stands in the names of
// records.
func IsID(id string) bool {
	return id != "" && len(id) <= 200 && utf8.ValidString(id) && !strings.ContainsAny(id, "\x00{}")
}

// ErrID is returned for a text that IsID does not take.
var ErrID = errors.New("the id of a key has 1 to 200 bytes, and neither braces nor NUL")

// Sandbox returns the keys of a sandbox (contract, section 0a). The key is also
// the broker's name.
func Sandbox() Keys {
	keys := Keys{}
	add := func(name string, role identity.Role, levels string) {
		keys[authapi.Hash(name)] = identity.Identity{Broker: name, KeyID: "sandbox-" + name, Role: role, Levels: levels}
	}
	add("broker", identity.Broker, "1234")
	for _, level := range []string{"1", "2", "3", "4"} {
		add("broker"+level, identity.Broker, level)
		add("broker"+level+"t", identity.Broker, level+"t")
	}
	add("concierge", identity.Concierge, "")
	add("administrator", identity.Administrator, "")
	return keys
}

const (
	prefix   = "ark_"
	alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"
	random   = 32 // characters: 165 bits
	checked  = 6  // characters
)

// New returns a new key.
func New() string {
	var b strings.Builder
	b.WriteString(prefix)
	for b.Len() < len(prefix)+random {
		var bits [1]byte
		rand.Read(bits[:])                                // never fails
		if n := int(bits[0]); n < 256-256%len(alphabet) { // others would favour some characters
			b.WriteByte(alphabet[n%len(alphabet)])
		}
	}
	return b.String() + checksum(b.String())
}

// ErrMistyped is returned for a text that is no key of New.
var ErrMistyped = errors.New("this is no API key: it is mistyped or cut off")

// Check tells a mistyped key without asking anybody.
func Check(key string) error {
	body := len(prefix) + random
	if len(key) != body+checked || !strings.HasPrefix(key, prefix) || checksum(key[:body]) != key[body:] {
		return ErrMistyped
	}
	return nil
}

func checksum(text string) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text)))[:checked]
}
