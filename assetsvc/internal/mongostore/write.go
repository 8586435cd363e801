package mongostore

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/telemetry"
)

// Create stores a new asset. It returns registry.ErrExists if an asset has the id already, and registry.ErrVoid
// if a fence has made the id unusable.
func (s *Store) Create(ctx context.Context, r registry.Record) (int64, error) {
	if _, ok := registry.ParseID(r.ID); !ok {
		return 0, fmt.Errorf("create asset: the id %q is malformed", r.ID)
	}
	position, err := s.commit(ctx, feed.Write{ID: r.ID, Document: r})
	if !errors.Is(err, feed.ErrRefused) {
		return position, err
	}
	switch _, err := s.size(ctx, r.ID); {
	case err == nil, errors.Is(err, registry.ErrRemoved):
		return 0, registry.ErrExists
	case errors.Is(err, registry.ErrNotFound):
		return 0, registry.ErrVoid // the id belongs to a void, which a fence left
	default:
		return 0, err
	}
}

// Replace stores a new revision of an asset, or returns registry.ErrStale or
// registry.ErrNotFound.
func (s *Store) Replace(ctx context.Context, r registry.Record) (int64, error) {
	if _, ok := registry.ParseID(r.ID); !ok {
		return 0, registry.ErrNotFound
	}
	if r.Revision < 1 {
		return 0, fmt.Errorf("replace revision %d", r.Revision)
	}
	position, err := s.commit(ctx, feed.Write{ID: r.ID, Revision: r.Revision, Before: r.Position, Document: r})
	switch {
	case errors.Is(err, feed.ErrNotDone) && ctx.Err() == nil:
		return 0, registry.ErrStale // the batch was fenced, and the fence raised the revision
	case !errors.Is(err, feed.ErrRefused):
		return position, err
	}
	if _, err := s.size(ctx, r.ID); err != nil {
		return 0, err
	}
	return 0, registry.ErrStale
}

// commit hands a write to the feed. It returns the error of feed.Writer.Commit. If ctx has ended, the error also
// has the reason why ctx ended.
func (s *Store) commit(ctx context.Context, w feed.Write) (int64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return 0, errClosed
	}
	ctx, span := telemetry.Child(ctx, trace.SpanKindInternal, "commit")
	position, err := s.writer.Commit(ctx, w)
	telemetry.End(span, err)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return position, err
}

// sizeOfWrite returns the bytes that a write adds to the size of its batch.
func sizeOfWrite(w feed.Write) int {
	r := w.Document.(registry.Record)
	return len(r.Body) + len(r.Change) + len(r.Whole)
}

const (
	// maxNumbers is the largest count of numbers in one reservation. Numbers that are reserved but not used when
	// the process ends are never used.
	maxNumbers = 64
	// maxDays limits the days for which a process keeps reserved numbers. If it has more, a new reservation drops all.
	maxDays = 7
)

// numbers reserves numbers of assets and gives them out. Each reservation for a day is twice as large as the
// previous one, up to maxNumbers. So a busy day costs few round trips, and a process that creates few assets leaves
// few numbers unused.
type numbers struct {
	take func(ctx context.Context, day string, count int) (first int, err error)
	turn chan struct{} // locks the field `have`; a caller waits for the lock until its context ends
	have map[string]stock
}

// stock has the numbers that a process has reserved for a day.
type stock struct {
	next, left int
	taken      int // count of numbers in the last reservation
}

func newNumbers(take func(ctx context.Context, day string, count int) (int, error)) *numbers {
	return &numbers{take: take, turn: make(chan struct{}, 1), have: map[string]stock{}}
}

func (n *numbers) next(ctx context.Context, day string) (int, error) {
	select {
	case n.turn <- struct{}{}:
		defer func() { <-n.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	stocked := n.have[day]
	if stocked.left == 0 {
		count := min(max(1, 2*stocked.taken), maxNumbers)
		first, err := n.take(ctx, day, count)
		if err != nil {
			return 0, err
		}
		stocked = stock{next: first, left: count, taken: count}
		if len(n.have) > maxDays {
			clear(n.have)
		}
	}
	number := stocked.next
	n.have[day] = stock{next: number + 1, left: stocked.left - 1, taken: stocked.taken}
	return number, nil
}

// NextNumber returns a number for an asset created on day.
func (s *Store) NextNumber(ctx context.Context, day string) (int, error) {
	return s.numbers.next(ctx, day)
}
