package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	prefix    = "/api/2.5"
	maxAnswer = 32 << 20 // maximum number of bytes of an answer; the registry's answers have less than 16 MiB
)

// Config configures a Client. Only URL is required.
type Config struct {
	URL       string            // address of the registry, such as "https://registry.example"
	Key       Secret            // API key; empty: reads only
	UserAgent string            // value of User-Agent; empty: "asset-registry-go"
	Transport http.RoundTripper // nil: http.DefaultTransport
	Timeout   time.Duration     // limit of one try; 0: 30 s
	Retry     Retry
}

// Client calls one registry. New makes a Client. A Client is safe for concurrent use.
type Client struct {
	base      string
	authorize func(*http.Request) // a function, so that no verb of fmt prints the key
	userAgent string
	http      *http.Client
	timeout   time.Duration
	retry     Retry
	silence   time.Duration // the client ends a stream if no byte comes in this time
}

// New returns a client. It sends no request. It refuses an address whose scheme is
// not http or https, or that has a user name, a query or a fragment.
func New(c Config) (*Client, error) {
	address, err := url.Parse(c.URL)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, errors.New("the registry's address must have the form http://HOST or https://HOST")
	}
	if address.User != nil || address.RawQuery != "" || address.Fragment != "" {
		return nil, errors.New("the registry's address must have no user, query or fragment; the key is Config.Key")
	}
	if c.Timeout < 0 || c.Retry.Tries < 0 || c.Retry.Total < 0 {
		return nil, errors.New("the limits of time and tries must not be negative")
	}
	return &Client{
		base: strings.TrimSuffix(c.URL, "/"),
		authorize: func(r *http.Request) {
			if c.Key != "" {
				r.SetBasicAuth(string(c.Key), "")
			}
		},
		userAgent: cmp.Or(c.UserAgent, "asset-registry-go"),
		timeout:   cmp.Or(c.Timeout, 30*time.Second),
		retry:     c.Retry.orDefault(),
		silence:   silence,
		http: &http.Client{
			Transport: c.Transport,
			// A redirect would carry the owner token to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Secret is an API key or a token. Every verb of fmt and every attribute of slog shows it as [secret]. Only
// string(s) and its JSON show its value.
type Secret string

const hidden = "[secret]"

// String returns [secret], or "" for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format implements fmt.Formatter for every verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Me describes the caller, to whom the API key belongs (docs/contract.md, "Routes").
type Me struct {
	Broker         string  `json:"broker"`
	Key            string  `json:"key"` // id of the key, not the key itself
	Role           string  `json:"role"`
	Accreditations string  `json:"accreditations"` // levels: digits, and "t" for test assets only
	Limits         []Limit `json:"limits"`
}

// Limit is a rate limit, with the remaining requests of the caller (docs/contract.md, "Rate limits").
type Limit struct {
	Policy    string           `json:"policy"`
	By        string           `json:"by"`     // "key", or "tenant" for all keys of the broker
	Costs     map[string]int64 `json:"costs"`  // cost of a request, by its class
	Window    int64            `json:"window"` // length of the window in seconds
	Limit     int64            `json:"limit"`
	Remaining int64            `json:"remaining"`
	Reset     int64            `json:"reset"` // seconds until more requests are allowed
}

// Me reads the description of the caller and its rate limits.
func (c *Client) Me(ctx context.Context) (Me, error) {
	return dataOf[Me](ctx, c, read(path("me"), nil))
}

// Health returns nil while the registry accepts writes. It makes one try: the *Error
// of a 503 has the reason.
func (c *Client) Health(ctx context.Context) error {
	r := read(path("health"), nil)
	r.once = true
	_, err := c.send(ctx, r)
	return err
}

// Server describes the registry.
type Server struct {
	Name     string   `json:"name"`
	Versions []string `json:"versions"` // versions of the API
}

// Server reads the registry's name and the versions of its API. It needs no key.
func (c *Client) Server(ctx context.Context) (Server, error) {
	var server Server
	got, err := c.send(ctx, read("/", nil))
	if err != nil {
		return server, err
	}
	if err := json.Unmarshal(got.text, &server); err != nil || len(server.Versions) == 0 {
		return server, fmt.Errorf("%s is not a registry", c.base)
	}
	return server, nil
}
