package apikey

import (
	"encoding/json"
	"fmt"

	"asset-registry/shared/identity"
)

// firstKey is a key of a command as version 1 of the stores kept it.
type firstKey struct {
	KeyID  string        `json:"id"`
	Broker string        `json:"broker"`
	Role   identity.Role `json:"role"`
	Levels string        `json:"levels,omitempty"`
}

// DecodeFirst returns the holder of a command's key from a store of version 1.
// NewUnaudited makes a current key of it.
func DecodeFirst(text []byte) (identity.Identity, error) {
	var k firstKey
	if err := json.Unmarshal(text, &k); err != nil {
		return identity.Identity{}, fmt.Errorf("decode key of version 1: %w", err)
	}
	return identity.Identity{KeyID: k.KeyID, Broker: k.Broker, Role: k.Role, Levels: k.Levels}, nil
}

// RenameSuffix is what an upgrade appends to the id of a command's key if another
// key has that id. Version 1 kept the two apart.
const RenameSuffix = "-command"
