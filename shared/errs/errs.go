// Package errs makes errors in one expression. errors.Join, which leaves out nil, then collects what several checks
// say.
package errs

import "fmt"

// In returns err with the formatted words and a colon before it, or nil if err is nil.
func In(err error, format string, values ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(values, err)...)
}

// If returns an error with the formatted words if a rule is broken, otherwise nil.
func If(broken bool, format string, values ...any) error {
	if !broken {
		return nil
	}
	return fmt.Errorf(format, values...)
}
