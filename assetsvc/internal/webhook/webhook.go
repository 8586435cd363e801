// Package webhook sends the changes of the feed to addresses of brokers and administrators (docs/webhooks.md).
//
// An Endpoint has a position in the feed, not a queue. One process at a time has the Term. This process sends
// the changes after the position of each endpoint. Once the receiver has acknowledged everything up to a
// position, the process stores that position.
package webhook

import (
	"context"
	"errors"
	"time"
)

// The limits on endpoints (docs/webhooks.md, "Bounds").
const (
	MaxEndpoints = 4096 // maximum number of endpoints of all brokers and administrators together
	MaxOfBroker  = 32
)

// State is the state of an endpoint.
type State string

// The states of endpoints (docs/webhooks.md, "Data").
const (
	Unverified State = "unverified" // the challenge was not answered yet
	Active     State = "active"     // changes are sent
	Disabled   State = "disabled"   // nothing is sent; the field Reason says why
)

// Reason says why an endpoint is Disabled. It is empty in the other states.
type Reason string

// The reasons why an endpoint can be Disabled.
const (
	Paused       Reason = "paused"     // the owner has paused the endpoint
	Stopped      Reason = "stopped"    // an administrator has stopped the endpoint; only administrators can resume it
	Gone         Reason = "gone"       // the receiver has answered 410
	Failing      Reason = "failing"    // no message has succeeded for the time giveUp
	Unanswerable Reason = "unverified" // the challenge was not answered for a day
)

// Endpoint is an address to which the changes of the feed after a position are sent.
type Endpoint struct {
	ID       string
	Broker   string // the broker whose key has created the endpoint
	ByAdmin  bool   // an administrator has created the endpoint, and only administrators see it
	KeyID    string // id of the key that has created the endpoint
	URL      string
	Version  string // version of the API in which messages show assets, such as "2.5"
	Mode     string // mode of the feed: "", "test" or "_all_"
	Whole    bool   // messages have all fields of the assets
	Filters  string // which assets messages have (assetfilter.Encode); "": all
	Seal     string // the seed of the secrets, sealed (docs/webhooks.md, "Data")
	OldSeal  string // the seed before the last rotation, sealed; "": none
	OldUntil time.Time
	Created  time.Time

	// Request and Same are the fingerprint of the creation that made the endpoint, if that creation can be repeated:
	// that of its bytes and the canonical one (record.Sums). Otherwise they are "".
	Request, Same string

	// Generation counts the changes that the API has made to the endpoint.
	Generation int64
	// Saves counts how often the sender has saved progress. Put compares this number, so that a change through
	// the API does not undo progress that was saved after the endpoint was read.
	Saves int64
	Progress
}

// Progress is the part of an endpoint that the sender changes.
type Progress struct {
	Position int64 // position in the feed; the receiver has acknowledged everything up to it
	State    State
	Reason   Reason
	Verified bool // the current URL has answered a challenge

	Failures  int       // number of failures since the last success
	FailedAt  time.Time // the first failure since the last success; zero: none
	LastError string    // error of the newest attempt, for the owner: "failed", and the status; "" after a success
	Next      time.Time // no attempt before this time; zero: no wait
	Succeeded time.Time // the newest success; zero: none
}

// Term is the time during which one process may send.
type Term struct {
	Number  int64 // rises from one term to the next; a renewed term keeps its number
	Until   time.Time
	Changes int64 // how often the API has changed endpoints (Store.Put and Store.Remove)
}

// Step is the progress of one endpoint, to be stored.
type Step struct {
	ID         string
	Generation int64 // the step is stored only if the endpoint has this generation
	Progress
}

// Errors of a Store. Any other error means that the store could not answer. Then it is unknown whether a write
// has happened.
var (
	ErrNotFound = errors.New("no such webhook")
	ErrStale    = errors.New("the webhook has changed since it was read")
	ErrTermOver = errors.New("another process has the term of the sender")
	ErrFull     = errors.New("the registry has as many webhooks as it can have")
	// ErrBrokerFull is like ErrFull, but for the endpoints of one broker.
	ErrBrokerFull = errors.New("the broker has as many webhooks as it may have")
)

// Store keeps endpoints. It is safe for concurrent use. A write that returned nil is
// durable. Times are kept in UTC, to the millisecond.
type Store interface {
	// Endpoints returns at most `limit` endpoints, in the order of their ids. Each id is greater than the argument
	// `after`. If the argument `broker` is not empty, Endpoints returns only endpoints of that broker, without
	// endpoints of administrators.
	Endpoints(ctx context.Context, broker, after string, limit int) ([]Endpoint, error)
	// Endpoint returns one endpoint, or ErrNotFound.
	Endpoint(ctx context.Context, id string) (Endpoint, error)
	// Put creates or changes an endpoint for the API. It stores e with the generation e.Generation+1. If the stored
	// endpoint has another Generation or other Saves than e, Put returns ErrStale and stores nothing. For a new
	// endpoint, both numbers are 0. Put increments Term.Changes. A Put that ends in another error may have stored the
	// endpoint without this increment. So the sender reads all endpoints from time to time, even if
	// Term.Changes stays the same.
	//
	// A broker has at most MaxOfBroker endpoints, even if many processes create some at once. Endpoints of
	// administrators do not count. If a broker has this number already, Put returns ErrBrokerFull for a new
	// endpoint. There are at most MaxEndpoints in total; after that, Put returns ErrFull. When several processes
	// create endpoints at the same moment, the total may exceed this bound by the number of those endpoints.
	Put(ctx context.Context, e Endpoint) error
	// Remove removes an endpoint, or returns ErrNotFound. It increments Term.Changes.
	Remove(ctx context.Context, id string) error

	// Lead takes or renews the term for the process with the name in the argument `holder`. The last two arguments
	// are the present time and the end of the term. If another process has a term that has not ended, the second
	// result is false. A process whose term has ended gets a new number, greater than all earlier ones. A store
	// that only one process can open may end the term of an earlier process when it is opened.
	Lead(ctx context.Context, holder string, now, until time.Time) (term Term, held bool, err error)
	// Release ends the current term, so that another process can begin a term immediately. If the current term has
	// another number, Release does nothing.
	Release(ctx context.Context, term int64) error
	// Save stores the progress of endpoints in the term with this number, each endpoint separately. It does not store
	// the progress of endpoints that are gone, have another generation, or were saved in a later term. It returns the
	// ids of these endpoints. It may also return the id of an endpoint that has changed after its progress was stored.
	// If it finds that a later term has begun, it stores nothing and returns ErrTermOver.
	Save(ctx context.Context, term int64, steps []Step) (stale []string, err error)
}
