package mongostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"asset-registry/shared/errs"
)

// database holds the collections, and creates the sessions for operations on them. The client and the collections are
// set once the field `opened` is true.
type database struct {
	uri     string
	also    []*options.ClientOptions
	timeout time.Duration // of one operation
	opened  atomic.Bool
	set     string // name of the replica set in the address; "": the address names none

	client  *mongo.Client
	assets  *mongo.Collection
	changes *mongo.Collection
	clocks  *mongo.Collection
	log     *mongo.Collection
	days    *mongo.Collection

	references *mongo.Collection // keys of references of brokers, with the ids of their assets

	hooks   *mongo.Collection
	senders *mongo.Collection
	endings *mongo.Collection              // of keys (endings.go)
	seen    atomic.Pointer[bson.Timestamp] // newest operation time that this process knows of
	barrier *barrier                       // for fresh reads; nil: reads do not wait for barriers

	removals sync.WaitGroup         // the removals that are under way (feedStore.Open)
	horizon  atomic.Int64           // highest horizon that this process has read
	looked   atomic.Pointer[former] // trails of the assets in the batch that the writer opens

	sharing sync.Mutex              // held while a reading of the clock is made for those who take a recent one
	recent  atomic.Pointer[reading] // the last reading of the horizon; nil: none yet

	mostAbove int64 // maximum number of assets above the horizon that a page looks at (moved.go)
}

const (
	idleConnection  = 5 * time.Minute
	defaultDatabase = "assetregistry"
	leastPool       = 8 // connections that the driver keeps open to each server
	mostConnecting  = 8 // connections to one server that are being made at the same time
)

// errAddress hides the driver's error, which may quote a password.
var errAddress = errors.New("the address of the MongoDB store is malformed")

// errNotOpened is returned until DNS has answered with the names of the servers.
var errNotOpened = errors.New("DNS does not tell the servers of the MongoDB store yet")

// connect returns the database that uri names, or "assetregistry" if uri names no database. It does not wait for a
// server. If the scheme of uri is mongodb+srv, the method `open` must be called before the database is used.
func connect(uri string, timeout time.Duration, also ...*options.ClientOptions) (*database, error) {
	d := &database{uri: uri, also: also, timeout: timeout, mostAbove: mostAbove}
	if strings.HasPrefix(uri, connstring.SchemeMongoDBSRV+"://") {
		return d, nil
	}
	return d, d.makeClient()
}

// open asks DNS for the servers of a mongodb+srv address and makes the client. If the database is opened already,
// it does nothing. Calls must not overlap.
func (d *database) open(ctx context.Context) error {
	if d.opened.Load() {
		return nil
	}
	address, err := url.Parse(d.uri)
	if err != nil {
		return errAddress
	}
	service := address.Query().Get("srvServiceName")
	service = cmp.Or(service, "mongodb")
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	// Ask DNS here, with a deadline: makeClient lets the driver ask again, without a deadline.
	if _, _, err := net.DefaultResolver.LookupSRV(ctx, service, "tcp", address.Hostname()); err != nil {
		return fmt.Errorf("%w: check the name %s: %w", errNotOpened, address.Hostname(), err)
	}
	return d.makeClient()
}

// makeClient makes the client and the collections.
func (d *database) makeClient() error {
	parsed, err := connstring.ParseAndValidate(d.uri)
	if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
		return fmt.Errorf("%w: %w", errNotOpened, unknown)
	}
	if err != nil {
		return errAddress
	}
	name := parsed.Database
	name = cmp.Or(name, defaultDatabase)
	journal := true
	defaults := options.Client().SetMinPoolSize(leastPool).SetMaxConnecting(mostConnecting)
	if parsed.MaxPoolSizeSet && parsed.MaxPoolSize > 0 {
		defaults.SetMinPoolSize(min(leastPool, parsed.MaxPoolSize))
	}
	ours := options.Client().ApplyURI(d.uri).
		SetAppName("assetsvc").
		SetTimeout(d.timeout).
		SetServerSelectionTimeout(d.timeout).
		SetConnectTimeout(d.timeout).
		SetMaxConnIdleTime(idleConnection).
		SetWriteConcern(&writeconcern.WriteConcern{W: "majority", Journal: &journal}).
		SetReadConcern(readconcern.Majority()).
		SetReadPreference(readpref.Primary())
	all := options.MergeClientOptions(append(append([]*options.ClientOptions{defaults}, d.also...), ours)...)
	client, err := mongo.Connect(all.SetMonitor(d.listening(all.Monitor)))
	if err != nil {
		return fmt.Errorf("set up MongoDB client: %w", err)
	}
	d.set, d.client = parsed.ReplicaSet, client
	db := client.Database(name)
	d.assets, d.changes, d.clocks = db.Collection("assets"), db.Collection("changes"), db.Collection("clock")
	d.log, d.days = db.Collection("log"), db.Collection("numbers")
	d.references = db.Collection("references")
	d.hooks, d.senders = db.Collection("webhooks"), db.Collection("senders")
	d.endings = db.Collection("endings")
	d.opened.Store(true)
	return nil
}

func (d *database) disconnect() error {
	if !d.opened.Load() {
		return nil
	}
	d.removals.Wait()
	d.recent.Store(nil)
	ctx, cancel := context.WithTimeout(context.Background(), d.timeout)
	defer cancel()
	return errs.In(d.client.Disconnect(ctx), "disconnect from MongoDB")
}
