package client

import (
	"context"
	"encoding/json"
	"fmt"
)

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
	body, err := call[Me](ctx, c, read(path("me"), nil))
	return body.Data, err
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
