package fair

import (
	"sync"
	"time"
)

// Answer is an answer that is being sent.
type Answer interface {
	// Waits returns the time for which the client has not taken what was written last; 0: it has taken everything.
	Waits() time.Duration
	// Cut ends the answer. It does not wait.
	Cut()
}

// patience is the time that a client has to take what was written, however many others need what its answer holds.
const patience = time.Second

// Held knows what answers hold until they are sent, such as places or bytes. If others need it, answers end whose
// clients take nothing. The zero value is ready. It is safe for concurrent use.
type Held struct {
	mu      sync.Mutex
	all     map[*holder]struct{}
	callers map[string]int // number of answers of each caller
}

type holder struct {
	by     string
	answer Answer
	give   func()
}

// Add notes that the answer to a caller holds something. The function `give` gives it back. The caller of Add must call
// the function `end` before the answer's handler returns.
func (h *Held) Add(by string, answer Answer, give func()) (end func()) {
	one := &holder{by, answer, give}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all, h.callers = map[*holder]struct{}{}, map[string]int{}
	}
	h.all[one] = struct{}{}
	h.callers[by]++
	return func() { h.end(one) }
}

// end gives back what an answer holds, unless Take has done so.
func (h *Held) end(one *holder) {
	h.mu.Lock()
	_, holds := h.all[one]
	h.forget(one)
	h.mu.Unlock()
	if holds {
		one.give()
	}
}

func (h *Held) forget(one *holder) {
	if _, known := h.all[one]; !known {
		return
	}
	delete(h.all, one)
	if h.callers[one.by]--; h.callers[one.by] == 0 {
		delete(h.callers, one.by)
	}
}

// Take cuts an answer whose client has taken nothing for a second, and gives back what the answer held. It chooses the
// caller with the most answers, and of these the one that has waited longest. It returns false if there is none.
func (h *Held) Take() bool {
	h.mu.Lock()
	var worst *holder
	var longest time.Duration
	for one := range h.all {
		waits := one.answer.Waits()
		more := worst == nil || h.callers[one.by] > h.callers[worst.by]
		if waits >= patience && (more || h.callers[one.by] == h.callers[worst.by] && waits > longest) {
			worst, longest = one, waits
		}
	}
	if worst != nil {
		h.forget(worst)
		worst.answer.Cut() // its handler cannot have returned, because `end` waits for h.mu
	}
	h.mu.Unlock()
	if worst != nil {
		worst.give()
	}
	return worst != nil
}
