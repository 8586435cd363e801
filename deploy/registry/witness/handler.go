package witness

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/translog"
)

// most is the greatest number of requests that are answered at the same time.
const most = 64

// Handler returns the witness's HTTP API: POST /add-checkpoint, and /livez and
// /readyz.
func (w *Witness) Handler() http.Handler {
	mux := http.NewServeMux()
	slots := make(chan struct{}, most)
	mux.HandleFunc("POST /add-checkpoint", func(answer http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			answer.Header().Set("Retry-After", "1")
			http.Error(answer, "too many requests at the same time", http.StatusServiceUnavailable)
			return
		}
		w.addCheckpoint(answer, r)
	})
	alive := func(answer http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(answer, "ok\n") // an error only means that the client has left
	}
	mux.HandleFunc("GET /livez", alive)
	mux.HandleFunc("GET /readyz", alive)
	return mux
}

// addCheckpoint answers a request with a submission, and logs the result, or counts it if the client had the same
// result in this minute.
func (w *Witness) addCheckpoint(answer http.ResponseWriter, r *http.Request) {
	start := time.Now()
	status := http.StatusOK
	line, err := w.cosignBody(http.MaxBytesReader(answer, r.Body, translog.MaxSubmission))
	var stale *StaleError
	switch {
	case err == nil:
		answer.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = answer.Write(line) // an error only means that the client has left
	case errors.As(err, &stale):
		status = http.StatusConflict
		answer.Header().Set("Content-Type", "text/x.tlog.size")
		answer.WriteHeader(status)
		_, _ = fmt.Fprintf(answer, "%d\n", stale.Size)
	default:
		status = statusOf(err)
		text := err.Error()
		if status == http.StatusInternalServerError {
			text = "the witness cannot remember the checkpoint"
		}
		http.Error(answer, text, status)
	}
	cause := failurelog.Cause{What: "add-checkpoint", Status: status}
	if status == http.StatusInternalServerError {
		cause.Level = slog.LevelError
	} else {
		cause.Client, _, _ = net.SplitHostPort(r.RemoteAddr) // "" if there is no port
	}
	if w.repeats.IsFirst(cause) {
		w.log.Log(r.Context(), cause.Level, cause.What, "status", status, "remote", r.RemoteAddr,
			"duration", time.Since(start).String(), "error", err)
	}
}

// cosignBody cosigns the submission that the body of a request contains.
func (w *Witness) cosignBody(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", translog.ErrSubmission, err)
	}
	s, err := translog.ParseSubmission(body)
	if err != nil {
		return nil, err
	}
	return w.Cosign(s)
}

// statusOf returns the HTTP status that tlog-witness requires for an error.
func statusOf(err error) int {
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrUnknownLog):
		return http.StatusNotFound
	case errors.Is(err, translog.ErrSignature):
		return http.StatusForbidden
	case errors.Is(err, ErrFork):
		return http.StatusConflict
	case errors.Is(err, translog.ErrConsistency):
		return http.StatusUnprocessableEntity
	case errors.Is(err, translog.ErrSubmission), errors.Is(err, translog.ErrCheckpoint), errors.Is(err, ErrOldSize):
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}
