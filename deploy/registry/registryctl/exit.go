package registryctl

import (
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"slices"

	"asset-registry.example/client"
	"asset-registry/shared/boltfile"
)

// The exit codes of registryctl.
const (
	exitRefused   = 1 // the registry refuses, or something is forged or damaged
	exitUsage     = 2 // the command line, a setting or a file that they name is wrong; nothing was sent
	exitNoAnswer  = 3 // the registry cannot be reached, or not now
	exitCompleted = 0
)

// usageError is an error of a command that has sent nothing.
type usageError struct{ error }

// Unwrap returns the error itself.
func (e usageError) Unwrap() error { return e.error }

// verdict is the error of a command that found something forged without a request.
type verdict struct{ error }

// Unwrap returns the error itself.
func (v verdict) Unwrap() error { return v.error }

// isVerdict tells whether an error that came before any request is none of the command line.
func isVerdict(err error) bool {
	_, forged := errors.AsType[verdict](err)
	file, ofFile := errors.AsType[*fs.PathError](err)
	damaged := forged || errors.Is(err, boltfile.ErrDamaged)
	return damaged || ofFile && file.Op == "write" // the disk or the reader of the output has failed
}

// statusError is a refusal of the admin API.
type statusError struct {
	status int
	text   string
}

// Error returns the refusal in words.
func (e *statusError) Error() string { return e.text }

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
