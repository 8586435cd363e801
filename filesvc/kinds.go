package filesvc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"asset-registry/filesvc/internal/boltstore"
	"asset-registry/filesvc/internal/mongostore"
)

// kind is a kind of store of metadata. A new kind needs a package that passes storetest, and a row in kinds.
type kind struct {
	schemes []string // the address of a store begins with one of them, and has more text after it
	form    string   // a description of the addresses, as errors show it
	// open opens a store. A store that can be reached only later calls the argument `tell` with the reason, and with nil
	// once it can be reached.
	open func(ctx context.Context, c Config, tell func(error)) (store, error)
}

const fileScheme = "file:"

var kinds = []kind{
	{[]string{fileScheme}, `"file:" and the path of a file`, openFile},
	{[]string{"mongodb://", "mongodb+srv://"}, `an address that begins with "mongodb://"`, openMongo},
}

// kind returns the kind of the store, or an error that lists the forms of addresses. The error does not quote
// the address, because it may contain a password.
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

func openFile(_ context.Context, c Config, _ func(error)) (store, error) {
	return boltstore.Open(strings.TrimPrefix(c.Store, fileScheme), c.Secrets, c.Log)
}

func openMongo(ctx context.Context, c Config, tell func(error)) (store, error) {
	return mongostore.OpenLater(ctx, c.Store, c.StoreTimeout, tell)
}
