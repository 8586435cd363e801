package apikey

import (
	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
)

// Fixed maps the hash of a key (authapi.Hash) to its holder. Fixed keys come from
// a keys file or the sandbox and never change while the service runs.
type Fixed map[string]identity.Identity

// Sandbox returns the keys of a sandbox (docs/contract.md, "Sandbox keys"). Each key
// equals its broker's name.
func Sandbox() Fixed {
	keys := Fixed{}
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
