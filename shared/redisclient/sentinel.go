package redisclient

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

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
