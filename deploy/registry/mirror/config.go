package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"asset-registry.example/client"
	"asset-registry/gateway"
	"asset-registry/shared/daemon"
	"asset-registry/shared/dataformat"
	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/logclient"
	"asset-registry/shared/private"
	"asset-registry/shared/translog"
)

// Config is the configuration of Run. Its tags declare the flags of the command `registry
// mirror`.
type Config struct {
	daemon.Process
	TLS httpserver.Certificate `embed:"" prefix:"tls-"`

	Of string `required:"" placeholder:"URL" help:"Address of the registry, or of another mirror of it."`
	// Clients that want to write send their keys to this address. The mirror never takes the address from an answer of
	// another server.
	Origin string `placeholder:"URL" help:"Public address of the registry that takes writes; by default the --of address."`
	// Search services run in other processes. They follow the mirror or the registry.
	SearchURL []string `name:"search-url" help:"Addresses of the search services; by default there is no search."`

	Addr string `default:"127.0.0.1:8081" help:"Address to listen on."`
	Data string `default:"./mirror" help:"Directory of the copy; created if it does not exist."`

	// If neither setting is given, the mirror checks that the log only grows and that it has the assets of the
	// copy. It does not check who has signed the log.
	PublicKey []string `sep:"none" placeholder:"KEY" help:"Public key of the log. May be repeated."`
	LogPolicy string   `placeholder:"FILE" help:"Policy file (C2SP tlog-policy) with the log's key and witnesses."`

	MaxBehind time.Duration `default:"5m" help:"/readyz fails while the copy is further behind; 0: never for that."`

	// Assets are compared one after the other with their leaves in the log. The mirror asks the registry for
	// the salt of each leaf.
	CheckInterval time.Duration `default:"10s" help:"Time between two assets that are compared with the log; 0: none is."`

	Files   bool  `help:"Copy all files of documents too, and serve them."`
	MaxFile int64 `default:"104857600" help:"Largest file that is copied, in bytes."`

	BaseURL string `name:"base-url" help:"Public address that links start with; by default the address of the request."`

	Timeout time.Duration `default:"10s" help:"Longest time for a request."`

	// Snapshots are kept in the directory of the copy.
	SnapshotInterval time.Duration `default:"1h" help:"Time between snapshots; 0: none are made."`
	SnapshotKeep     int           `default:"2" help:"Snapshots that are kept."`

	// All requests together may hold a part of this memory. 0 takes the smallest of the three limits.
	Memory int64 `help:"Bytes that the process may use; 0: GOMEMLIMIT, the control group's or the machine's."`

	TrustedProxies []netip.Prefix   `help:"Networks of proxies whose X-Forwarded-For is believed."`
	Limits         gateway.Limits   `embed:""`
	Settings       gateway.Settings `embed:""`
}

// origin returns the address to which the mirror sends clients that want to write.
func (c Config) origin() string { return cmp.Or(c.Origin, c.Of) }

// relayWithin returns the time within which the origin must begin its answer to a relayed request. The rest of the
// time for the request is left for an answer 503 with the reason.
func (c Config) relayWithin() time.Duration { return cmp.Or(c.Settings.ReadTimeout, c.Timeout) * 4 / 5 }

// policy returns the policy that decides which checkpoints the mirror trusts; nil: it trusts all.
func (c Config) policy() (translog.Opener, error) {
	switch {
	case c.LogPolicy != "" && len(c.PublicKey) > 0:
		return nil, errors.New("--public-key and --log-policy exclude each other")
	case c.LogPolicy != "":
		policy, err := logclient.ReadPolicy(c.LogPolicy)
		if err != nil {
			return nil, fmt.Errorf("--log-policy: %w", err)
		}
		return policy, nil
	case len(c.PublicKey) == 0:
		return nil, nil
	}
	var keys []translog.PublicKey
	for _, text := range c.PublicKey {
		key, err := translog.ParsePublicKey(text)
		if err != nil {
			return nil, fmt.Errorf("--public-key: %w", err)
		}
		keys = append(keys, key)
	}
	return translog.LogPolicy(keys...)
}

// Check implements config.Checker.
func (c Config) Check(warnings io.Writer) error {
	return errors.Join(c.validate(), c.certificate().Check(warnings), private.Print(warnings, c.Data))
}

// certificate returns the operator's certificate, with what it is compared with.
func (c Config) certificate() httpserver.Certificate {
	own := c.TLS
	own.BaseURL = c.BaseURL
	return own
}

// validate reports everything that is wrong with the configuration.
func (c Config) validate() error {
	_, badOf := client.New(client.Config{URL: c.Of})
	_, badOrigin := client.New(client.Config{URL: c.origin()})
	isTold := badOf != nil && c.Origin == ""
	_, badPolicy := c.policy()
	return errors.Join(
		errs.In(badOf, "--of"),
		errs.If(!isTold && (badOrigin != nil || strings.ContainsAny(c.origin(), "<>\"'\\` ")),
			"--origin, or without it --of: it must be an address without quotes and brackets"),
		errs.If(c.Timeout <= 0, "--timeout must be greater than 0"),
		badPolicy,
	)
}

// The files in the directory of a mirror, in addition to copy.db.
const (
	format            = "asset-registry mirror 1"
	logFile           = "log.db"
	originFile        = "origin" // created when the verified copy is served for the first time
	equalFile         = "equal"  // the last time when the copy was known to be as new as the registry
	snapshotDirectory = "snapshots"
)

// openData creates the directory of a mirror if it does not exist. If the directory contains files that a mirror
// did not write, openData writes nothing and returns an error.
func openData(dir string) error {
	if fresh, err := dataformat.IsNew(dir, format); err != nil || !fresh {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create the directory of the mirror: %w", err)
	}
	err := durable.Create(filepath.Join(dir, dataformat.File), []byte(format+"\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write into the directory of the mirror: %w", err)
	}
	return nil
}
