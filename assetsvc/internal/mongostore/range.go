package mongostore

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/errs"
)

// Range returns listed assets in the order of their ids. It first reads the sizes of the next q.Limit documents,
// and then the bodies that fit on the page. Both reads use the index by id. So a page looks at no more than
// q.Limit documents, even if many of them are drafts and voids.
func (s *Store) Range(ctx context.Context, q registry.RangeQuery) (page registry.RangePage, err error) {
	err = s.db.do(ctx, func(ctx context.Context) error {
		onwards := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: q.From}}}}
		looked, err := s.db.byID(ctx, onwards, q.Limit, "listed", "size")
		if err != nil || len(looked) == 0 {
			return err
		}
		fit := fittingListed(looked, q.Bytes)
		last := looked[fit-1].ID
		if fit < len(looked) || len(looked) == q.Limit {
			page.Next = registry.NextID(last)
		}
		within := bson.D{
			{Key: "_id", Value: bson.D{{Key: "$gte", Value: q.From}, {Key: "$lte", Value: last}}},
			{Key: "listed", Value: true},
		}
		// The second read also finds assets that were created since the first read. So the limit may end the page before
		// the id in `last`.
		found, err := s.db.byID(ctx, within, q.Limit, "position", "body")
		for _, d := range found {
			page.Entries = append(page.Entries, registry.Entry{ID: d.ID, Position: d.Position, Body: d.Body})
		}
		if err == nil && len(found) == q.Limit {
			page.Next = registry.NextID(found[len(found)-1].ID)
		}
		return err
	})
	return page, errs.In(err, "read assets by id")
}

// byID returns some fields of the first documents, in the order of their ids. The parameter `limit` is the largest
// number of documents.
func (d *database) byID(ctx context.Context, filter bson.D, limit int, names ...string) ([]document, error) {
	return d.page(ctx, filter, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(int64(limit)).
		SetProjection(only(names...)))
}

// fittingListed returns the number of documents, from the first one, that fit on a page. The bodies of the listed
// documents among them have at most `most` bytes together. The first listed body always fits.
func fittingListed(looked []document, most int) int {
	sum := 0
	for i, d := range looked {
		if !d.Listed {
			continue
		}
		size := int(d.Size)
		if sum += size; sum > most && sum > size {
			return i
		}
	}
	return len(looked)
}
