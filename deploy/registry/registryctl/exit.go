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
	exitRefused   = 1 // the registry refused, or something is forged or damaged
	exitUsage     = 2 // the command line, a setting, or a file named in them is wrong; nothing was sent
	exitNoAnswer  = 3 // the registry cannot be reached, or cannot answer now
	exitCompleted = 0
)

// usageError is an error that occurred before the command had sent anything.
type usageError struct{ error }

// Unwrap returns the error itself.
func (e usageError) Unwrap() error { return e.error }

// verdict is the error of a command that has found a fault in a file, and has sent no request.
type verdict struct{ error }

// Unwrap returns the error itself.
func (v verdict) Unwrap() error { return v.error }

// isVerdict takes an error that came before the first request. It reports whether the error is about forged or
// damaged data, or about a failed write. Any other error is about the command line.
func isVerdict(err error) bool {
	_, forged := errors.AsType[verdict](err)
	file, ofFile := errors.AsType[*fs.PathError](err)
	damaged := forged || errors.Is(err, boltfile.ErrDamaged)
	return damaged || ofFile && file.Op == "write" // the disk failed, or the reader of the output has gone
}

// statusError is an answer of the admin API with an error status.
type statusError struct {
	status int
	text   string
}

// Error returns the text of the refusal.
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

// isAway reports whether a status means that the registry cannot answer now: it cannot reach something that it
// needs, or a proxy cannot reach the registry.
func isAway(status int) bool {
	return slices.Contains(
		[]int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, status)
}
