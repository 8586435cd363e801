package feed

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
)

// plain is a Store that does each operation immediately, and logs it. A test can make an operation fail or wait.
type plain struct {
	mu        sync.Mutex
	clock     Clock
	documents map[string]*document
	batches   map[int64][]Write // by first position
	log       []string

	// before is called before each operation. It may be nil. If it returns an error, the operation is not done.
	before func(operation string) error
	// after is called after each operation. It may be nil. If it returns an error, the operation is done, but its
	// answer is lost.
	after func(operation string) error
}

func newPlain() *plain {
	return &plain{clock: Clock{Open: map[string]Batch{}}, documents: map[string]*document{}, batches: map[int64][]Write{}}
}

// operation does an operation of the store. It calls p.before at the start and p.after at the end.
func (p *plain) operation(ctx context.Context, name string, do func()) error {
	if p.before != nil {
		if err := p.before(name); err != nil {
			p.note(name + " fails")
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.note(name)
	p.mu.Lock()
	do()
	p.mu.Unlock()
	if p.after != nil {
		return p.after(name)
	}
	return nil
}

func (p *plain) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, what)
}

// told returns the operations that were logged since its last call.
func (p *plain) told() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	log := strings.Join(p.log, ", ")
	p.log = nil
	return log
}

func (p *plain) Open(
	ctx context.Context, writer string, b Batch, writes []Write,
) (now Clock, opened bool, err error) {
	err = p.operation(ctx, "open "+strings.Join(b.IDs, " "), func() {
		if opened = p.clock.Last < b.First; opened {
			p.clock.Last, p.clock.Open[writer] = b.Last(), b
			p.batches[b.First] = writes
		}
		now = Clock{Last: p.clock.Last, Open: maps.Clone(p.clock.Open)}
	})
	return now, opened, err
}

func (p *plain) Close(ctx context.Context, writer string, first int64) error {
	return p.operation(ctx, "close", func() {
		if p.clock.Open[writer].First == first {
			delete(p.clock.Open, writer)
		}
	})
}

func (p *plain) Clock(ctx context.Context) (now Clock, err error) {
	err = p.operation(ctx, "clock", func() { now = Clock{Last: p.clock.Last, Open: maps.Clone(p.clock.Open)} })
	return now, err
}

func (p *plain) Write(ctx context.Context, _ string, _ Batch, writes []Write) (applied int, err error) {
	err = p.operation(ctx, "write", func() {
		for _, w := range writes {
			d := p.documents[w.ID]
			if d == nil && w.Revision == 0 {
				p.documents[w.ID] = &document{revision: 1, position: w.Position}
				applied++
			} else if d != nil && d.revision == w.Revision {
				d.revision, d.position = d.revision+1, w.Position
				applied++
			}
		}
	})
	return applied, err
}

func (p *plain) Fence(ctx context.Context, ids []string) error {
	return p.operation(ctx, "fence "+strings.Join(ids, " "), func() {
		for _, id := range ids {
			if p.documents[id] == nil {
				p.documents[id] = &document{}
			}
			p.documents[id].revision++
		}
	})
}

func (p *plain) Settle(ctx context.Context, _ string, first int64) (map[string]bool, error) {
	landed := map[string]bool{}
	err := p.operation(ctx, "settle", func() {
		for _, w := range p.batches[first] {
			landed[w.ID] = p.documents[w.ID] != nil && p.documents[w.ID].position == w.Position
		}
	})
	return landed, err
}

// The method `at` returns the position of a document, or 0 if it does not exist.
func (p *plain) at(id string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.documents[id]; d != nil {
		return d.position
	}
	return 0
}

// The function `once` returns a function that returns an error for a single operation: the first one whose text begins
// with the argument `name`.
func once(name string) func(string) error {
	failed := false
	return func(operation string) error {
		if failed || !strings.HasPrefix(operation, name) {
			return nil
		}
		failed = true
		return fmt.Errorf("no %s", name)
	}
}
