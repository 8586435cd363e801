// Package webhook sends the changes of the feed to addresses of brokers and
// administrators (docs/webhooks.md).
//
// An Endpoint is a position in the feed, not a queue. One process at a time, which has
// the Term, sends what comes after the positions, and stores a position once the receiver
// has acknowledged everything up to it.
package webhook

import (
	"context"
	"errors"
	"time"
)

// Bounds of endpoints (docs/webhooks.md, "Bounds").
const (
	MaxEndpoints = 4096 // of all brokers and administrators together
	MaxOfBroker  = 32
)

// State is the state of an endpoint.
type State string

// The states of endpoints (docs/webhooks.md, "Data").
const (
	Unverified State = "unverified" // the challenge was not answered yet
	Active     State = "active"     // changes are sent
	Disabled   State = "disabled"   // nothing is sent, for a Reason
)

// Reason says why an endpoint is Disabled. It is empty in the other states.
type Reason string

// The reasons.
const (
	Paused       Reason = "paused"     // its owner wants it
	Stopped      Reason = "stopped"    // an administrator wants it, and only one resumes it
	Gone         Reason = "gone"       // the receiver has answered 410
	Failing      Reason = "failing"    // all messages have failed for GiveUp
	Unanswerable Reason = "unverified" // the challenge was not answered for a day
)

// Endpoint is an address that gets the changes of the feed after a position.
type Endpoint struct {
	ID       string
	Broker   string // whose key has made it
	ByAdmin  bool   // an administrator has made it, and only administrators see it
	KeyID    string // the key that has made it
	URL      string
	Version  string // of the API, which the entries of messages have: "2.5"
	Mode     string // of the feed: "", "test" or "_all_"
	Whole    bool   // messages have whole assets
	Filters  string // of the assets that messages have (assetfilter.Encode); "": none
	Seal     string // the sealed seed of the secrets (docs/webhooks.md, "Data")
	OldSeal  string // the seed before the last rotation; "": none
	OldUntil time.Time
	Created  time.Time

	// Request is the fingerprint of the creation if it is repeatable, else "".
	Request string

	// Generation counts the changes that the API has made to the endpoint.
	Generation int64
	// Saves counts the progress that the sender has saved. Put uses it, so that a change
	// does not undo the progress that was saved since the endpoint was read.
	Saves int64
	Progress
}

// Progress is what the sender changes of an endpoint.
type Progress struct {
	Position int64 // of the feed; the receiver has acknowledged everything up to here
	State    State
	Reason   Reason
	Verified bool // the challenge was answered once for this URL

	Failures  int       // since the last success
	FailedAt  time.Time // the first failure since the last success; zero: none
	LastError string    // of the newest attempt, for the owner: "failed", and the status; "" after a success
	Next      time.Time // no attempt before here; zero: at once
	Succeeded time.Time // the newest success; zero: none
}

// Term is the time for which one process may send.
type Term struct {
	Number  int64 // counts the terms; a renewed term keeps its number
	Until   time.Time
	Changes int64 // how often the API has changed endpoints (Store.Put and Store.Remove)
}

// Step is the progress of one endpoint, to be stored.
type Step struct {
	ID         string
	Generation int64 // the endpoint must have this one
	Progress
}

// Errors of a Store. Any other error means that the store could not answer; the write may
// have happened or not.
var (
	ErrNotFound = errors.New("no such webhook")
	ErrStale    = errors.New("the webhook has changed since it was read")
	ErrTermOver = errors.New("another process has the term of the sender")
	ErrFull     = errors.New("the registry has as many webhooks as it can have")
	// ErrBrokerFull is ErrFull for one broker.
	ErrBrokerFull = errors.New("the broker has as many webhooks as it may have")
)

// Store keeps endpoints. It is safe for concurrent use. A write that returned nil is
// durable. Times are kept in UTC, to the millisecond.
type Store interface {
	// Endpoints returns up to limit endpoints with ids after an id, in the order of ids;
	// those of one broker, without the ones of administrators, if broker is not empty.
	Endpoints(ctx context.Context, broker, after string, limit int) ([]Endpoint, error)
	// Endpoint returns one endpoint, or ErrNotFound.
	Endpoint(ctx context.Context, id string) (Endpoint, error)
	// Put stores an endpoint with the generation e.Generation+1, if the stored one has
	// e.Generation and e.Saves; a new endpoint has 0 for both. Otherwise it returns
	// ErrStale. It is how the API makes and changes endpoints, and increments Term.Changes.
	// A Put that ends in another error may have stored the endpoint without the increment,
	// so the sender reads all endpoints now and then, whatever the count is.
	//
	// A broker has at most MaxOfBroker endpoints besides those of administrators, however
	// many processes create some at once. One more gets ErrBrokerFull. There are at most
	// MaxEndpoints in all, and ErrFull for one more; processes that create some at the same
	// moment may exceed this bound by as many.
	Put(ctx context.Context, e Endpoint) error
	// Remove removes an endpoint, or returns ErrNotFound. It increments Term.Changes.
	Remove(ctx context.Context, id string) error

	// Lead takes the term, or renews it, for the process named holder until a time. held
	// is false if another process has it now, that is until after now. A process whose
	// term has ended gets a new number, above all before. A store that only one process
	// can open may end the term of the process before when it is opened.
	Lead(ctx context.Context, holder string, now, until time.Time) (term Term, held bool, err error)
	// Release ends the term if it has this number, so that another process need not wait.
	Release(ctx context.Context, term int64) error
	// Save stores the progress of endpoints in the term with this number, each endpoint by
	// itself. It leaves out those that are gone, have another generation, or were saved in
	// a later term, and returns their ids; it may return the id of one that has changed
	// since. It returns ErrTermOver and stores nothing if it finds that a later term has
	// begun.
	Save(ctx context.Context, term int64, steps []Step) (stale []string, err error)
}
