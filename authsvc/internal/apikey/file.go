package apikey

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"asset-registry/shared/config"
	"asset-registry/shared/errs"
	"asset-registry/shared/identity"
)

// entry is one key of a keys file.
type entry struct {
	ID     string        `yaml:"id"`     // names the key in logs
	Broker string        `yaml:"broker"` // owner of the key
	Role   identity.Role `yaml:"role"`   // broker, concierge or administrator
	Levels string        `yaml:"levels"` // accreditation levels, as "1234"
	SHA256 string        `yaml:"sha256"` // hash of the key, 64 hex characters
}

// ReadFile returns the keys of a YAML file. The error lists every fault of the file. A field with an unknown
// name is a fault.
func ReadFile(path string) (Fixed, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	defer file.Close()
	keys, err := read(file)
	return keys, errs.In(err, "keys file %s", path)
}

func read(r io.Reader) (Fixed, error) {
	var entries []entry
	if err := config.ReadYAML(r, &entries); err != nil {
		return nil, err
	}
	keys, ids := Fixed{}, map[string]bool{}
	var faults []error
	for i, e := range entries {
		hash := strings.ToLower(e.SHA256)
		if err := e.check(); err != nil {
			faults = append(faults, fmt.Errorf("key %d: %w", i+1, err))
		}
		if _, twice := keys[hash]; twice || ids[e.ID] {
			faults = append(faults, fmt.Errorf("key %d: the file has the same key or id before", i+1))
		}
		ids[e.ID] = true
		keys[hash] = identity.Identity{Broker: e.Broker, KeyID: e.ID, Role: e.Role, Levels: e.Levels}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return keys, nil
}

// CheckEntry returns everything wrong with a new key. It does not allow a level to be named twice; in a keys
// file this is allowed.
func CheckEntry(hash string, holder identity.Identity) error {
	e := entry{ID: holder.KeyID, Broker: holder.Broker, Role: holder.Role, Levels: holder.Levels, SHA256: hash}
	return errors.Join(e.check(),
		errs.If(isRepeating(holder.Levels), "levels %q must name each level once", holder.Levels))
}

func (e entry) check() error {
	badID := errs.If(e.ID == "", "id is missing")
	if badID == nil && !IsID(e.ID) {
		badID = ErrID
	}
	isKnown := slices.Contains([]identity.Role{identity.Broker, identity.Concierge, identity.Administrator}, e.Role)
	sum, badSum := hex.DecodeString(e.SHA256)
	return errors.Join(badID,
		errs.If(e.Broker == "", "broker is missing"),
		errs.If(!isKnown, "role %q must be broker, concierge or administrator", e.Role),
		errs.If(strings.Trim(e.Levels, "01234t") != "", "levels %q must consist of 0, 1, 2, 3, 4 and t", e.Levels),
		errs.If(badSum != nil || len(sum) != 32, "sha256 must have 64 hex characters"),
	)
}
