package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// memory is a Store in memory.
type memory struct {
	mu        sync.Mutex
	endpoints map[string]Endpoint
	savedIn   map[string]int64 // the term in which an endpoint was last saved; the keys are ids of endpoints
	term      Term
	holder    string
	leaveOut  guard
	faults    []string

	fails string // name of the method that fails, such as "Endpoints"
	reads int    // number of calls of Endpoints
}

func newMemory() *memory {
	return &memory{endpoints: map[string]Endpoint{}, savedIn: map[string]int64{}}
}

// failed returns an error if the given operation is the one that fails. The caller must hold the lock.
func (m *memory) failed(operation string) error {
	if m.fails == operation {
		return fmt.Errorf("%s: the store is down", operation)
	}
	return nil
}

// fail makes an operation fail from now on. With "", all operations work again.
func (m *memory) fail(operation string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = operation
}

func (m *memory) Endpoints(_ context.Context, broker, after string, limit int) ([]Endpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	if err := m.failed("Endpoints"); err != nil {
		return nil, err
	}
	var all []Endpoint
	for _, e := range m.endpoints {
		if e.ID > after && (broker == "" || e.Broker == broker) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Endpoint) int { return cmp.Compare(a.ID, b.ID) })
	return all[:min(limit, len(all))], nil
}

func (m *memory) Endpoint(_ context.Context, id string) (Endpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failed("Endpoint"); err != nil {
		return Endpoint{}, err
	}
	e, found := m.endpoints[id]
	if !found {
		return e, ErrNotFound
	}
	return e, nil
}

func (m *memory) Put(_ context.Context, e Endpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failed("Put"); err != nil {
		return err
	}
	if now := m.endpoints[e.ID]; now.Generation != e.Generation || now.Saves != e.Saves {
		return ErrStale
	}
	e.Generation++
	m.endpoints[e.ID] = e
	m.term.Changes++
	return nil
}

func (m *memory) Remove(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, found := m.endpoints[id]; !found {
		return ErrNotFound
	}
	delete(m.endpoints, id)
	m.term.Changes++
	return nil
}

func (m *memory) Lead(_ context.Context, holder string, now, until time.Time) (Term, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failed("Lead"); err != nil {
		return Term{}, false, err
	}
	if m.holder != holder || !m.term.Until.After(now) {
		if m.term.Until.After(now) {
			return m.term, false, nil
		}
		m.holder = holder
		m.term.Number++
	}
	m.term.Until = until
	return m.term, true, nil
}

func (m *memory) Release(_ context.Context, term int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failed("Release"); err != nil {
		return err
	}
	if m.term.Number == term {
		m.holder, m.term.Until = "", time.Time{}
	}
	return nil
}

func (m *memory) Save(_ context.Context, term int64, steps []Step) (stale []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failed("Save"); err != nil {
		return nil, err
	}
	if term != m.term.Number && m.leaveOut != anyTerm {
		return nil, ErrTermOver
	}
	for _, s := range steps {
		e, found := m.endpoints[s.ID]
		if !found || e.Generation != s.Generation {
			stale = append(stale, s.ID)
			continue
		}
		if term < m.savedIn[s.ID] {
			m.faults = append(m.faults, fmt.Sprintf("endpoint %s: term %d saved after term %d", s.ID, term, m.savedIn[s.ID]))
		}
		if s.Position < e.Position {
			m.faults = append(m.faults, fmt.Sprintf("endpoint %s: position %d saved after %d", s.ID, s.Position, e.Position))
		}
		m.savedIn[s.ID] = max(m.savedIn[s.ID], term)
		e.Progress = s.Progress
		e.Saves++
		m.endpoints[s.ID] = e
	}
	return stale, nil
}
