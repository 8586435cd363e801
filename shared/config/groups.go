package config

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// groups sort the settings in --help and in docs/configuration.md. The settings that nearly everybody sets have no
// group, and come first. A name has the same group in every program.
var groups = []struct{ title, names string }{
	{"TLS", "tls-cert tls-key hsts plain-addr acme-directory acme-contact acme-roots acme-addr"},
	{"Keys", "keys-file transfer-lifetime key-ttl"},
	{"Public log", "log-key-file log-policy public-key"},
	{"Assets", "server-id zone asset-types code-lists hide"},
	{"Snapshots", "snapshot-dir snapshot-interval snapshot-keep whole-copies data-licence data-publisher"},
	{"Files", "max-file broker-files waiting-files"},
	{"Site", "synonyms map-url map-search-url sale-url"},
	{"Webhooks", "webhook-networks webhook-http"},
	{"Limits", "limits limits-redis limits-away limits-gateways no-limits limit-address-list limit-address-read " +
		"limit-address-write limit-key-list limit-key-read limit-key-write max-concurrent client-streams client-segments"},
	{"Clients", "cors-origins deprecated sunset"},
	{"Server", "drain-delay http-server timeout read-timeout list-timeout max-body memory store-timeout store-lease " +
		"fresh-reads trusted-proxies admin-trusted-proxies check-interval max-behind"},
}

// Groups returns the names of all settings that have a group.
func Groups() (names []string) {
	for _, g := range groups {
		names = append(names, strings.Fields(g.names)...)
	}
	return names
}

// group puts each setting of a program into its group, if it has a group.
func group(parser *kong.Kong) error {
	return kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, isFlag := node.(*kong.Flag); isFlag {
			for _, g := range groups {
				if slices.Contains(strings.Fields(g.names), flag.Name) {
					flag.Group = &kong.Group{Key: g.title, Title: g.title + ":"}
				}
			}
		}
		return next(nil)
	})
}
