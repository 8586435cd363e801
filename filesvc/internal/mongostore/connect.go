package mongostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"asset-registry/shared/errs"
	"asset-registry/shared/sleep"
)

const (
	defaultDatabase = "assetregistry" // the same database as the assets
	idleConnection  = 5 * time.Minute
	prepareEvery    = time.Second
	firstTry        = 2 * time.Second // how long a start waits for MongoDB
)

// errAddress hides the driver's error, which may quote a password.
var errAddress = errors.New("the address of the MongoDB store is malformed")

func newStore(uri string, timeout time.Duration) *Store {
	return &Store{uri: uri, timeout: timeout, settled: 4*timeout + time.Second, stop: func() {}}
}

// Open connects to the database at the address `uri`, and creates indexes that are missing. Each operation takes at
// most the time `timeout`.
func Open(ctx context.Context, uri string, timeout time.Duration) (*Store, error) {
	s := newStore(uri, timeout)
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenLater does what Open does. But if the database does not answer, it returns a store nevertheless, and tries again
// until Close. After each try it calls the function `failed`, at the end with nil.
func OpenLater(ctx context.Context, uri string, timeout time.Duration, failed func(error)) (*Store, error) {
	s := newStore(uri, timeout)
	first, cancel := context.WithTimeout(ctx, firstTry)
	defer cancel()
	err := s.prepare(first)
	if errors.Is(err, errAddress) {
		return nil, err
	}
	if err != nil {
		failed(err)
		ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
		s.running.Go(func() { s.keepPreparing(ctx, failed) })
	}
	return s, nil
}

// keepPreparing calls prepare until it succeeds or ctx is done.
func (s *Store) keepPreparing(ctx context.Context, failed func(error)) {
	for sleep.For(ctx, prepareEvery) {
		err := s.prepare(ctx)
		if ctx.Err() != nil {
			return
		}
		if failed(err); err == nil {
			return
		}
	}
}

// prepare makes the client and the indexes.
func (s *Store) prepare(ctx context.Context) (err error) {
	defer func() {
		s.unready.Store(&err)
		if err == nil {
			s.unready.Store(nil)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.opened.Load() == nil {
		d, err := connect(ctx, s.uri, s.timeout)
		if err != nil {
			return err
		}
		s.opened.Store(d)
	}
	_, err = s.opened.Load().files.Indexes().CreateMany(ctx, []mongo.IndexModel{
		{Keys: bson.D{{Key: "broker", Value: 1}, {Key: "state", Value: 1}, {Key: "size", Value: 1}}},
		{Keys: bson.D{{Key: "broker", Value: 1}, {Key: "_id", Value: 1}}},
		{Keys: bson.D{{Key: "sha256", Value: 1}, {Key: "state", Value: 1}}},
	})
	return errs.In(err, "create indexes")
}

// connect makes the client. It does not wait for a server, but for DNS if the address begins with mongodb+srv.
func connect(ctx context.Context, uri string, timeout time.Duration) (*database, error) {
	if address, err := url.Parse(uri); err == nil && address.Scheme == connstring.SchemeMongoDBSRV {
		// Ask DNS here, with a deadline: the driver asks again, without a deadline.
		service := cmp.Or(address.Query().Get("srvServiceName"), "mongodb")
		if _, _, err := net.DefaultResolver.LookupSRV(ctx, service, "tcp", address.Hostname()); err != nil {
			return nil, fmt.Errorf("DNS does not tell the servers of the MongoDB store: %w", err)
		}
	}
	parsed, err := connstring.ParseAndValidate(uri)
	if unknown, ok := errors.AsType[*net.DNSError](err); ok {
		return nil, unknown
	}
	if err != nil {
		return nil, errAddress
	}
	journal := true
	client, err := mongo.Connect(options.Client().ApplyURI(uri).
		SetAppName("filesvc").
		SetTimeout(timeout).
		SetServerSelectionTimeout(timeout).
		SetConnectTimeout(timeout).
		SetMaxConnIdleTime(idleConnection).
		SetWriteConcern(&writeconcern.WriteConcern{W: "majority", Journal: &journal}).
		SetReadConcern(readconcern.Majority()).
		SetReadPreference(readpref.Primary()))
	if err != nil {
		return nil, fmt.Errorf("set up MongoDB client: %w", err)
	}
	db := client.Database(cmp.Or(parsed.Database, defaultDatabase))
	return &database{
		client, db.Collection("files"), db.Collection("files.usage"), db.Collection("files.state"),
		db.Collection("files.await"),
	}, nil
}
