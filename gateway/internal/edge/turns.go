package edge

import (
	"bytes"
	"net/http"
	"time"

	"asset-registry/shared/fair"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
	"asset-registry/shared/sleep"
)

// turnSize is how many bytes of an answer are compressed without a place, and then in each turn.
const turnSize = 512 << 10

// turns lets a long answer be compressed in turns, in which it has a place for work that takes long. It sends what the
// compressor writes after the turn, so that a client that reads slowly holds no place.
type turns struct {
	places *fair.Semaphore
	memory *memory.Budget // for the buffers
	asked  *http.Request

	passed   int // bytes that were compressed without a place
	isLong   bool
	inTurn   bool
	waiting  bytes.Buffer // of the answer
	prepared bytes.Buffer // by the compressor
}

// unpacked is the writer in front of the compressor.
type unpacked struct {
	http.ResponseWriter
	*turns
	client http.ResponseWriter
}

func (w *unpacked) Write(p []byte) (written int, err error) {
	for err == nil && written < len(p) {
		rest := p[written:]
		switch {
		case w.passed < turnSize:
			rest = rest[:min(len(rest), turnSize-w.passed)]
			w.passed += len(rest)
			_, err = w.ResponseWriter.Write(rest)
		case w.isLong || w.memory.Hold(2*turnSize):
			w.isLong = true
			rest = rest[:min(len(rest), turnSize-w.waiting.Len())]
			w.waiting.Write(rest)
			if w.waiting.Len() == turnSize {
				err = w.turn()
			}
		default:
			_, err = w.ResponseWriter.Write(rest)
		}
		written += len(rest)
	}
	return written, err
}

// turn compresses and sends what waits.
func (w *unpacked) turn() error {
	if err := w.compress(); err != nil {
		return err
	}
	_, err := w.prepared.WriteTo(w.client)
	return err
}

// compress needs a place. If the answer gets none, it goes on without one after a second, because it can no longer
// become an error.
func (w *unpacked) compress() error {
	ctx := w.asked.Context()
	if end, err := w.places.Acquire(ctx, w.asked.Header.Get(httpserver.CallerHeader), 1); err == nil {
		w.inTurn = true
		defer end()
	} else if !sleep.For(ctx, time.Second) {
		return ctx.Err()
	}
	_, err := w.waiting.WriteTo(w.ResponseWriter)
	w.inTurn = false
	return err
}

func (w *unpacked) Flush() {
	if w.waiting.Len() == 0 || w.turn() == nil {
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
}

// end compresses and sends the rest, and gives the buffers back.
func (w *unpacked) end() {
	if w.isLong {
		w.Flush()
		w.memory.Release(2 * turnSize)
	}
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *unpacked) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// packed is the writer behind the compressor.
type packed struct {
	http.ResponseWriter
	*turns
}

func (w packed) Write(p []byte) (int, error) {
	if w.inTurn {
		return w.prepared.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

func (w packed) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w packed) Unwrap() http.ResponseWriter { return w.ResponseWriter }
