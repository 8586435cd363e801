package mongostore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/registry"
)

// newLog returns the log that changes make, each at its slot; those without a
// Change are left out. Each is its revision and position, in 8 bytes each, and
// the Change: a document of few values is read faster than one of many.
func newLog(changes ...registry.Revision) map[string][]byte {
	log := map[string][]byte{}
	for _, c := range changes {
		if len(c.Change) > 0 {
			numbers := binary.BigEndian.AppendUint64(nil, uint64(c.Revision))
			numbers = binary.BigEndian.AppendUint64(numbers, uint64(c.Position))
			log[fmt.Sprint(c.Revision%registry.MaxLog)] = append(numbers, c.Change...)
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
	return found.log()
}

// log returns the changes of the newest revisions. A slot may have an older
// one, where the revision that it is for was made by a fence.
func (d document) log() ([]registry.Revision, error) {
	var kept []registry.Revision
	for slot, l := range d.Log {
		if len(l) < 16 {
			return nil, fmt.Errorf("slot %s of the log of asset %s is cut off", slot, d.ID)
		}
		r := registry.Revision{Revision: int64(binary.BigEndian.Uint64(l)), Position: int64(binary.BigEndian.Uint64(l[8:])), Change: l[16:]}
		if r.Revision > d.Revision-registry.MaxLog {
			kept = append(kept, r)
		}
	}
	slices.SortFunc(kept, func(a, b registry.Revision) int { return cmp.Compare(b.Revision, a.Revision) })
	return kept, nil
}
