// Command mongodrop drops the databases that a run of `make test-mongo` has created on the server of MONGODB_URI.
// Their names begin with MONGODB_RUN and a hyphen. The database user needs the role dbAdminAnyDatabase.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/shared/mongotest"
)

func main() {
	if err := run(os.Getenv("MONGODB_URI"), os.Getenv(mongotest.RunVariable)); err != nil {
		fmt.Fprintln(os.Stderr, "mongodrop:", err)
		os.Exit(1)
	}
}

// run drops all databases of one test run on the server at uri. Their names begin with the text in the parameter
// `of` and a hyphen.
func run(uri, of string) (err error) {
	if uri == "" || of == "" {
		return errors.New("MONGODB_URI or MONGODB_RUN is not set")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		// The message does not contain err, because err may quote a password.
		return errors.New("the address in MONGODB_URI is malformed")
	}
	defer func() { err = errors.Join(err, client.Disconnect(ctx)) }()
	ours := bson.D{{Key: "name", Value: bson.Regex{Pattern: "^" + of + "-"}}}
	names, err := client.ListDatabaseNames(ctx, ours)
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	for _, name := range names {
		if err := client.Database(name).Drop(ctx); err != nil {
			return fmt.Errorf("drop %s: %w", name, err)
		}
	}
	fmt.Printf("dropped the %d databases of this run\n", len(names))
	return nil
}
