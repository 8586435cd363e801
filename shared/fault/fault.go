// Package fault names what can go wrong in terms a caller can act on. A fault
// has a kind, which callers branch on, and the details that the error body of
// the interface document (section Errors) shows. It knows nothing of HTTP:
// package faulthttp does the translation, in one place.
//
// An error that is no fault is internal: its text is for the log and never
// leaves the process.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind says what a caller can do about a fault.
type Kind int

// The kinds, one for each answer a caller can act on differently.
const (
	Internal         Kind = iota // a defect of ours; the caller can do nothing
	Invalid                      // the request is malformed or breaks a rule of the data
	Unauthorized                 // no valid API key
	Forbidden                    // a valid key, but this is not allowed to it
	NotFound                     // no such path or object
	Conflict                     // others changed the same object meanwhile, again and again
	Precondition                 // a condition that the caller named does not hold
	TooLarge                     // the body is over the limit
	UnsupportedMedia             // the Content-Type is not accepted
	TooMany                      // a rate limit is reached
	Unavailable                  // something this needs is down; the same request may work later
)

// Where in a request a fault lies: the values of a detail's location (interface
// document, Errors; contract, decision 1).
const (
	Header = "header"
	Body   = "body"
	URL    = "url"
	Query  = "querystring"
)

// Detail is one error object of the error body.
type Detail struct {
	Location    string `json:"location"`    // Header, Body, URL or Query
	Name        string `json:"name"`        // header, parameter, or dotted path inside data
	Description string `json:"description"` // one sentence a person can act on
}

// Error is a fault with its details, at least one.
type Error struct {
	Kind       Kind
	Details    []Detail
	RetryAfter time.Duration // with TooMany and Unavailable; 0 leaves it to the edge
}

// New returns a fault with one detail; its description is formatted as by fmt.Sprintf.
func New(kind Kind, location, name, format string, args ...any) *Error {
	return &Error{Kind: kind, Details: []Detail{{location, name, fmt.Sprintf(format, args...)}}}
}

// Error lists the details, for logs.
func (e *Error) Error() string {
	parts := make([]string, len(e.Details))
	for i, d := range e.Details {
		parts[i] = d.Location + "/" + d.Name + ": " + d.Description
	}
	return strings.Join(parts, "; ")
}

// KindOf returns the kind of the fault in err's chain, Internal when there is none.
func KindOf(err error) Kind {
	if f, ok := errors.AsType[*Error](err); ok {
		return f.Kind
	}
	return Internal
}
