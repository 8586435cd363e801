package registryctl

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"asset-registry.example/client"
)

// The exit codes of registryctl.
const (
	exitRefused   = 1 // the registry refuses, something is forged or damaged, or a file cannot be used
	exitUsage     = 2 // the command line or the settings are wrong; nothing was sent
	exitNoAnswer  = 3 // the registry cannot be reached, or not now
	exitCompleted = 0
)

// usageError is an error of the command line.
type usageError struct{ error }

// Unwrap returns the error itself.
func (e usageError) Unwrap() error { return e.error }

// usage returns an error of the command line, formatted like fmt.Errorf.
func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// asUsage marks an error as one of the command line; nil stays nil.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// statusError is a refusal of the admin API.
type statusError struct {
	status int
	text   string
}

// Error returns the refusal in words.
func (e *statusError) Error() string { return e.text }

// Describe returns an error of Run for a terminal: control characters of a server are replaced.
func Describe(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = plain(lines[i])
	}
	return strings.Join(lines, "\n")
}

// ExitCode returns the exit code of a process whose Run returned err.
func ExitCode(err error) int {
	status := client.StatusOf(err)
	if refused, ok := errors.AsType[*statusError](err); ok {
		status = refused.status
	}
	_, isUsage := errors.AsType[usageError](err)
	_, isNetwork := errors.AsType[*url.Error](err)
	switch {
	case err == nil:
		return exitCompleted
	case isUsage:
		return exitUsage
	case isAway(status), status == 0 && isNetwork:
		return exitNoAnswer
	}
	return exitRefused
}

// isAway tells whether a status says that the registry is not there now: it, or a proxy in front of
// it, does not reach what it needs.
func isAway(status int) bool {
	return slices.Contains(
		[]int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, status)
}
