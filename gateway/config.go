package gateway

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"asset-registry/gateway/internal/answers"
	"asset-registry/gateway/internal/httpapi"
	"asset-registry/gateway/internal/limits"
	"asset-registry/shared/errs"
	"asset-registry/shared/fair"
	"asset-registry/shared/keyring"
	"asset-registry/shared/memory"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/upstream"
)

// Config configures a gateway. A field may be zero where its comment says so. The tags make fields settings of the
// command gateway.
type Config struct {
	AssetsURLs []string     `name:"assets-url" default:"http://127.0.0.1:8081" help:"${assets_url}"`
	Assets     http.Handler `kong:"-"` // an asset service in this process; replaces AssetsURLs

	Warnings func(context.Context) []string `kong:"-"` // warnings of the services in this process; nil: they have none
	Answers  *Answers                       `kong:"-"` // remembered answers; Assets reports each write to them; nil: none

	AuthURLs   []string          `name:"auth-url" default:"http://127.0.0.1:8082" help:"${auth_url}"`
	Auth       http.RoundTripper `kong:"-"` // transport to the auth service, used instead of AuthURLs; nil: not used
	SearchURLs []string          `name:"search-url" help:"${search_url}"`
	Search     http.Handler      `kong:"-"` // a search service in this process; replaces SearchURLs
	FilesURLs  []string          `name:"files-url" help:"${files_url}"`
	Files      http.Handler      `kong:"-"` // a file service in this process; replaces FilesURLs

	// The command reads Secrets from the file.
	SecretFile string       `required:"" help:"${secret_file}"`
	Secrets    keyring.Ring `kong:"-"` // secrets that sign identities; the same for all services

	ServerID string `name:"server-id" help:"${server_id}"` // "": made from Secrets, which must then have one secret
	BaseURL  string `name:"base-url" help:"${base_url}"`
	OwnURL   string `kong:"-"` // address of the listener, for examples if BaseURL is ""; "": http://127.0.0.1:8080

	// A zero stands for the default, in Memory for memory.Limit.
	MaxBody int64         `default:"1048576" help:"Largest request body, in bytes."`
	Timeout time.Duration `default:"10s" help:"Longest time for a request."`
	Memory  int64         `help:"${memory}"`
	KeyTTL  time.Duration `name:"key-ttl" default:"5s" help:"How long a verified API key is trusted."`

	TrustedProxies []netip.Prefix `help:"Networks of the proxies in front whose X-Forwarded-For is believed."`

	Limits   Limits   `embed:""` // zero: no rate limits
	Settings Settings `embed:""`

	Mirror    *Mirror              `kong:"-"` // settings of the gateway of a mirror; nil: this is not a mirror
	Places    *fair.Semaphore      `kong:"-"` // places that the services of this process share; nil: the gateway's own
	Log       *slog.Logger         `kong:"-"`
	Telemetry *telemetry.Telemetry `kong:"-"` // nil: none
	Now       func() time.Time     `kong:"-"` // nil: time.Now
}

// Limits are the settings of the rate limits. The zero value sets no limits.
type Limits = limits.Settings

// Settings are further settings of a gateway. The zero value has the default MaxConcurrent, ClientStreams and
// ClientSegments, no time limits except Config.Timeout, no CORS origins and no old versions.
type Settings = httpapi.Settings

// Answers keeps in memory the answers to reads of assets. Its method Change must be called before each write.
type Answers = answers.Cache

// NewAnswers returns a memory for answers. The argument `bytes` is how many bytes the process may use; the
// answers take 1/16 of them. If bytes is 0, the process may use memory.Limit.
func NewAnswers(bytes int64) *Answers {
	return answers.New(cmp.Or(bytes, memory.Limit())/16, time.Now)
}

// ServerIDOf returns the default value of the cookie SERVER_ID. A registry that rotates its secret must set the
// value of the cookie itself, because ServerIDOf returns a different value for each secret.
func ServerIDOf(secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("server id"))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// The values that a Config uses for fields that are zero. The flags have the same defaults; a test compares
// them.
const (
	DefaultMaxBody        = 1 << 20
	DefaultMaxConcurrent  = 4000
	DefaultClientStreams  = 32
	DefaultClientSegments = 16
	DefaultTimeout        = 10 * time.Second
	DefaultKeyTTL         = 5 * time.Second
)

// Validate returns every fault of the configuration.
func (c Config) Validate() error {
	return errors.Join(
		c.validateServices(), c.Limits.Validate(cmp.Or(c.MaxBody, DefaultMaxBody)), c.Settings.Validate(),
		errs.If(c.Log == nil, "the log is missing"),
	)
}

// validateServices checks the addresses of the services and the secrets that
// they share.
func (c Config) validateServices() error {
	faults := []error{
		checkService("--assets-url", c.Assets != nil, true, c.AssetsURLs),
		errs.If(c.Answers != nil && (c.Assets == nil || c.Mirror != nil),
			"answers are kept only beside the asset service that writes the assets"),
		checkService("--search-url", c.Search != nil, false, c.SearchURLs),
		checkService("--files-url", c.Files != nil, false, c.FilesURLs),
	}
	if c.Mirror != nil {
		faults = append(faults, c.Mirror.validate(c))
	} else if c.Auth == nil {
		faults = append(faults, checkService("--auth-url", false, true, c.AuthURLs))
	}
	faults = append(faults, errs.In(c.Secrets.Check(), "the registry's secret"))
	if len(c.Secrets) > 1 && c.ServerID == "" && c.Secrets.Check() == nil {
		faults = append(faults, fmt.Errorf("--server-id: with %d secrets it must be the value that clients have: "+
			"%q if the first secret is the old one, %q if the second is",
			len(c.Secrets), ServerIDOf(c.Secrets[0]), ServerIDOf(c.Secrets[1])))
	}
	return errors.Join(faults...)
}

// checkService checks the addresses of a service, which may be in process instead. Some services may be missing.
func checkService(name string, inProcess, needed bool, urls []string) error {
	if !inProcess && (needed || len(urls) > 0) {
		return errs.In(upstream.Check(urls), "%s", name)
	}
	return errs.If(inProcess && len(urls) > 0, "%s: the service is in process or at an address, not both", name)
}

func (c Config) withDefaults() Config {
	c.MaxBody = cmp.Or(c.MaxBody, DefaultMaxBody)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.KeyTTL = cmp.Or(c.KeyTTL, DefaultKeyTTL)
	c.Settings.ClientStreams = cmp.Or(c.Settings.ClientStreams, DefaultClientStreams)
	c.Settings.ClientSegments = cmp.Or(c.Settings.ClientSegments, DefaultClientSegments)
	c.Settings.MaxConcurrent = cmp.Or(c.Settings.MaxConcurrent, DefaultMaxConcurrent)
	c.Memory = cmp.Or(c.Memory, memory.Limit())
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Telemetry = cmp.Or(c.Telemetry, &telemetry.Telemetry{})
	c.ServerID = cmp.Or(c.ServerID, ServerIDOf(c.Secrets.Current()))
	if c.Places == nil {
		c.Places = fair.NewPlaces()
	}
	c.BaseURL = strings.TrimSuffix(c.BaseURL, "/")
	return c
}
