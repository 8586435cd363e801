package concurrency

import "sync"

// Shares counts what each client holds for long, such as open streams, or bytes of bodies. It
// is safe for concurrent use.
type Shares struct {
	each int // most of one client
	all  int // most of all clients

	mu   sync.Mutex
	held map[string]int
	sum  int
}

// NewShares returns Shares that give each client up to each, and all clients together
// up to all.
func NewShares(each, all int) *Shares {
	return &Shares{each: each, all: all, held: map[string]int{}}
}

// Refusal says why Enter has refused a client.
type Refusal int

// The results of Enter and Take.
const (
	Admitted Refusal = iota
	ShareUsed
	AllUsed
)

// Enter gives a client one more, or returns why it may not have it. An admitted client
// must call Leave once.
func (s *Shares) Enter(client string) Refusal { return s.Take(client, 1) }

// Take gives a client n more, or returns why it may not have them. An admitted client must
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

// Leave gives back what Enter gave a client.
func (s *Shares) Leave(client string) { s.Return(client, 1) }

// Return gives back what Take gave a client.
func (s *Shares) Return(client string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum -= n
	if s.held[client] -= n; s.held[client] == 0 {
		delete(s.held, client)
	}
}

// Held returns how many all clients hold.
func (s *Shares) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum
}
