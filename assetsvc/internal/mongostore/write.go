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
