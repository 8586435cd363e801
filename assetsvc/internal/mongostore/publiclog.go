package mongostore

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/shared/errs"
	"asset-registry/shared/translog"
)

// headID is the id of the document that has the head of the public log. The other documents of the collection are
// full parts of the log.
const headID = "head"

// logHead is the head of the public log (publiclog.Head).
type logHead struct {
	ID         string `bson:"_id"`
	Version    int64  `bson:"version"`
	Position   int64  `bson:"position"`
	Tree       []byte `bson:"tree"`
	Checkpoint []byte `bson:"checkpoint,omitempty"`
}

// logPart is a full part of the public log.
type logPart struct {
	ID   string `bson:"_id"` // its path
	Data []byte `bson:"data"`
}

func (s *Store) LogHead(ctx context.Context) (head publiclog.Head, err error) {
	var found logHead
	err = s.db.do(ctx, func(ctx context.Context) error {
		return s.db.log.FindOne(ctx, withID(headID)).Decode(&found)
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		return head, nil
	}
	if err != nil {
		return head, fmt.Errorf("read the head of the log: %w", err)
	}
	head = publiclog.Head{Version: found.Version, Position: found.Position, Checkpoint: found.Checkpoint}
	return head, head.Tree.UnmarshalBinary(found.Tree)
}

func (s *Store) ExtendLog(ctx context.Context, head publiclog.Head, parts []translog.Part) (stored bool, err error) {
	tree, err := head.Tree.MarshalBinary()
	if err != nil {
		return false, fmt.Errorf("encode the head of the log: %w", err)
	}
	next := logHead{headID, head.Version + 1, head.Position, tree, head.Checkpoint}
	err = s.db.do(ctx, func(ctx context.Context) error {
		if err := s.db.addParts(ctx, parts); err != nil {
			return err
		}
		stored, err = s.db.replaceHead(ctx, next)
		return err
	})
	return stored, errs.In(err, "store the log")
}

// addParts stores full parts. Parts that are in the store already stay unchanged.
func (d *database) addParts(ctx context.Context, parts []translog.Part) error {
	if len(parts) == 0 {
		return nil
	}
	documents := make([]any, len(parts))
	for i, part := range parts {
		documents[i] = logPart{part.Tile.Path(), part.Data}
	}
	_, err := d.log.InsertMany(ctx, documents, options.InsertMany().SetOrdered(false))
	if onlyDuplicates(err) {
		return nil
	}
	return err
}

// replaceHead stores a head if the version of the stored head is one lower.
func (d *database) replaceHead(ctx context.Context, next logHead) (stored bool, err error) {
	if next.Version == 1 {
		_, err := d.log.InsertOne(ctx, next)
		if isDuplicate(err) {
			return false, nil
		}
		return err == nil, err
	}
	before := append(withID(headID), bson.E{Key: "version", Value: next.Version - 1})
	result, err := d.log.ReplaceOne(ctx, before, next)
	if err != nil {
		return false, err
	}
	return result.MatchedCount == 1, nil
}

func (s *Store) LogPart(ctx context.Context, tile translog.Tile) ([]byte, error) {
	var found logPart
	err := s.db.do(ctx, func(ctx context.Context) error {
		return s.db.log.FindOne(ctx, withID(tile.Path())).Decode(&found)
	})
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return nil, publiclog.ErrNoPart
	case err != nil:
		return nil, fmt.Errorf("read a part of the log: %w", err)
	}
	return found.Data, nil
}
