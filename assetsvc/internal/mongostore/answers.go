package mongostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// isDuplicate reports whether a write failed because its document exists already, and a majority of the replica
// set has that document. Without a majority the document may still be rolled back, so isDuplicate returns false.
func isDuplicate(err error) bool {
	var write mongo.WriteException
	if errors.As(err, &write) && write.WriteConcernError != nil {
		return false
	}
	return mongo.IsDuplicateKeyError(err)
}

// explained returns err, unless the configuration is at fault. Then it returns an error whose text says in one line
// what to check, because MongoDB's own text is long and quotes the command.
func (d *database) explained(err error) error {
	var selection topology.ServerSelectionError
	var authentication *auth.Error
	var command mongo.ServerError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &authentication) || strings.Contains(err.Error(), authentications):
		return explainedError{"MongoDB refuses the user or the password of the store: check both, and authSource in the " +
			"address (without it, the user is looked for in the database that the address names)", err}
	case errors.As(err, &command) && command.HasErrorCode(unauthorized):
		return explainedError{fmt.Sprintf("the user of the MongoDB store may not use the database %s: check its name in "+
			"the address, and that the user has the role readWrite there", d.assets.Database().Name()), err}
	case errors.As(err, &selection) && len(selection.Desc.Servers) == 0 && d.set != "":
		return explainedError{fmt.Sprintf("no server in the address of the MongoDB store belongs to the replica set %s: "+
			"check replicaSet in the address", d.set), err}
	}
	return err
}

// authentications is the text by which the method `explained` recognizes some errors. If one connection of a pool
// fails to log in, the driver closes the pool's other connections with an error that contains this text.
const authentications = "auth error: "

// unauthorized is MongoDB's error code for a user without a role.
const unauthorized = 13

// explainedError replaces the text of another error.
type explainedError struct {
	text  string
	cause error
}

func (e explainedError) Error() string { return e.text }
func (e explainedError) Unwrap() error { return e.cause }

// placed are the commands that read or write data with the concern "majority".
var placed = []string{"find", "aggregate", "getMore", "insert", "update", "delete", "findAndModify"}

// The method `sees` remembers the operation time of an answer, unless an earlier answer had a later time. Later
// reads wait until their server has reached this time, so it must be a time that a majority has reached. Therefore
// the method ignores the answers to failed commands, to writes without a majority, and to commands without a read
// concern, such as hello and killCursors.
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

// The method `listening` returns a monitor that reports to d, and to the monitor `other` if that is not nil.
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
