package config

import (
	"fmt"
	"os"
	"strings"
	"time"

	"asset-registry/shared/identity"
)

// Secret reads the secret that the services of one registry share from a file.
// White space around it does not count. It fails on a file that cannot be read
// and on a secret that is too short to sign identities with.
func Secret(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the secret: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < identity.MinSecret {
		return nil, fmt.Errorf("the secret in %s has %d bytes, and needs at least %d", file, len(secret), identity.MinSecret)
	}
	return []byte(secret), nil
}

// Zone returns the constant offset that text names, "+02:00" say. Zones with
// summer time are no offsets: at its end the order of printed times would not
// be the order of times (contract, decision 15).
func Zone(text string) (*time.Location, error) {
	t, err := time.Parse("-07:00", text)
	if err != nil {
		return nil, fmt.Errorf("zone %q is no offset such as +02:00", text)
	}
	_, seconds := t.Zone()
	if seconds == 0 {
		return time.UTC, nil
	}
	return time.FixedZone(text, seconds), nil
}
