package edge

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"asset-registry/shared/fair"
	"asset-registry/shared/memory"
	"asset-registry/shared/testing/expect"
)

// slow is a client that takes a write only when the test lets it.
type slow struct {
	*httptest.ResponseRecorder
	takes chan struct{}
}

func (s slow) Write(p []byte) (int, error) {
	<-s.takes
	return s.ResponseRecorder.Write(p)
}

// ask sends a request for a compressed answer of 5 turns and returns a channel that is closed at its end.
func ask(t *testing.T, places *fair.Semaphore, budget *memory.Budget, w http.ResponseWriter) (text []byte, end chan struct{}) {
	t.Helper()
	text = bytes.Repeat([]byte("0123456789abcdef"), 5*turnSize/16)
	text = append(text, "the end"...)
	h, err := New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text[:turnSize/3])
		_, _ = w.Write(text[turnSize/3:])
	}), Config{Encoders: budget, Places: places})
	expect.OK(t, err)
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/2.5/assets", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	end = make(chan struct{})
	go func() {
		defer close(end)
		h.ServeHTTP(w, r)
	}()
	return text, end
}

func checkAnswer(t *testing.T, w *httptest.ResponseRecorder, text []byte) {
	t.Helper()
	plain, err := gzip.NewReader(w.Body)
	expect.OK(t, err)
	if got, err := io.ReadAll(plain); err != nil || !bytes.Equal(got, text) {
		t.Errorf("got %d bytes, %v; want the %d of the answer", len(got), err, len(text))
	}
}

// TestALongAnswerIsCompressedWithAPlace has another caller hold the only place.
func TestALongAnswerIsCompressedWithAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places, budget := fair.New(1), memory.NewBudget(100*turnSize)
		leave, err := places.Acquire(t.Context(), "another", 1)
		expect.OK(t, err)
		w := httptest.NewRecorder()
		text, end := ask(t, places, budget, w)
		synctest.Wait()
		select {
		case <-end:
			t.Fatal("got the answer without a place, want it to wait")
		default:
		}
		leave()
		<-end
		checkAnswer(t, w, text)
		expect.Equal(t, budget.Used(), 0, "bytes held after the answer")
	})
}

// TestAnAnswerWithoutAPlaceEnds never gives the place back: an answer that has begun comes whole, later.
func TestAnAnswerWithoutAPlaceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := fair.New(1)
		expect.Get(places.Acquire(t.Context(), "another", 1))(t)
		w := httptest.NewRecorder()
		text, end := ask(t, places, memory.NewBudget(100*turnSize), w)
		<-end
		checkAnswer(t, w, text)
	})
}

func TestAnAnswerWithoutMemoryForTurnsEnds(t *testing.T) {
	w := httptest.NewRecorder()
	text, end := ask(t, fair.New(1), memory.NewBudget(2*encoderSize), w)
	<-end
	checkAnswer(t, w, text)
}

// TestASlowClientHoldsNoPlace has a client that takes nothing for a while.
//
// Promises: pack-turns
func TestASlowClientHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := fair.New(1)
		w := slow{httptest.NewRecorder(), make(chan struct{})}
		text, end := ask(t, places, memory.NewBudget(100*turnSize), w)
		for done := false; !done; {
			synctest.Wait() // the answer waits for the client
			leave, err := places.Acquire(t.Context(), "another", 1)
			expect.FatalIf(t, err != nil, "got %v while a client takes nothing, want a place", err)
			leave()
			select {
			case w.takes <- struct{}{}:
			case <-end:
				done = true
			}
		}
		checkAnswer(t, w.ResponseRecorder, text)
	})
}
