package admin

import (
	"context"
	"errors"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
)

// ErrStale is the error of a Commit that came after another change.
var ErrStale = errors.New("another change came first")

// Change is a change of one broker or one key, with its entry in the audit log. A change may also have neither a
// broker nor a key. Its entry is then about something that another service keeps.
type Change struct {
	Broker  *apikey.Broker // the broker after the change; nil: no broker changes
	Key     *apikey.Key    // the key after the change; nil: no key changes
	Remove  bool           // the change removes the broker
	NewHash string         // hash of a secret that the change adds to the key; "": none
	Entry   adminapi.Entry

	Ends bool  // the change ends a right: a store with replicas waits a moment for one of them
	Skip int64 // the number of the entry is above this one, which a lost entry has
}

// Store keeps brokers, keys, their usage and the audit log. Several processes use
// it at the same time. It is safe for concurrent use. apikey.ErrNotFound and
// ErrStale mean that nothing was done. Any other error means that the store could
// not answer, or that nobody knows whether it made a change.
type Store interface {
	Directory
	Log
	UsageReader
}

// Directory reads brokers and keys.
type Directory interface {
	// Broker returns a broker, or apikey.ErrNotFound.
	Broker(ctx context.Context, name string) (apikey.Broker, error)
	// Brokers returns up to limit brokers in the order of their names. The first one follows the name in the
	// argument `after`.
	Brokers(ctx context.Context, after string, limit int) ([]apikey.Broker, error)
	// Key returns a key, or apikey.ErrNotFound.
	Key(ctx context.Context, id string) (apikey.Key, error)
	// Keys returns up to limit keys in the order of their ids. The first one follows the id in the argument
	// after.
	Keys(ctx context.Context, after string, limit int) ([]apikey.Key, error)
	// KeysBack returns up to limit keys in the reverse order of their ids. The first one precedes the id in the
	// argument `before`. If this argument is "", the first one is the last key.
	KeysBack(ctx context.Context, before string, limit int) ([]apikey.Key, error)
}

// Log makes changes and reads the audit log.
type Log interface {
	apikey.Log
	// Commit durably makes a change and appends its entry, or does neither. It returns ErrStale if the log does not
	// end at head, or if the broker or key of the change does not exist any more. A caller must read the head before
	// anything else. Then it never overwrites a change that it has not seen. ErrAlone means that the change is done.
	Commit(ctx context.Context, head adminapi.Head, c Change) error
}

// UsageReader reads the use of keys.
type UsageReader interface {
	// Uses returns the last uses of each key, newest first. The keys of the outer map are ids of API keys. The keys of
	// the inner maps are numbers of secrets.
	Uses(ctx context.Context, ids []string) (map[string]map[int][]adminapi.Use, error)
	// Counts returns the counts of a key on the given days, except days without counts.
	Counts(ctx context.Context, id string, days []string) ([]adminapi.Day, error)
}

const page = 200 // maximum number of brokers, keys or entries that one call of the store reads

// eachKey calls the function `visit` with every key after an id, in order, until visit returns an error.
func eachKey(ctx context.Context, store keyLister, after string, visit func(apikey.Key) error) error {
	read := func(after string) ([]apikey.Key, error) { return store.Keys(ctx, after, page) }
	return audit.Pages(after, page, read, idOf, visit)
}

// eachKeyBack calls the function `visit` with every key, in reverse order, until visit returns an error.
func eachKeyBack(ctx context.Context, store Directory, visit func(apikey.Key) error) error {
	read := func(before string) ([]apikey.Key, error) { return store.KeysBack(ctx, before, page) }
	return audit.Pages("", page, read, idOf, visit)
}

func idOf(k apikey.Key) string { return k.ID }

// eachBroker calls the function `visit` with every broker after a name, in order, until visit returns an error.
func eachBroker(ctx context.Context, store brokerLister, after string, visit func(apikey.Broker) error) error {
	read := func(after string) ([]apikey.Broker, error) { return store.Brokers(ctx, after, page) }
	return audit.Pages(after, page, read, func(b apikey.Broker) string { return b.Name }, visit)
}

type keyLister interface {
	Keys(ctx context.Context, after string, limit int) ([]apikey.Key, error)
}

type brokerLister interface {
	Brokers(ctx context.Context, after string, limit int) ([]apikey.Broker, error)
}
