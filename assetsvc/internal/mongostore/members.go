package mongostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/shared/lease"
)

// members is the set of the registered writers, as one writer sees it. It is the
// lease.Group of that writer. The set is in the clock:
//
//   - writers: the names. While there are any, Open is for them only.
//   - renewed: how often each has renewed its registration.
type members struct {
	db     *database
	writer string
	joined atomic.Bool // the writer has asked to be registered
	start  func()      // makes the writer join
}

// errUnregistered is returned by Open for a writer that is not registered while others are,
// or that has joined them and was removed.
var errUnregistered = errors.New("the writer is not registered, and waits until it is")

// errUnannounced is returned by Renew while a writer that is not registered has a batch open.
// It does not announce the batch.
var errUnannounced = errors.New("no leases are granted: a writer that is not registered writes to the same store")

// errOldReads is returned by Renew for a store without fresh reads. A gateway could keep an
// answer of a primary that was voted out.
var errOldReads = errors.New("no leases are granted: this service joined others that announce their writes, " +
	"and makes no fresh reads")

// guard matches a clock in which the writer may open a batch. A nil m is never registered.
func (m *members) guard() bson.E {
	if m != nil && m.joined.Load() {
		return bson.E{Key: "writers", Value: m.writer}
	}
	return bson.E{Key: "writers.0", Value: bson.D{{Key: "$exists", Value: false}}}
}

// refused returns the error of an Open that only the guard can have refused. It makes the
// writer join the others.
func (m *members) refused() error {
	if m != nil {
		m.start()
	}
	return errUnregistered
}

// Join implements lease.Group.
func (m *members) Join(ctx context.Context) error {
	m.joined.Store(true)
	return m.db.do(ctx, func(ctx context.Context) error {
		result, err := m.db.clocks.UpdateOne(ctx, withID(clockID), bson.D{
			{Key: "$addToSet", Value: bson.D{{Key: "writers", Value: m.writer}}},
			{Key: "$set", Value: bson.D{{Key: "renewed." + m.writer, Value: int64(1)}}},
		})
		if err != nil {
			return fmt.Errorf("register writer: %w", err)
		}
		if result.MatchedCount == 0 {
			return errNoClock
		}
		return nil
	})
}

// Renew implements lease.Group. It is a write, so that a primary that was voted out cannot
// answer it.
func (m *members) Renew(ctx context.Context) (names []string, err error) {
	var now clock
	err = m.db.do(ctx, func(ctx context.Context) error {
		return m.db.clocks.FindOneAndUpdate(ctx,
			append(withID(clockID), bson.E{Key: "writers", Value: m.writer}),
			bson.D{{Key: "$inc", Value: bson.D{{Key: "renewed." + m.writer, Value: int64(1)}}}},
			options.FindOneAndUpdate().SetReturnDocument(options.After),
		).Decode(&now)
	})
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return nil, lease.ErrNotMember
	case err != nil:
		return nil, fmt.Errorf("renew registration: %w", err)
	}
	if m.db.barrier == nil {
		return nil, errOldReads
	}
	for writer := range now.Open {
		if !slices.Contains(now.Writers, writer) {
			return nil, errUnannounced
		}
	}
	return now.Writers, nil
}

// Leave implements lease.Group.
func (m *members) Leave(ctx context.Context) error {
	_, err := m.db.remove(ctx, m.writer)
	return err
}

// remove removes a writer that has no open batch. Also are further conditions.
func (d *database) remove(ctx context.Context, writer string, also ...bson.E) (removed bool, err error) {
	err = d.do(ctx, func(ctx context.Context) error {
		none := bson.E{Key: "open." + writer, Value: bson.D{{Key: "$exists", Value: false}}}
		result, err := d.clocks.UpdateOne(ctx, append(append(withID(clockID), none), also...), bson.D{
			{Key: "$pull", Value: bson.D{{Key: "writers", Value: writer}}},
			{Key: "$unset", Value: bson.D{{Key: "renewed." + writer, Value: ""}}},
		})
		removed = err == nil && result.MatchedCount == 1
		return err
	})
	if err != nil {
		return false, fmt.Errorf("remove writer: %w", err)
	}
	return removed, nil
}

// renewals remembers when each writer's renewal was first seen.
type renewals map[string]renewal

type renewal struct {
	count int64
	since time.Time
}

// removeDead removes the writers that have not renewed for longer than a lease, by the clock
// of this process. A batch of theirs must be fenced first.
func (s *Store) removeDead(ctx context.Context, now clock, seen renewals) error {
	for writer := range seen {
		if _, is := now.Renewed[writer]; !is {
			delete(seen, writer)
		}
	}
	for writer, count := range now.Renewed {
		if seen[writer].count != count {
			seen[writer] = renewal{count, time.Now()}
		}
		if time.Since(seen[writer].since) < lease.Length {
			continue
		}
		removed, err := s.db.remove(ctx, writer, bson.E{Key: "renewed." + writer, Value: count})
		if err != nil {
			return err
		}
		if removed {
			s.log.Warn("removed a writer that does not renew its registration", "writer", writer)
		}
	}
	return nil
}
