// Package redisurl reads addresses of a Redis whose primary server is chosen by
// sentinels.
package redisurl

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// The schemes of addresses of sentinels, and what they become for the client
// library.
var schemes = map[string]string{"redis+sentinel": "redis", "rediss+sentinel": "rediss"}

const defaultPort = "26379"

// errMalformed does not quote the address, which may hold a password.
var errMalformed = errors.New("the address of the Redis sentinels is malformed: it has the form " +
	"redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DB, where NAME is the primary's, " +
	"and user, password and /DB may be left out")

// IsSentinel tells whether an address names sentinels.
func IsSentinel(address string) bool {
	scheme, _, found := strings.Cut(address, "://")
	return found && schemes[scheme] != ""
}

// Failover returns the address of sentinels,
//
//	redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DB
//
// in the form that redis.ParseFailoverURL takes. User and password are for the
// Redis servers; those for the sentinels are the parameters sentinel_username
// and sentinel_password. All other parameters are the library's. With the scheme
// rediss+sentinel, servers and sentinels are called over TLS.
func Failover(address string) (string, error) {
	scheme, rest, _ := strings.Cut(address, "://")
	end := strings.IndexAny(rest, "/?#")
	if schemes[scheme] == "" || end < 0 {
		return "", errMalformed
	}
	user, list := "", rest[:end]
	if at := strings.LastIndex(list, "@"); at >= 0 {
		user, list = list[:at+1], list[at+1:]
	}
	hosts, err := split(list)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(schemes[scheme] + "://" + user + hosts[0] + rest[end:])
	if err != nil {
		return "", errMalformed
	}
	name, db, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil || name == "" || q.Has("addr") || q.Has("master_name") {
		return "", errMalformed
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

// split returns the hosts of a list, each with a port.
func split(list string) ([]string, error) {
	var hosts []string
	for host := range strings.SplitSeq(list, ",") {
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			name, port = strings.Trim(host, "[]"), defaultPort
		}
		if name == "" || port == "" || err != nil && strings.Contains(name, ":") && !strings.HasPrefix(host, "[") {
			return nil, errMalformed
		}
		hosts = append(hosts, net.JoinHostPort(name, port))
	}
	return hosts, nil
}
