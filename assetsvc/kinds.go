package assetsvc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/mongostore"
)

// kind is a kind of store. To add a kind, write a package that passes storetest, and add a row to the list `kinds`.
type kind struct {
	schemes   []string // an address of such a store has one of these prefixes, then more text
	form      string   // form of a store's address, as error messages show it
	announces bool     // the store calls Config.Changing before each write
	open      func(context.Context, Config) (store, error)
}

const fileScheme = "file:"

var kinds = []kind{
	{[]string{fileScheme}, `"file:" and the path of a file`, true, openFile},
	{[]string{"mongodb://", "mongodb+srv://"}, `an address that begins with "mongodb://"`, false, openMongo},
}

// kind returns the kind of the store, or an error that lists the accepted forms of an address. The error does not
// contain the address itself, because the address may contain a password.
func (c Config) kind() (kind, error) {
	var forms []string
	for _, k := range kinds {
		if slices.ContainsFunc(k.schemes, func(scheme string) bool {
			return strings.HasPrefix(c.Store, scheme) && c.Store != scheme
		}) {
			return k, nil
		}
		forms = append(forms, k.form)
	}
	return kind{}, fmt.Errorf("--store must be %s", strings.Join(forms, ", or "))
}

func (c Config) openStore(ctx context.Context) (store, error) {
	if c.Mirror != nil {
		return c.Mirror.open(c.Log)
	}
	k, err := c.kind()
	if err != nil {
		return nil, err
	}
	return k.open(ctx, c)
}

func openFile(_ context.Context, c Config) (store, error) {
	return boltstore.Open(strings.TrimPrefix(c.Store, fileScheme), boltstore.Options{
		Now: c.Now, Meter: c.Telemetry.Meter(), Secrets: c.Secrets, Log: c.Log, Changing: c.Changing,
		Owner: ownerOf,
	})
}

func openMongo(ctx context.Context, c Config) (store, error) {
	return mongostore.Open(ctx, c.Store, mongostore.Options{
		Now: c.Now, Log: c.Log, Timeout: c.StoreTimeout, Lease: c.StoreLease, Meter: c.Telemetry.Meter(),
		FreshReads: c.FreshReads, Owner: ownerOf, Others: c.clocks.Others,
	})
}

// The types of Describe and Steps.
type (
	// Description describes one type of objects.
	Description = asset.Description
	// Field describes one field of an object.
	Field = asset.FieldDescription
	// Form describes plain values.
	Form = asset.Form
	// Step is one step between two states of an asset.
	Step = asset.Step
	// Status is a state of an asset.
	Status = asset.Status
	// Role is the role of a caller for an asset.
	Role = asset.Role
)

// Describe returns the description of every type of objects that clients send
// (docs/contract.md, "Asset" to "Related process"). The first describes the asset itself.
func Describe() []Description { return asset.Describe() }

// Statuses returns the states in the order of an asset's life.
func Statuses() []Status { return asset.Statuses }

// Steps returns every step between two states (docs/contract.md, "States").
func Steps() []Step { return asset.Steps() }
