package concurrency

import "sync"

// Shares counts what each client holds for long, such as open streams, or bytes of request bodies. It is safe
// for concurrent use.
type Shares struct {
	each int // maximum that one client may hold
	all  int // maximum that all clients together may hold

	mu   sync.Mutex
	held map[string]int
	sum  int
}

// NewShares returns Shares with limits: the argument "each" for one client, and the argument "all" for all clients
// together.
func NewShares(each, all int) *Shares {
	return &Shares{each: each, all: all, held: map[string]int{}}
}

// Each returns how much one client may hold.
func (s *Shares) Each() int { return s.each }

// Refusal is the reason why Enter or Take refuses a client.
type Refusal int

// The results of Enter and Take.
const (
	Admitted Refusal = iota
	ShareUsed
	AllUsed
)

// Enter gives a client one more place, or returns why the client is not allowed to have it. An admitted client must
// call Leave once.
func (s *Shares) Enter(client string) Refusal { return s.Take(client, 1) }

// Take gives a client n more places, or returns why the client is not allowed to have them. An admitted client must
// call Return once, with the same n.
func (s *Shares) Take(client string, n int) Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.held[client]+n > s.each:
		return ShareUsed
	case s.sum+n > s.all:
		return AllUsed
	}
	s.held[client] += n
	s.sum += n
	return Admitted
}

// Leave undoes a call of Enter.
func (s *Shares) Leave(client string) { s.Return(client, 1) }

// Return undoes a call of Take.
func (s *Shares) Return(client string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum -= n
	if s.held[client] -= n; s.held[client] == 0 {
		delete(s.held, client)
	}
}

// Held returns how much all clients hold together.
func (s *Shares) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum
}
