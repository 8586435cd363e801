package mongostore

import (
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// isDuplicate tells whether a write failed because its document exists, as a majority of
// the replica set knows. Without the majority the document may be rolled back.
func isDuplicate(err error) bool {
	var write mongo.WriteException
	if errors.As(err, &write) && write.WriteConcernError != nil {
		return false
	}
	return mongo.IsDuplicateKeyError(err)
}

// placed are the commands that read or write as of a majority.
var placed = []string{"find", "aggregate", "getMore", "insert", "update", "delete", "findAndModify"}

// sees advances the newest operation that this process knows of to the time of an answer.
// It leaves out times that a majority may not have reached, because a read after such a
// time waits: those of failed commands, of writes without a majority, and of commands
// without a read concern, such as hello and killCursors.
func (d *database) sees(e *event.CommandSucceededEvent) {
	if !slices.Contains(placed, e.CommandName) {
		return
	}
	if _, err := e.Reply.LookupErr("writeConcernError"); err == nil {
		return
	}
	if at, i, ok := e.Reply.Lookup("operationTime").TimestampOK(); ok {
		d.advance(&bson.Timestamp{T: at, I: i})
	}
}

// listening returns a monitor that reports to d and to another one, unless that is nil.
func (d *database) listening(other *event.CommandMonitor) *event.CommandMonitor {
	if other == nil {
		other = &event.CommandMonitor{}
	}
	both := *other
	both.Succeeded = func(ctx context.Context, e *event.CommandSucceededEvent) {
		d.sees(e)
		if other.Succeeded != nil {
			other.Succeeded(ctx, e)
		}
	}
	return &both
}
