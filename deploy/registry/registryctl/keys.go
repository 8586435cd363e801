package registryctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"asset-registry/shared/adminapi"
)

type keyCommands struct {
	List   listKeys  `cmd:"" help:"List keys."`
	Get    getKey    `cmd:"" help:"Show a key, and where each of its secrets was last used."`
	Create createKey `cmd:"" help:"Create a key and print its secret, which cannot be shown again."`
	Change changeKey `cmd:"" help:"Change a key's settings."`
	Rotate rotateKey `cmd:"" help:"Give a key a new secret and print it. The secret cannot be shown again."`
	Revoke revokeKey `cmd:"" help:"Revoke a key, immediately and permanently."`
	Usage  keyUsage  `cmd:"" help:"Count the requests of a key, by day and class of request."`
}

// keyID is the argument of commands about one key. Shells can complete it.
type keyID struct {
	ID string `arg:"" complete:"keys" help:"Id of the key."`
}

func (k keyID) path() string { return "/keys/" + url.PathEscape(k.ID) }

type listKeys struct {
	Broker string `complete:"brokers" help:"List only keys of this broker."`
	State  string `complete:"active,expired,revoked,blocked" help:"List only active, expired, revoked or blocked keys."`
	Search string `help:"List only keys with this text in id, name or broker."`
}

// Run lists keys.
func (l listKeys) Run(ctx context.Context, p *program) error {
	if l.Broker != "" { // an unknown broker is an error, unlike a broker without keys
		_, err := call[adminapi.Broker](ctx, p, http.MethodGet, brokerName{l.Broker}.path(), nil, nil)
		if err != nil {
			return err
		}
	}
	query := url.Values{"broker": {l.Broker}, "state": {l.State}, "q": {l.Search}}
	found, err := gathered(all[adminapi.Key](ctx, p, "/keys", query))
	if err != nil {
		return err
	}
	return p.printKeys(adminapi.Response[[]adminapi.Key]{Data: found}, found...)
}

type getKey struct {
	keyID `embed:""`
}

// Run shows a key.
func (g getKey) Run(ctx context.Context, p *program) error {
	return p.oneKey(ctx, http.MethodGet, g.path(), nil)
}

type createKey struct {
	Broker      string `complete:"brokers" help:"Broker that the key belongs to. Omit it for an operator or auditor."`
	keySettings `embed:""`
}

// Run creates a key.
func (c createKey) Run(ctx context.Context, p *program) error {
	name, role, levels := "", "broker", "1234" // defaults of the flags
	c.Name, c.Role = cmp.Or(c.Name, &name), cmp.Or(c.Role, &role)
	if c.Levels == nil && *c.Role == "broker" {
		c.Levels = &levels
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	body["broker"] = c.Broker
	return p.oneKey(ctx, http.MethodPost, "/keys", body)
}

type changeKey struct {
	keyID       `embed:""`
	keySettings `embed:""`
}

// Run changes the settings whose flags are given.
func (c changeKey) Run(ctx context.Context, p *program) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return errors.New("nothing to change: give --name, --role, --levels, --expires, --test, --limit or --allow")
	}
	return p.oneKey(ctx, http.MethodPatch, c.path(), body)
}

type rotateKey struct {
	keyID `embed:""`
	Grace time.Duration `least:"0s" help:"How long former secrets stay valid at most, such as 24h. By default they end."`
}

// Run gives the key a new secret.
func (r rotateKey) Run(ctx context.Context, p *program) error {
	return p.oneKey(ctx, http.MethodPost, r.path()+"/rotate", adminapi.Rotation{Grace: r.Grace.String()})
}

type revokeKey struct {
	keyID `embed:""`
}

// Run revokes the key.
func (r revokeKey) Run(ctx context.Context, p *program) error {
	return p.oneKey(ctx, http.MethodPost, r.path()+"/revoke", struct{}{})
}

type keyUsage struct {
	keyID `embed:""`
	Days  int `default:"30" least:"1" help:"Number of days, up to today."`
}

// Run prints how many requests the key has made on each day.
func (u keyUsage) Run(ctx context.Context, p *program) error {
	if _, err := call[adminapi.Key](ctx, p, http.MethodGet, u.path(), nil, nil); err != nil { // the key must exist
		return err
	}
	query := url.Values{"days": {strconv.Itoa(u.Days)}}
	answer, err := call[[]adminapi.Day](ctx, p, http.MethodGet, u.path()+"/usage", query, nil)
	if err != nil {
		return err
	}
	var rows []row
	for _, d := range answer.Data {
		r := row{d.Day}
		for _, class := range []string{"list", "own", "read", "write"} {
			r = append(r, strconv.FormatInt(d.Counts[class], 10))
		}
		rows = append(rows, r)
	}
	return p.print(answer, row{"DAY", "LIST", "OWN", "READ", "WRITE"}, rows...)
}

