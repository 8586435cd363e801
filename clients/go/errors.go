package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error is an answer with an error status (docs/contract.md, "Errors").
type Error struct {
	Status     int
	Method     string
	Path       string        // without the query
	Details    []Detail      // every problem of the request; empty if the answer is not from the registry
	RetryAfter time.Duration // value of Retry-After; 0: none; at most 999,999,999 s
	RequestID  string        // id of the request in the registry's logs
	Uncertain  bool          // an earlier try of the same write may have changed the asset
	ServerID   string        // the cookie SERVER_ID that the answer sets; empty: none
}

// Detail is one problem of a request.
type Detail struct {
	Location    string `json:"location"` // header, body, url or querystring
	Name        string `json:"name"`     // header, parameter, step of the path, or dotted path inside data
	Description string `json:"description"`
}

// Error returns the request, the status and every problem in one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s %s: %d %s", e.Method, e.Path, e.Status, http.StatusText(e.Status))
	if len(e.Details) == 0 {
		text += ": the answer is not the registry's: " + e.origin()
	}
	for i, d := range e.Details {
		text += []string{": ", "; "}[min(i, 1)] + fmt.Sprintf("%s %s: %s", d.Location, d.Name, d.Description)
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf(" (try again in %v)", e.RetryAfter)
	}
	if e.Uncertain {
		text += " (an earlier try may have been done)"
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// origin returns a hint about the cause of an answer that did not come from the registry.
func (e *Error) origin() string {
	switch {
	case e.Status < 400, e.Status == http.StatusNotFound, e.Status == http.StatusMethodNotAllowed:
		return "check the address"
	case e.Status >= 500:
		return "a server in between cannot reach it, or fails"
	}
	return "a server in between refuses the request"
}

// Detail returns the first problem with the given name. ok is false if no problem has this name.
func (e *Error) Detail(name string) (d Detail, ok bool) {
	for _, d := range e.Details {
		if d.Name == name {
			return d, true
		}
	}
	return Detail{}, false
}

// StatusOf returns the status of the *Error in err's chain, 0 if the chain has no *Error.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return 0
}

// IsInvalid reports a request with faulty fields (400). Error.Details names each faulty field.
func IsInvalid(err error) bool { return StatusOf(err) == http.StatusBadRequest }

// IsUnauthorized reports a missing or invalid API key (401).
func IsUnauthorized(err error) bool { return StatusOf(err) == http.StatusUnauthorized }

// IsForbidden reports a valid key that does not permit the request, or a wrong token (403).
func IsForbidden(err error) bool { return StatusOf(err) == http.StatusForbidden }

// IsNotFound reports an object that does not exist (404).
func IsNotFound(err error) bool { return StatusOf(err) == http.StatusNotFound }

// IsChanged reports that the asset has changed since it had the tag Write.IfMatch (412).
func IsChanged(err error) bool { return StatusOf(err) == http.StatusPreconditionFailed }

// IsBusy reports a rate limit (429) or an overload or outage (503). Error.RetryAfter
// says when to try again.
func IsBusy(err error) bool {
	return StatusOf(err) == http.StatusTooManyRequests || StatusOf(err) == http.StatusServiceUnavailable
}

// newError makes an Error from a response and its body.
func newError(r request, resp *http.Response, text []byte) *Error {
	e := &Error{
		Status: resp.StatusCode, Method: r.method, Path: r.path,
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
		RequestID:  resp.Header.Get("X-Request-ID"),
		ServerID:   serverOf(request{}, resp.Header),
	}
	var body struct {
		Errors []Detail `json:"errors"`
	}
	if err := json.Unmarshal(text, &body); err == nil { // the answer of a proxy may have another form
		e.Details = body.Errors
	}
	return e
}

// longestRetryAfter is the longest Retry-After; a longer one is reduced to it.
const longestRetryAfter = 999_999_999 * time.Second

// retryAfter reads the value of Retry-After: seconds or a date (RFC 9110, 10.2.3).
// It returns 0 for any other value.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		most := int64(longestRetryAfter / time.Second)
		// If the number is too large or too small, ParseInt returns the largest or the smallest int64.
		return time.Duration(min(max(seconds, 0), most)) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), longestRetryAfter)
	}
	return 0
}
