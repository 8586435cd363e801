package mongostore

import (
	"fmt"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/feed"
	"asset-registry/assetsvc/internal/registry"
)

// document is a stored asset, or a void. A void has only an id and a negative
// revision, so no guard matches it and no page shows it.
type document struct {
	ID       string       `bson:"_id"`
	Position int64        `bson:"position"` // µs since the Unix epoch
	Revision int64        `bson:"revision"`
	Listed   bool         `bson:"listed"`
	Test     bool         `bson:"test"`
	State    asset.Status `bson:"state,omitempty"` // voids and documents of earlier versions have none
	Sealed   string       `bson:"sealed"`
	Origin   string       `bson:"origin,omitempty"`
	Body     []byte       `bson:"body"`
	// Size is the length of Body, to select documents without reading Body.
	// Documents of earlier versions have none until addSizes adds it.
	Size *int64 `bson:"size,omitempty"`
	// Trail maps a slot to the position of the newest change in that slot. The
	// slot follows from the revision. Revisions made by fences are not in it.
	Trail map[string]int64 `bson:"trail"`
	// Log maps a slot to the newest change in that slot (newLog).
	Log map[string][]byte `bson:"log,omitempty"`
}

// voidRevision is the revision of a new void. It is so low that fences, which
// raise it by one each, never make it a real revision.
const voidRevision = math.MinInt64 / 2

func (d document) isVoid() bool { return d.Revision < 0 }

// trailSlots is the number of newest changes in a trail. A writer looks its
// changes up within seconds of writing them.
const trailSlots = 16

// slotOf returns the slot of the trail for the change that a write makes.
func slotOf(w feed.Write) string { return fmt.Sprint((w.Revision + 1) % trailSlots) }

// landed tells from the trail of d whether a write was applied. Positions in a
// slot only rise, and a slot is used again only after trailSlots revisions.
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

// newDocument returns the document that creates an asset.
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

// update returns the update that changes an asset.
func update(w feed.Write, r registry.Record) bson.D {
	fields := bson.D{
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
	for slot, entry := range newLog(registry.Revision{Revision: w.Revision + 1, Position: w.Position, Change: r.Change}) {
		fields = append(fields, bson.E{Key: "log." + slot, Value: entry})
	}
	return set(fields...)
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
