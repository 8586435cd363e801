// Package expect has the checks that most tests repeat. OK and Get end a test that fails; the others let it go on.
package expect

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"asset-registry/shared/fault"
)

// OK ends the test if any error is not nil.
func OK(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Get returns a function that returns the value v. If err is not nil, the function ends the test:
//
//	text := expect.Get(os.ReadFile(path))(t)
func Get[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return v
	}
}

// Try reports an error that is not nil.
func Try(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Err reports an error that is not the wanted one by errors.Is. The format and its arguments name the case.
func Err(t testing.TB, got, want error, format string, args ...any) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%sgot %v, want %v", label(format, args), got, want)
	}
}

// ErrOf returns a function that is like Err, for the results of a call with a value and an error.
func ErrOf(t testing.TB, want error, format string, args ...any) func(got any, err error) {
	return func(got any, err error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%sgot %v, %v, want %v", label(format, args), got, err, want)
		}
	}
}

// Equal reports a value that is not the wanted one.
func Equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		verb := "%v"
		if _, isText := any(got).(string); isText {
			verb = "%q"
		}
		t.Errorf("%sgot "+verb+", want "+verb, label(format, args), got, want)
	}
}

// ErrorIf reports a state that is wrong. The format and its arguments say what the test got and wants.
func ErrorIf(t testing.TB, isWrong bool, format string, args ...any) {
	t.Helper()
	if isWrong {
		t.Errorf(format, args...)
	}
}

// FatalIf ends the test in a state that is wrong. The format and its arguments say what the test got and wants.
func FatalIf(t testing.TB, isWrong bool, format string, args ...any) {
	t.Helper()
	if isWrong {
		t.Fatalf(format, args...)
	}
}

// NoDiff reports a difference that cmp.Diff(want, got) has found. The format and its arguments say what differs.
func NoDiff(t testing.TB, diff, format string, args ...any) {
	t.Helper()
	if diff != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprintf(format, args...), diff)
	}
}

// Must ends the test if err is not nil. The format and its arguments name the case.
func Must(t testing.TB, err error, format string, args ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s%v", label(format, args), err)
	}
}

// MustOf returns a function that is like Must, for the results of a call with a value and an error.
func MustOf(t testing.TB, format string, args ...any) func(got any, err error) {
	return func(_ any, err error) {
		t.Helper()
		Must(t, err, format, args...)
	}
}

// Nil reports an error that is not nil. The format and its arguments name the case.
func Nil(t testing.TB, err error, format string, args ...any) {
	t.Helper()
	if err != nil {
		t.Errorf("%sgot %v, want nil", label(format, args), err)
	}
}

// NilOf returns a function that is like Nil, for the results of a call with a value and an error.
func NilOf(t testing.TB, format string, args ...any) func(got any, err error) {
	return func(_ any, err error) {
		t.Helper()
		Nil(t, err, format, args...)
	}
}

// Value returns a function for the results of a call. It reports an error, or a value that is not the wanted one.
func Value[T comparable](t testing.TB, want T, format string, args ...any) func(got T, err error) {
	return func(got T, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%sgot %v, %v; want %v", label(format, args), got, err, want)
		}
	}
}

// Fault reports an error that has not the wanted kind. The format and its arguments name the case.
func Fault(t testing.TB, err error, want fault.Kind, format string, args ...any) {
	t.Helper()
	if got := fault.KindOf(err); got != want {
		t.Errorf("%sgot %v of kind %v, want kind %v", label(format, args), err, got, want)
	}
}

// FaultOf returns a function that is like Fault, for the results of a call with a value and an error.
func FaultOf(t testing.TB, want fault.Kind, format string, args ...any) func(got any, err error) {
	return func(_ any, err error) {
		t.Helper()
		Fault(t, err, want, format, args...)
	}
}

// Fails reports a missing error. The format and its arguments name the case.
func Fails(t testing.TB, err error, format string, args ...any) {
	t.Helper()
	Says(t, err, "", format, args...)
}

// FailsOf returns a function that is like Fails, for the results of a call with a value and an error.
func FailsOf(t testing.TB, format string, args ...any) func(got any, err error) {
	return SaysOf(t, "", format, args...)
}

// Says reports a missing error, or one whose text has no `want` in it. The format and its arguments name the case.
func Says(t testing.TB, err error, want, format string, args ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		with := ""
		if want != "" {
			with = fmt.Sprintf(" with %q", want)
		}
		t.Errorf("%sgot %v, want an error%s", label(format, args), err, with)
	}
}

// SaysOf returns a function that is like Says, for the results of a call with a value and an error.
func SaysOf(t testing.TB, want, format string, args ...any) func(got any, err error) {
	return func(_ any, err error) {
		t.Helper()
		Says(t, err, want, format, args...)
	}
}

func label(format string, args []any) string {
	if format == "" {
		return ""
	}
	return fmt.Sprintf(format, args...) + ": "
}
