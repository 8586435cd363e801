package mongostore

import (
	"fmt"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
)

// document is an asset as it is stored. A void has an id and a negative
// revision, and nothing else: so no guard matches it, and no page has it.
type document struct {
	ID       string       `bson:"_id"`
	Position int64        `bson:"position"` // µs since the Unix epoch
	Revision int64        `bson:"revision"`
	Listed   bool         `bson:"listed"`
	Test     bool         `bson:"test"`
	State    asset.Status `bson:"state,omitempty"` // none: of a void, and of what was written before there were any
	Sealed   string       `bson:"sealed"`
	Origin   string       `bson:"origin,omitempty"`
	Body     []byte       `bson:"body"`
	// Size is the length of Body, so that it is known before Body is read. Nil:
	// a version wrote the document that did not know it (addSizes).
	Size *int64 `bson:"size,omitempty"`
	// Trail has the position that made a revision, at the revision's slot,
	// for the newest of each slot. Revisions that a fence made have none.
	Trail map[string]int64 `bson:"trail"`
	// Log has the change that made a revision, at the revision's slot, as the trail.
	Log map[string][]byte `bson:"log,omitempty"`
}

// voidRevision is so low that no number of fences raises it to a real one.
const voidRevision = math.MinInt64 / 2

func (d document) isVoid() bool { return d.Revision < 0 }

// trailSlots is how many of its newest changes a document remembers. A writer
// looks its changes up within seconds of writing them.
const trailSlots = 16

// slotOf returns where the trail has the change that a write makes.
func slotOf(w feed.Write) string { return fmt.Sprint((w.Revision + 1) % trailSlots) }

// landed tells by its trail whether a write was applied to d. Positions in a
// slot only ever rise, and it takes as many revisions as there are slots until
// one is used again.
func (d document) landed(w feed.Write) feed.Answer {
	switch at := d.Trail[slotOf(w)]; {
	case at == w.Position:
		return feed.Yes
	case at > w.Position && d.Revision > w.Revision+trailSlots:
		return feed.Maybe
	default:
		return feed.No
	}
}

// newDocument is what a write that creates an asset inserts.
func newDocument(w feed.Write, r registry.Record) document {
	return document{
		ID:       w.ID,
		Position: w.Position,
		Revision: w.Revision + 1,
		Listed:   r.Listed,
		Test:     r.Test,
		State:    r.State,
		Sealed:   r.Sealed,
		Origin:   r.Origin,
		Body:     r.Body,
		Size:     sizeOf(r),
		Trail:    map[string]int64{slotOf(w): w.Position},
		Log:      newLog(registry.Revision{Revision: w.Revision + 1, Position: w.Position, Change: r.Change}),
	}
}

// update is what a write that changes an asset sets.
func update(w feed.Write, r registry.Record) bson.D {
	set := bson.D{
		{Key: "position", Value: w.Position},
		{Key: "revision", Value: w.Revision + 1},
		{Key: "listed", Value: r.Listed},
		{Key: "test", Value: r.Test},
		{Key: "state", Value: r.State},
		{Key: "sealed", Value: r.Sealed},
		{Key: "origin", Value: r.Origin},
		{Key: "body", Value: r.Body},
		{Key: "size", Value: sizeOf(r)},
		{Key: "trail." + slotOf(w), Value: w.Position},
	}
	for slot, kept := range newLog(registry.Revision{Revision: w.Revision + 1, Position: w.Position, Change: r.Change}) {
		set = append(set, bson.E{Key: "log." + slot, Value: kept})
	}
	return bson.D{{Key: "$set", Value: set}}
}

func sizeOf(r registry.Record) *int64 {
	size := int64(len(r.Body))
	return &size
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
		Body:     d.Body,
	}
}
