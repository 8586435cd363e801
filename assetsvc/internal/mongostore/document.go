package mongostore

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
)

// document is a stored asset, or a void. A fence inserts a void for each asset that the fenced batch has not created. A
// void has only an id and a negative revision, so no guard matches it and no page shows it.
type document struct {
	ID       string       `bson:"_id"`
	Position int64        `bson:"position"` // µs since the Unix epoch
	Revision int64        `bson:"revision"`
	Listed   bool         `bson:"listed"`
	Test     bool         `bson:"test"`
	State    asset.Status `bson:"state,omitempty"` // voids have none
	Owner    string       `bson:"owner,omitempty"` // absent in voids, and in assets of an old program (owners.go)
	Sealed   string       `bson:"sealed"`
	Origin   string       `bson:"origin,omitempty"`
	Removed  bool         `bson:"removed,omitempty"` // registry.Record.Removed
	Body     []byte       `bson:"body"`
	Size     int64        `bson:"size"` // length of Body, to select documents without reading Body
	moved    bool         // the asset has moved since: Position is a former place, and Body is empty
	Former   []place      `bson:"former,omitempty"` // places before Position (moved.go)
}

// voidRevision is the revision of a new void. Each fence raises the revision by one. The number is so low that raising
// it never leads to the revision of an asset.
const voidRevision = math.MinInt64 / 2

func (d document) isVoid() bool { return d.Revision < 0 }

// newDocument returns the document that is inserted to create an asset.
func newDocument(w feed.Write, r registry.Record) document {
	d := storedAs(r)
	d.ID, d.Position, d.Revision, d.Owner = w.ID, w.Position, w.Revision+1, r.Owner
	return d
}

// storedAs returns the document of an asset whose former places are not known. It has no owner (owners.go).
func storedAs(r registry.Record) document {
	return document{
		Former:   placesOf(feed.NewTrail()),
		ID:       r.ID,
		Position: r.Position,
		Revision: r.Revision,
		Listed:   r.Listed,
		Test:     r.Test,
		State:    r.State,
		Sealed:   r.Sealed,
		Origin:   r.Origin,
		Removed:  r.Removed,
		Body:     r.Body,
		Size:     int64(len(r.Body)),
	}
}

// update returns the update that changes the document of an asset. The parameter `former` is the new list of former
// places.
func update(w feed.Write, r registry.Record, former feed.Trail) bson.D {
	change := bson.D{
		{Key: "former", Value: placesOf(former)},
		{Key: "position", Value: w.Position},
		{Key: "revision", Value: w.Revision + 1},
		{Key: "listed", Value: r.Listed},
		{Key: "test", Value: r.Test},
		{Key: "state", Value: r.State},
		{Key: "owner", Value: r.Owner},
		{Key: "sealed", Value: r.Sealed},
		{Key: "origin", Value: r.Origin},
		{Key: "body", Value: r.Body},
		{Key: "size", Value: int64(len(r.Body))},
	}
	if r.Removed {
		change = append(change, bson.E{Key: "removed", Value: true})
	}
	return set(change...)
}

func (d document) record() registry.Record {
	return registry.Record{
		ID:       d.ID,
		Position: d.Position,
		Revision: d.Revision,
		Listed:   d.Listed,
		Test:     d.Test,
		State:    d.State,
		Sealed:   d.Sealed,
		Origin:   d.Origin,
		Removed:  d.Removed,
		Body:     d.Body,
	}
}

// withID is a filter for the document with this id.
func withID(id string) bson.D { return bson.D{{Key: "_id", Value: id}} }

// withIDs is a filter for the documents with these ids.
func withIDs(ids []string) bson.D {
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}
}

// afterID is a filter for the documents whose id is greater than the given one.
func afterID(id string) bson.E {
	return bson.E{Key: "_id", Value: bson.D{{Key: "$gt", Value: id}}}
}

// The function `only` is a projection that returns the id and the named fields.
func only(names ...string) bson.D {
	fields := make(bson.D, len(names))
	for i, name := range names {
		fields[i] = bson.E{Key: name, Value: 1}
	}
	return fields
}

// set is an update that sets fields.
func set(fields ...bson.E) bson.D {
	return bson.D{{Key: "$set", Value: bson.D(fields)}}
}
