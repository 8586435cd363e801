// Package problems gathers all that is wrong with a request, so that it is told
// at once, one error object for each faulty field.
package problems

import (
	"errors"
	"fmt"
	"slices"

	"asset-registry/shared/fault"
)

// The bounds of what is told of one request, whose body can hold thousands of problems.
const (
	maxDetails = 200
	maxName    = 300 // characters
)

// List is what is wrong with a request so far. The zero value is an empty list.
type List struct {
	details []fault.Detail
	invalid bool // another body would do, now or later; otherwise only the state of things is in the way
}

// Of returns a list of problems that were found before.
func Of(found ...fault.Detail) *List {
	var l List
	for _, d := range found {
		l.note(fault.Invalid, d)
	}
	return &l
}

// Add notes a problem of a field of the body. Only the first problem of a field
// is kept.
func (l *List) Add(name, format string, args ...any) {
	l.note(fault.Invalid, fault.Detail{Location: fault.Body, Name: name, Description: fmt.Sprintf(format, args...)})
}

// AddQuery is Add for a parameter of the query.
func (l *List) AddQuery(name, format string, args ...any) {
	l.note(fault.Invalid, fault.Detail{Location: fault.Query, Name: name, Description: fmt.Sprintf(format, args...)})
}

// Take notes the problems that err tells, if another request to the same place
// could mend them: a fault of kind Invalid or Conflict about anything but the
// URL. It returns every other error.
func (l *List) Take(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Invalid && f.Kind != fault.Conflict || f.Details[0].Location == fault.URL {
		return err
	}
	for _, d := range f.Details {
		l.note(f.Kind, d)
	}
	return nil
}

// With returns all problems as one fault, those that err tells among them, or err
// alone if Take would return it.
func (l *List) With(err error) error {
	if err := l.Take(err); err != nil {
		return err
	}
	return l.Err()
}

func (l *List) note(kind fault.Kind, d fault.Detail) {
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

// Err returns all problems as one fault, nil if there are none. The fault is of
// kind Conflict if no problem is of kind Invalid.
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
