package client

import (
	"cmp"
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
