// Package redisclient opens the connections of every service to Redis. A call fails
// within its timeouts. The package does not retry a call; its callers do so. An error
// never quotes an address, because an address may hold a password.
package redisclient

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Schemes returns the schemes of the addresses that Open and OpenServer accept.
func Schemes() []string {
	return []string{"redis://", "rediss://", "redis+sentinel://", "rediss+sentinel://"}
}

// Timeouts bound a call. The defaults of the library are many times longer.
type Timeouts struct {
	Dial time.Duration // limit for opening a new connection
	Call time.Duration // limit for writing a command, and for reading its answer
	Pool time.Duration // limit for waiting for a connection of the pool
}

// IsShortage reports whether a call failed because all connections of this process were in use. The server was
// not asked, so the error says nothing about the server.
func IsShortage(err error) bool {
	return errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}

// ErrMalformed is the error for an address whose form is wrong.
var ErrMalformed = errors.New("the address of the Redis server is malformed")

// Open returns a client for an address. It does not connect. It accepts each address that OpenServer accepts. For a
// cluster, the address names one node and has ?addr=HOST:PORT for each further node.
func Open(address string, t Timeouts) (redis.UniversalClient, error) {
	if isSentinel(address) || !strings.Contains(address, "addr=") {
		return OpenServer(address, t)
	}
	o, err := redis.ParseClusterURL(address)
	if err != nil {
		return nil, ErrMalformed
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = t.Dial, t.Call, t.Call, t.Pool
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.MaintNotificationsConfig = noNotifications()
	silence()
	return redis.NewClusterClient(o), nil
}

// OpenServer returns a client of one server:
//
//   - redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// for TLS;
//   - redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DB, the sentinels that
//     choose the server, or rediss+sentinel:// for TLS.
//
// It does not connect.
func OpenServer(address string, t Timeouts) (*redis.Client, error) {
	if isSentinel(address) {
		return openSentinels(address, t)
	}
	o, err := redis.ParseURL(address)
	if err != nil || !strings.Contains(address, "://") { // the library takes redis:x for the server of this machine
		return nil, ErrMalformed
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = t.Dial, t.Call, t.Call, t.Pool
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.MaintNotificationsConfig = noNotifications()
	silence()
	return redis.NewClient(o), nil
}

func openSentinels(address string, t Timeouts) (*redis.Client, error) {
	translated, err := failover(address)
	if err != nil {
		return nil, err
	}
	o, err := redis.ParseFailoverURL(translated)
	if err != nil {
		return nil, ErrMalformed
	}
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // each server has a different name; the library takes it from the server's address
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = t.Dial, t.Call, t.Call, t.Pool
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	silence()
	return redis.NewFailoverClient(o), nil
}

// noNotifications turns off notifications that only managed servers send.
func noNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// silence stops the log of the library, which is global and is not JSON. It would only repeat the errors that calls
// return.
func silence() { logging.Disable() }

// Check returns the error that Open would return for an address.
func Check(address string) error { return closed(Open(address, Timeouts{})) }

// CheckServer returns the error that OpenServer would return for an address.
func CheckServer(address string) error { return closed(OpenServer(address, Timeouts{})) }

func closed(client interface{ Close() error }, err error) error {
	if err != nil {
		return err
	}
	return client.Close()
}

// sentinelSchemes maps the schemes of sentinel URLs to the schemes that the client library knows.
var sentinelSchemes = map[string]string{"redis+sentinel": "redis", "rediss+sentinel": "rediss"}

const defaultPort = "26379"

// errSentinels does not quote the URL, since that may hold a password.
var errSentinels = errors.New("the address of the Redis sentinels is malformed: it has the form " +
	"redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DB, where NAME is the name of the primary; " +
	"user, password and /DB are optional")

// isSentinel reports whether a URL names sentinels, which choose the primary server.
func isSentinel(text string) bool {
	scheme, _, found := strings.Cut(text, "://")
	return found && sentinelSchemes[scheme] != ""
}

// failover translates a sentinel URL,
//
//	redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DB
//
// into a URL for redis.ParseFailoverURL. User and password are for the Redis
// servers; the parameters sentinel_username and sentinel_password are for the
// sentinels. All other parameters are the library's. The scheme rediss+sentinel
// uses TLS for servers and sentinels. The port of a sentinel is 26379 by default.
func failover(text string) (string, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	end := strings.IndexAny(rest, "/?#")
	if sentinelSchemes[scheme] == "" || end < 0 {
		return "", errSentinels
	}
	user, list := "", rest[:end]
	if at := strings.LastIndex(list, "@"); at >= 0 {
		user, list = list[:at+1], list[at+1:]
	}
	hosts, err := split(list)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(sentinelSchemes[scheme] + "://" + user + hosts[0] + rest[end:])
	if err != nil {
		return "", errSentinels
	}
	name, db, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil || name == "" || q.Has("addr") || q.Has("master_name") {
		return "", errSentinels
	}
	q.Set("master_name", name)
	q["addr"] = hosts[1:]
	if u.User != nil {
		password, _ := u.User.Password()
		q.Set("username", u.User.Username())
		q.Set("password", password)
	}
	u.User = nil
	if q.Has("sentinel_password") {
		u.User = url.UserPassword(q.Get("sentinel_username"), q.Get("sentinel_password"))
	}
	q.Del("sentinel_username")
	q.Del("sentinel_password")
	u.Path, u.RawPath, u.RawQuery = "/"+db, "", q.Encode()
	return u.String(), nil
}

// split returns the hosts of a comma-separated list, each with a port.
func split(list string) ([]string, error) {
	var hosts []string
	for host := range strings.SplitSeq(list, ",") {
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			name, port = strings.Trim(host, "[]"), defaultPort
		}
		if name == "" || port == "" || err != nil && strings.Contains(name, ":") && !strings.HasPrefix(host, "[") {
			return nil, errSentinels
		}
		hosts = append(hosts, net.JoinHostPort(name, port))
	}
	return hosts, nil
}
