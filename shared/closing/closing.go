// Package closing closes what a service has opened.
package closing

import (
	"context"
	"errors"
	"slices"
)

// List has functions that close the parts of a service. The zero value is empty.
type List []func() error

// Add adds a function that closes something.
func (l *List) Add(closes func() error) { *l = append(*l, closes) }

// Do adds a function that closes something and cannot fail.
func (l *List) Do(closes func()) {
	l.Add(func() error {
		closes()
		return nil
	})
}

// Go runs a function in the background. Close ends its context and waits until it returns.
func (l *List) Go(ctx context.Context, run func(context.Context)) {
	l.Serve(ctx, func(ctx context.Context) error {
		run(ctx)
		return nil
	})
}

// Serve works like Go, and Close returns the error of the function.
func (l *List) Serve(ctx context.Context, run func(context.Context) error) {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	l.Add(func() error {
		stop()
		return <-done
	})
}

// Close calls the functions, the last one first, and returns all their errors.
func (l List) Close() error {
	var faults []error
	for _, closes := range slices.Backward(l) {
		faults = append(faults, closes())
	}
	return errors.Join(faults...)
}
