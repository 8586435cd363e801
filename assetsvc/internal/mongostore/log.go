package mongostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/registry"
)

// logged is a change as a document's log has it.
type logged struct {
	Revision int64  `bson:"revision"`
	Position int64  `bson:"position"`
	Change   []byte `bson:"change"`
}

// newLog returns the log that changes make, each at its slot; those without a
// Change are left out.
func newLog(changes ...registry.Revision) map[string]logged {
	log := map[string]logged{}
	for _, c := range changes {
		if len(c.Change) > 0 {
			log[fmt.Sprint(c.Revision%registry.MaxLog)] = logged{c.Revision, c.Position, c.Change}
		}
	}
	return log
}

// Log returns what is kept of an asset's changes, the newest first.
func (s *Store) Log(ctx context.Context, id string) ([]registry.Revision, error) {
	var found document
	err := s.db.do(ctx, func(ctx context.Context) error {
		return s.db.assets.FindOne(ctx, bson.D{{Key: "_id", Value: id}},
			options.FindOne().SetProjection(bson.D{{Key: "revision", Value: 1}, {Key: "log", Value: 1}})).Decode(&found)
	})
	switch {
	case errors.Is(err, mongo.ErrNoDocuments) || err == nil && found.isVoid():
		return nil, registry.ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("get log: %w", err)
	}
	return found.log(), nil
}

// log returns the changes of the newest revisions. A slot may have an older
// one, where the revision that it is for was made by a fence.
func (d document) log() []registry.Revision {
	var kept []registry.Revision
	for _, l := range d.Log {
		if l.Revision > d.Revision-registry.MaxLog {
			kept = append(kept, registry.Revision{Revision: l.Revision, Position: l.Position, Change: l.Change})
		}
	}
	slices.SortFunc(kept, func(a, b registry.Revision) int { return cmp.Compare(b.Revision, a.Revision) })
	return kept
}
