// Package faulthttp turns errors into HTTP answers, and answers of our own
// services back into errors. No other code does this.
package faulthttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"asset-registry/shared/fault"
)

// retryAfter is the Retry-After of a fault that sets none.
const retryAfter = time.Second

var statuses = map[fault.Kind]int{
	fault.Internal:         http.StatusInternalServerError,
	fault.Invalid:          http.StatusBadRequest,
	fault.Unauthorized:     http.StatusUnauthorized,
	fault.Forbidden:        http.StatusForbidden,
	fault.NotFound:         http.StatusNotFound,
	fault.Conflict:         http.StatusConflict,
	fault.Precondition:     http.StatusPreconditionFailed,
	fault.TooLarge:         http.StatusRequestEntityTooLarge,
	fault.UnsupportedMedia: http.StatusUnsupportedMediaType,
	fault.Unsatisfiable:    http.StatusRequestedRangeNotSatisfiable,
	fault.TooMany:          http.StatusTooManyRequests,
	fault.Unavailable:      http.StatusServiceUnavailable,
	fault.Misdirected:      http.StatusMisdirectedRequest,
	fault.Unprocessable:    http.StatusUnprocessableEntity,
	fault.Full:             http.StatusInsufficientStorage,
	fault.Gone:             http.StatusGone,
}

// body is the error body (docs/contract.md, "Errors").
type body struct {
	Status string         `json:"status"`
	Errors []fault.Detail `json:"errors"`
}

// Status returns the HTTP status of err's kind. It is 500 unless err is a fault.
func Status(err error) int { return statuses[fault.KindOf(err)] }

// Write answers with err: the status of its kind, the error body, and the headers
// of the kind (WWW-Authenticate with 401, Retry-After with 429, 503 and 507). For an
// internal error the body is always the same and reveals nothing.
func Write(w http.ResponseWriter, err error) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.Internal, fault.URL, "server",
			"The server failed to answer; the request may be repeated.")
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	switch f.Kind {
	case fault.Unauthorized:
		h.Set("WWW-Authenticate", `Basic realm="registry"`)
	case fault.TooMany, fault.Unavailable, fault.Full:
		wait := f.RetryAfter
		if wait <= 0 {
			wait = retryAfter
		}
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	text, err := json.Marshal(body{Status: "error", Errors: f.Details})
	if err != nil { // impossible: the body has only strings
		panic(fmt.Sprintf("faulthttp: %v", err))
	}
	text = append(text, '\n')
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(statuses[f.Kind])
	_, _ = w.Write(text) // if it fails, the client has left
}

// maxErrorBody is the maximum number of bytes that Read reads from an error body.
const maxErrorBody = 64 << 10

// Read returns the fault that one of our services wrote as resp. Only kind, details and RetryAfter survive
// HTTP. For 200, 201 and 204 it returns nil. For an answer with another status that lacks our error body, it returns an
// internal error.
func Read(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
		return nil
	}
	var b body
	err := json.NewDecoder(io.LimitReader(resp.Body, maxErrorBody)).Decode(&b)
	if err != nil || len(b.Errors) == 0 {
		return fmt.Errorf("unexpected answer: status %d, not an error body", resp.StatusCode)
	}
	for kind, status := range statuses {
		if status != resp.StatusCode || kind == fault.Internal {
			continue
		}
		f := &fault.Error{Kind: kind, Details: b.Errors}
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			f.RetryAfter = time.Duration(seconds) * time.Second
		}
		return f
	}
	return fmt.Errorf("unexpected answer: status %d: %s", resp.StatusCode, b.Errors[0].Description)
}

// Decode decodes the JSON object with which one of our services answered, or returns the fault in the answer. The
// argument `most` is the maximum number of bytes. The object must have each member that the service always writes, so
// that nobody takes a page of a proxy for an empty answer: the members of the struct behind `into` without omitempty. A
// member that a version adds has omitempty, because the version before does not write it.
func Decode(resp *http.Response, most int64, into any) error {
	if err := Read(resp); err != nil {
		return err
	}
	if kind := resp.Header.Get("Content-Type"); kind != "application/json" {
		return fmt.Errorf("unexpected answer: status %d with the type %.80q", resp.StatusCode, kind)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return fmt.Errorf("read an answer: %w", err)
	case int64(len(text)) > most:
		return fmt.Errorf("unexpected answer: it has more than %d bytes", most)
	}
	var has map[string]present
	if err := errors.Join(json.Unmarshal(text, &has), json.Unmarshal(text, into)); err != nil {
		return fmt.Errorf("decode an answer: %w", err)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(into).Elem()) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && options != "omitempty" && !has[name] {
			return fmt.Errorf("unexpected answer: it has no %s", name)
		}
	}
	return nil
}

// present is true for a member of an object that is not null.
type present bool

func (p *present) UnmarshalJSON(text []byte) error {
	*p = string(text) != "null"
	return nil
}
