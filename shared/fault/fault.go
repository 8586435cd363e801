// Package fault has errors that a caller can act on. A fault has a kind, which
// callers switch on, and details, which clients see in the error body
// (docs/contract.md, "Errors"). The package knows nothing about HTTP; package
// faulthttp turns faults into answers.
//
// Every other error is internal: its text goes to the log and never leaves the
// process.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind tells a caller what to do about a fault.
type Kind int

// The kinds of faults.
const (
	Internal         Kind = iota // an error of the service; the caller can do nothing
	Invalid                      // the request is malformed or breaks a rule of the data
	Unauthorized                 // there is no valid API key
	Forbidden                    // the key is valid, but does not permit this
	NotFound                     // there is no such path or object
	Conflict                     // other requests kept changing the same object
	Precondition                 // a condition of the request does not hold
	TooLarge                     // the body is over the limit
	UnsupportedMedia             // the Content-Type is not accepted
	Unsatisfiable                // the object does not have the asked range of bytes
	TooMany                      // a rate limit is reached
	Unavailable                  // a dependency is down; the same request may work later
	Misdirected                  // another server accepts this request, as the origin of a mirror does
	Unprocessable                // a value has the wrong form (422, in the API of files only)
	Full                         // the disk has no room
	Gone                         // the object was removed permanently
)

// The locations of a detail (docs/contract.md, "Errors").
const (
	Header = "header"
	Body   = "body"
	URL    = "url"
	Query  = "querystring"
)

// Detail is one error in the error body.
type Detail struct {
	Location    string `json:"location"`    // Header, Body, URL or Query
	Name        string `json:"name"`        // header, parameter, or dotted path inside data
	Description string `json:"description"` // a sentence that tells a person what to do
}

// Error is a fault.
type Error struct {
	Kind       Kind
	Details    []Detail      // at least one
	RetryAfter time.Duration // for TooMany, Unavailable and Full; 0 means the default
}

// New returns a fault with one detail. It formats the description like
// fmt.Sprintf.
func New(kind Kind, location, name, format string, args ...any) *Error {
	return &Error{Kind: kind, Details: []Detail{{location, name, fmt.Sprintf(format, args...)}}}
}

// BrokenJSON returns the fault of a body that is not one JSON value. The argument `near` is the position of the byte
// at which reading ended. All APIs use BrokenJSON, so that they report this fault in the same words.
func BrokenJSON(near int64) *Error {
	return New(Invalid, Body, "data", "The body is not JSON: it breaks off or has a fault near byte %d.", near)
}

// SaysSomething reports whether a person can read a text that must give a reason: it is UTF-8 without NUL, and has a
// letter or a digit.
func SaysSomething(text string) bool {
	return utf8.ValidString(text) && !strings.Contains(text, "\x00") && strings.ContainsFunc(text, func(r rune) bool {
		return (unicode.IsLetter(r) || unicode.IsNumber(r)) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
	})
}

// Error lists the details, for the log.
func (e *Error) Error() string {
	parts := make([]string, len(e.Details))
	for i, d := range e.Details {
		parts[i] = d.Location + "/" + d.Name + ": " + d.Description
	}
	return strings.Join(parts, "; ")
}

// KindOf returns the kind of the fault in err's chain, or Internal if the chain has no fault.
func KindOf(err error) Kind {
	if f, ok := errors.AsType[*Error](err); ok {
		return f.Kind
	}
	return Internal
}
