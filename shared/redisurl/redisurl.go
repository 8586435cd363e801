// Package redisurl translates URLs of Redis sentinels, which choose the primary
// server, into the form of the client library.
package redisurl

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// schemes maps the schemes of sentinel URLs to those of the client library.
var schemes = map[string]string{"redis+sentinel": "redis", "rediss+sentinel": "rediss"}

const defaultPort = "26379"

// errMalformed does not quote the URL, since that may hold a password.
var errMalformed = errors.New("the address of the Redis sentinels is malformed: it has the form " +
	"redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DB, where NAME is the name of the primary; " +
	"user, password and /DB are optional")

// IsSentinel reports whether a URL names sentinels.
func IsSentinel(text string) bool {
	scheme, _, found := strings.Cut(text, "://")
	return found && schemes[scheme] != ""
}

// Failover translates a sentinel URL,
//
//	redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DB
//
// into a URL for redis.ParseFailoverURL. User and password are for the Redis
// servers; the parameters sentinel_username and sentinel_password are for the
// sentinels. All other parameters are the library's. The scheme rediss+sentinel
// uses TLS for servers and sentinels. The port of a sentinel is 26379 by default.
func Failover(text string) (string, error) {
	scheme, rest, _ := strings.Cut(text, "://")
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

// split returns the hosts of a comma-separated list, each with a port.
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
