// Package problems collects everything wrong with a request, so that one response can report all of it, with
// one error object for each faulty field.
package problems

import (
	"errors"
	"fmt"
	"slices"

	"asset-registry/shared/fault"
)

// The bounds of a response. They are needed because a body can have thousands of problems.
const (
	maxDetails = 200
	maxName    = 300 // characters
)

// List is a list of problems of a request. The zero value is an empty list.
type List struct {
	details []fault.Detail
	invalid bool // at least one problem is of kind Invalid; otherwise all are of kind Conflict
}

// Of returns a list with problems of kind Invalid.
func Of(found ...fault.Detail) *List {
	var l List
	for _, d := range found {
		l.add(fault.Invalid, d)
	}
	return &l
}

// Add adds a problem with a field of the body. The list keeps only the first problem of each field.
func (l *List) Add(name, format string, args ...any) {
	l.add(fault.Invalid, fault.Detail{Location: fault.Body, Name: name, Description: fmt.Sprintf(format, args...)})
}

// AddQuery adds a problem with a query parameter. The list keeps only the first problem of each parameter.
func (l *List) AddQuery(name, format string, args ...any) {
	l.add(fault.Invalid, fault.Detail{Location: fault.Query, Name: name, Description: fmt.Sprintf(format, args...)})
}

// Take adds the problems of err if err is a fault of kind Invalid or Conflict that is not about the URL. A client can
// solve these problems with another request to the same URL. If err is any other error, Take returns it unchanged.
func (l *List) Take(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Invalid && f.Kind != fault.Conflict || f.Details[0].Location == fault.URL {
		return err
	}
	for _, d := range f.Details {
		l.add(f.Kind, d)
	}
	return nil
}

// With adds the problems of err and returns all problems as one fault, as Err does. If Take does not accept
// err, With returns only err.
func (l *List) With(err error) error {
	if err := l.Take(err); err != nil {
		return err
	}
	return l.Err()
}

func (l *List) add(kind fault.Kind, d fault.Detail) {
	if name := []rune(d.Name); len(name) > maxName {
		d.Name = string(name[:maxName]) + "…"
	}
	l.invalid = l.invalid || kind == fault.Invalid
	same := func(k fault.Detail) bool { return k.Location == d.Location && k.Name == d.Name }
	if !slices.ContainsFunc(l.details, same) && len(l.details) < maxDetails {
		l.details = append(l.details, d)
	}
}

// Details returns the problems.
func (l *List) Details() []fault.Detail { return slices.Clone(l.details) }

// Err returns all problems as one fault, or nil if there are none. The fault is of kind
// Conflict if no problem is of kind Invalid.
func (l *List) Err() error {
	switch {
	case len(l.details) == 0:
		return nil
	case l.invalid:
		return &fault.Error{Kind: fault.Invalid, Details: l.Details()}
	default:
		return &fault.Error{Kind: fault.Conflict, Details: l.Details()}
	}
}