// oneKey makes a call whose answer is a key, and prints the key with its secrets.
func (p *program) oneKey(ctx context.Context, method, path string, body any) error {
	answer, err := call[adminapi.Key](ctx, p, method, path, nil, body)
	if err != nil {
		return err
	}
	if answer.Secret != "" {
		if err := p.note("The secret, which cannot be shown again:\n\n  %s\n", answer.Secret); err != nil {
			return err
		}
	}
	secrets := answer.Data.Secrets
	neverUsed := len(secrets) == 1 && len(secrets[0].Uses) == 0
	if err := p.printKeys(answer, answer.Data); err != nil || p.output == asJSON || neverUsed {
		return err
	}
	if err := p.note(""); err != nil {
		return err
	}
	header := row{"SECRET", "FINGERPRINT", "CREATED", "GOOD UNTIL", "LAST USED", "FROM"}
	return p.print(nil, header, secretRows(secrets)...)
}

// secretRows returns one row for each use of a secret, and one row for a secret that was never used. Only the
// first row of a secret shows the columns of the secret itself.
func secretRows(secrets []adminapi.Secret) (rows []row) {
	for _, s := range secrets {
		head := row{fmt.Sprint(s.Number), s.Fingerprint, stamp(&s.Created), stamp(s.Until)}
		if len(s.Uses) == 0 {
			rows = append(rows, append(head, "", ""))
		}
		for _, use := range s.Uses {
			rows = append(rows, append(head[:4:4], stamp(&use.Time), use.From))
			head = row{" ", " ", " ", " "}
		}
	}
	return rows
}

func (p *program) printKeys(answer any, keys ...adminapi.Key) error {
	header := row{"ID", "BROKER", "NAME", "ROLE", "LEVELS", "STATE", "EXPIRES", "LAST USED", "FROM"}
	return table(p, answer, header, keys, func(k adminapi.Key) row {
		levels := k.Levels
		if k.Test {
			levels += " test"
		}
		var last adminapi.Use
		for _, s := range k.Secrets {
			if len(s.Uses) > 0 && s.Uses[0].Time.After(last.Time) {
				last = s.Uses[0]
			}
		}
		return row{
			k.ID, k.Broker, k.Name, k.Role, levels, k.State, stamp(k.Expires), stamp(&last.Time), last.From,
		}
	})
}

// keySettings are the flags that describe a key. A field is nil if its flag was not given.
type keySettings struct {
	Name    *string  `help:"Purpose of the key."`
	Role    *string  `complete:"broker,concierge,administrator,operator,auditor" help:"${roles}"`
	Levels  *string  `help:"Accreditation levels, such as 13; 0 is all. A new broker's key has 1234 by default."`
	Expires *string  `help:"End of the key: a time (2027-01-31T00:00:00Z), a duration from now (720h), or never."`
	Test    *bool    `help:"Accept the key for test assets only."`
	Limit   []string `sep:"none" help:"Rate limit, such as write:1m=100. May be repeated. 'none' removes all."`
	Allow   []string `sep:"none" help:"Address or network to use the key from. May be repeated. 'any' allows all."`
}

// body returns the JSON fields for the flags that were given.
func (k keySettings) body() (map[string]any, error) {
	body := map[string]any{}
	for name, value := range map[string]*string{"name": k.Name, "role": k.Role, "levels": k.Levels} {
		if value != nil {
			body[name] = *value
		}
	}
	if k.Test != nil {
		body["test"] = *k.Test
	}
	if k.Allow != nil {
		body["allow"] = k.Allow
		if len(k.Allow) == 1 && k.Allow[0] == "any" {
			body["allow"] = nil
		}
	}
	if k.Expires != nil {
		end, err := parseEnd(*k.Expires)
		if err != nil {
			return nil, err
		}
		body["expires"] = end
	}
	if k.Limit != nil {
		limits, err := parseLimits(k.Limit)
		if err != nil {
			return nil, err
		}
		body["limits"] = limits
	}
	return body, nil
}

// parseEnd parses the value of --expires. It returns nil for "never", otherwise a time.Time in UTC.
func parseEnd(text string) (any, error) {
	if text == "never" {
		return nil, nil
	}
	if length, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(length).UTC().Truncate(time.Second), nil
	}
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, fmt.Errorf("--expires must be a time (2027-01-31T00:00:00Z), a duration (720h) or never; got %q", text)
	}
	return end.UTC(), nil
}

// parseLimits parses the values of --limit. It returns the numbers of allowed requests; the keys of the map are
// classes, the keys of the inner maps are windows. For "none" it returns an empty map.
func parseLimits(texts []string) (map[string]map[string]int64, error) {
	limits := map[string]map[string]int64{}
	for _, text := range texts {
		if text == "none" {
			continue
		}
		class, rest, _ := strings.Cut(text, ":")
		window, number, _ := strings.Cut(rest, "=")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || window == "" {
			return nil, fmt.Errorf("--limit must have the form CLASS:WINDOW=REQUESTS, such as write:1m=100; got %q", text)
		}
		if limits[class] == nil {
			limits[class] = map[string]int64{}
		}
		limits[class][window] = n
	}
	return limits, nil
}
