package mongostore

import (
	"context"
	"encoding/json"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/shared/authapi"
	"asset-registry/shared/errs"
)

// endingDoc is the document of an ending.
type endingDoc struct {
	ID   string `bson:"_id"`
	Seq  int64  `bson:"seq"`
	Text string `bson:"text"` // the JSON of the ending
}

func (s *Store) KeepEndings(ctx context.Context, endings []authapi.Ending) error {
	err := s.db.do(ctx, func(ctx context.Context) error {
		for _, e := range endings {
			text, err := json.Marshal(e)
			if err != nil {
				return err
			}
			older := append(withID(e.ID), bson.E{Key: "seq", Value: bson.D{{Key: "$lt", Value: e.Seq}}})
			_, err = s.db.endings.UpdateOne(ctx, older,
				set(bson.E{Key: "seq", Value: e.Seq}, bson.E{Key: "text", Value: string(text)}),
				options.UpdateOne().SetUpsert(true))
			if err != nil && !isDuplicate(err) { // a duplicate stands with as great a number
				return err
			}
		}
		return nil
	})
	return errs.In(err, "keep endings")
}

func (s *Store) Ending(ctx context.Context, id string) (e authapi.Ending, err error) {
	var found endingDoc
	err = s.db.do(ctx, func(ctx context.Context) error { return s.db.endings.FindOne(ctx, withID(id)).Decode(&found) })
	if errors.Is(err, mongo.ErrNoDocuments) {
		return e, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(found.Text), &e)
	}
	return e, errs.In(err, "load an ending")
}

func (s *Store) Endings(ctx context.Context, after string, limit int) (found []authapi.Ending, err error) {
	var documents []endingDoc
	err = s.db.do(ctx, func(ctx context.Context) (err error) {
		documents, err = findAll[endingDoc](ctx, s.db.endings, bson.D{afterID(after)},
			options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(int64(limit)))
		return err
	})
	for _, d := range documents {
		var e authapi.Ending
		if err = errors.Join(err, json.Unmarshal([]byte(d.Text), &e)); err == nil {
			found = append(found, e)
		}
	}
	return found, errs.In(err, "list endings")
}
