package main

import (
	"context"
	"fmt"

	"asset-registry/authsvc"
	"asset-registry/deploy/registry"
	"asset-registry/shared/identity"
)

type newKey struct {
	Broker string `required:"" help:"Broker that the key belongs to."`
	Role   string `default:"broker" enum:"broker,concierge,administrator" help:"Role of the key."`
	Levels string `default:"1234" help:"Accreditation levels: digits of 1 to 4, 0 for all, t for test assets only."`
	ID     string `name:"id" required:"" help:"Id of the key in logs. It is not secret."`
}

// run creates a key, and prints it and its entry for a keys file.
func (n newKey) run() error {
	key, hash := authsvc.NewKey()
	i := identity.Identity{KeyID: n.ID, Broker: n.Broker, Role: identity.Role(n.Role), Levels: n.Levels}
	if err := authsvc.CheckKey(hash, i); err != nil {
		return err
	}
	fmt.Printf("# The key, which cannot be shown again:\n# %s\n", key)
	fmt.Printf("- id: %q\n  broker: %q\n  role: %s\n  levels: %q\n  sha256: %s\n", n.ID, n.Broker, n.Role, n.Levels, hash)
	return nil
}

type rotate struct {
	Data   string `default:"./data" help:"Data directory."`
	Finish bool   `help:"Remove the old secret, 24 hours or more after the rotation."`
}

func (r rotate) run(ctx context.Context) error {
	step := registry.RotateSecret
	if r.Finish {
		step = registry.FinishRotation
	}
	done, err := step(ctx, r.Data)
	if err != nil {
		return err
	}
	fmt.Printf("Sealed again: %d token records, %d webhooks, %d entries of the audit log.\n",
		done.Records, done.Webhooks, done.Entries)
	if r.Finish {
		fmt.Println("The old secret is removed. Keep copies of it only in the backups that need it.")
		return nil
	}
	fmt.Println("The new secret is in use, and the old one stays valid.\n" +
		"After 24 hours, stop the registry and run this command again with --finish.")
	return nil
}
