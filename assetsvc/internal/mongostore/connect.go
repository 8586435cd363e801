package mongostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"

	"asset-registry/shared/dataformat"
	"asset-registry/shared/errs"
	"asset-registry/shared/fair"
	"asset-registry/shared/telemetry"
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
	service := cmp.Or(address.Query().Get("srvServiceName"), "mongodb")
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
	name := cmp.Or(parsed.Database, defaultDatabase)
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

// The method `do` runs operations in one session, with one deadline for all of them. The session sees everything that
// this process has seen before. Errors of the configuration say in one line what an operator can check. While a
// reading waits for MongoDB, it has no place.
func (d *database) do(ctx context.Context, operations func(context.Context) error) error {
	if !d.opened.Load() {
		return errNotOpened
	}
	return fair.Rest(ctx, func() error { return d.inSession(ctx, operations) })
}

func (d *database) inSession(ctx context.Context, operations func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	session, err := d.client.StartSession()
	if err != nil {
		return fmt.Errorf("start session: %w", err)
	}
	defer session.EndSession(context.WithoutCancel(ctx))
	if seen := d.seen.Load(); seen != nil {
		if err := session.AdvanceOperationTime(seen); err != nil {
			return fmt.Errorf("advance session: %w", err)
		}
	}
	return d.explained(operations(mongo.NewSessionContext(ctx, session)))
}

// advance stores t in the field `seen` if t is later than the time there. A nil t changes nothing.
func (d *database) advance(t *bson.Timestamp) {
	for t != nil {
		seen := d.seen.Load()
		if seen != nil && seen.Compare(*t) >= 0 || d.seen.CompareAndSwap(seen, t) {
			return
		}
	}
}

// errForeign is returned for a database that contains something other than assets, or assets in another format.
var errForeign = errors.New("the MongoDB database cannot be read")

// claim creates the clock if it is missing, and checks the format of the database. Several processes may do this
// at the same time.
func (d *database) claim(ctx context.Context) error {
	return d.do(ctx, func(ctx context.Context) error {
		if err := d.createClock(ctx, newClock()); err != nil {
			return err
		}
		found, err := d.readFormat(ctx)
		if err != nil {
			return err
		}
		if found != format {
			return fmt.Errorf("%w: %w", errForeign, dataformat.Refusal(found, format))
		}
		return nil
	})
}

// takeNumbers reserves asset numbers for a day, as many as the parameter `count` says, and returns the first of them.
func (d *database) takeNumbers(ctx context.Context, day string, count int) (first int, err error) {
	var after struct {
		Last int64 `bson:"last"`
	}
	err = d.do(ctx, func(ctx context.Context) error {
		return d.days.FindOneAndUpdate(ctx, withID(day),
			bson.D{{Key: "$inc", Value: bson.D{{Key: "last", Value: int64(count)}}}},
			options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After),
		).Decode(&after)
	})
	if err != nil {
		return 0, fmt.Errorf("take numbers of %s: %w", day, err)
	}
	return int(after.Last) - count + 1, nil
}

// connections keeps counts from the driver's events: about its connections to each server, and about the primary,
// which is the server that takes writes.
type connections struct {
	mu        sync.Mutex
	pools     map[string]*telemetry.Pool // by server; Idle is 0 here, poolStates computes it
	open      map[string]int64           // open connections, by server
	primary   string                     // address of the primary; "": no primary is known
	last      string                     // the last known primary
	failovers int64                      // how often another server became primary
	members   map[string]member          // by server
}

func newConnections() *connections {
	return &connections{pools: map[string]*telemetry.Pool{}, open: map[string]int64{}, members: map[string]member{}}
}

// poolEvent records an event of a connection pool.
func (c *connections) poolEvent(e *event.PoolEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pools[e.Address]
	if p == nil {
		p = &telemetry.Pool{Name: e.Address}
		c.pools[e.Address] = p
	}
	switch e.Type {
	case event.ConnectionPoolCreated:
		if e.PoolOptions != nil {
			p.Max = int64(e.PoolOptions.MaxPoolSize)
		}
	case event.ConnectionPoolClosed:
		delete(c.pools, e.Address)
		delete(c.open, e.Address)
	case event.ConnectionCreated:
		c.open[e.Address]++
	case event.ConnectionClosed:
		c.open[e.Address]--
	case event.ConnectionCheckOutStarted:
		p.Waiting++
	case event.ConnectionCheckOutFailed:
		p.Waiting--
		if e.Reason == event.ReasonTimedOut {
			p.Timeouts++
		}
	case event.ConnectionCheckedOut:
		p.Waiting--
		p.Used++
	case event.ConnectionCheckedIn:
		p.Used--
	}
}

// topologyChanged records the current servers and the primary.
func (c *connections) topologyChanged(e *event.TopologyDescriptionChangedEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.primary = ""
	c.keepMembers(e.NewDescription.Servers)
	for _, s := range e.NewDescription.Servers {
		switch s.Kind {
		case "RSPrimary", "Standalone", "Mongos", "LoadBalancer":
			c.primary = s.Addr.String()
		}
	}
	if c.primary == "" {
		return
	}
	if c.last != "" && c.last != c.primary {
		c.failovers++
	}
	c.last = c.primary
}

// poolStates returns the states of the pools, ordered by server.
func (c *connections) poolStates() []telemetry.Pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var pools []telemetry.Pool
	for _, server := range slices.Sorted(maps.Keys(c.pools)) {
		p := *c.pools[server]
		p.Idle = max(0, c.open[server]-p.Used)
		pools = append(pools, p)
	}
	return pools
}

// measure reports the connections and the primary to meter until the caller calls the function `silence`.
func (c *connections) measure(meter metric.Meter) (silence func()) {
	observed := telemetry.Observe(meter)
	away := observed.Gauge("registry.store.away", "", "1 while no server of the store is known that takes writes.")
	failovers := observed.Counter("registry.store.failovers", "{failover}",
		"Times that another server of the store took over.")
	lag := observed.Seconds("registry.store.replication.lag",
		"How far a server of the store is behind the one that takes writes, which has 0.")
	own := observed.Read(func(_ context.Context, o metric.Observer) {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.ObserveInt64(away, telemetry.Flag(c.primary == ""))
		o.ObserveInt64(failovers, c.failovers)
		for server, behind := range c.lags(time.Now()) {
			o.ObserveFloat64(lag, behind.Seconds(), metric.WithAttributes(attribute.String("server", server)))
		}
	})
	pools := telemetry.MeasurePools(meter, semconv.DBSystemNameMongoDB, c.poolStates)
	return func() { own(); pools() }
}
