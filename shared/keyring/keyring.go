// Package keyring holds the secrets that the services of one registry share.
//
// The first secret of a Ring is the current one. Only the current secret signs and seals; every secret verifies and
// opens. So services that have the same secrets, in any order, accept what the others have signed and sealed.
//
// A rotation takes three rolling restarts: add the new secret as the second,
// make it the first, remove the old one. Before the last restart, seal all
// stored records with the new secret.
package keyring

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

const (
	// MinLength is the least length of a secret, in bytes (RFC 7518, 3.2).
	MinLength = 32
	// Max is the maximum number of secrets that a ring may have.
	Max = 4
)

// Ring has the secrets of a registry, the current one first. Do not change it after Read.
type Ring [][]byte

// Read reads a ring from a file with one secret a line, the current one first. It
// ignores empty lines and white space around a secret.
func Read(file string) (Ring, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the secret: %w", err)
	}
	var r Ring
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			r = append(r, []byte(line))
		}
	}
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("the secret in %s: %w", file, err)
	}
	return r, nil
}

// Blank returns a ring in place of one that cannot be read, so that the other settings can be checked.
func Blank() Ring { return Ring{make([]byte, MinLength)} }

// ReadSetting works like Read. Its error names the setting, and then the ring is Blank.
func ReadSetting(file string) (Ring, error) {
	r, err := Read(file)
	if err != nil {
		return Blank(), fmt.Errorf("--secret-file: %w", err)
	}
	return r, nil
}

// Check returns an error that lists all faults of the ring. It quotes no secret.
func (r Ring) Check() error {
	var faults []error
	if len(r) == 0 {
		faults = append(faults, errors.New("there is none"))
	}
	if len(r) > Max {
		faults = append(faults, fmt.Errorf(
			"there are %d secrets; give at most %d, one a line, the current one first", len(r), Max))
	}
	for i, s := range r {
		if len(s) < MinLength {
			faults = append(faults, fmt.Errorf("secret %d has %d bytes, and needs at least %d", i+1, len(s), MinLength))
		}
		if slices.ContainsFunc(r[:i], func(before []byte) bool { return bytes.Equal(before, s) }) {
			faults = append(faults, fmt.Errorf("secret %d stands there twice", i+1))
		}
	}
	return errors.Join(faults...)
}

// Current returns the secret that signs and seals.
func (r Ring) Current() []byte { return r[0] }

// Key is a key that is derived from one of the secrets.
type Key struct {
	Name string // identifies the secret without revealing it
	Key  []byte // 32 bytes
}

// nameSize is the length of a secret's name, in bytes.
const nameSize = 4

// Derive returns a key for a purpose from each secret, in the ring's order (HKDF,
// RFC 5869).
func (r Ring) Derive(purpose string) ([]Key, error) {
	keys := make([]Key, len(r))
	for i, s := range r {
		key, err := hkdf.Key(sha256.New, s, nil, purpose, sha256.Size)
		if err != nil {
			return nil, fmt.Errorf("derive key of the %s: %w", purpose, err)
		}
		name, err := hkdf.Key(sha256.New, s, nil, "asset-registry name of a secret", nameSize)
		if err != nil {
			return nil, fmt.Errorf("derive name of a secret: %w", err)
		}
		keys[i] = Key{hex.EncodeToString(name), key}
	}
	return keys, nil
}
