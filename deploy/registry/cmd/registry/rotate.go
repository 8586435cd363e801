package main

import (
	"context"
	"fmt"

	"asset-registry/deploy/registry"
)

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
