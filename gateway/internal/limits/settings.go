package limits

import (
	"errors"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/errs"
	"asset-registry/shared/routes"
)

// Settings say how many requests each client may send. With the tags, the fields are flags of a command. The
// zero value sets no limits.
type Settings struct {
	Table    ratelimit.Table    `name:"limits" placeholder:"NAME" help:"${limits}"`
	Redis    string             `name:"limits-redis" placeholder:"URL" help:"${limits_redis}"`
	Fallback ratelimit.Fallback `name:"limits-away" default:"local" enum:"local,open,closed" help:"${limits_away}"`
	Gateways int64              `name:"limits-gateways" default:"0" help:"${limits_gateways}"`
	None     bool               `name:"no-limits" help:"Admit any number of requests."`

	AddressList  *int64 `name:"limit-address-list" placeholder:"N" help:"${limit_address_list}"`
	AddressRead  *int64 `name:"limit-address-read" placeholder:"N" help:"${limit_address_read}"`
	AddressWrite *int64 `name:"limit-address-write" placeholder:"N" help:"${limit_address_write}"`
	KeyList      *int64 `name:"limit-key-list" placeholder:"N" help:"${limit_key_list}"`
	KeyRead      *int64 `name:"limit-key-read" placeholder:"N" help:"${limit_key_read}"`
	KeyWrite     *int64 `name:"limit-key-write" placeholder:"N" help:"${limit_key_write}"`
}

func (Settings) HelpTexts() map[string]string {
	const override = ". It replaces the table's limit; 0: no limit."
	return map[string]string{
		"limits": "The table of policies: production, sandbox, or in the YAML file a list of policies (docs/features.md).",
		"limits_redis": "Redis in which all gateways count: redis://HOST:PORT/DB, or " +
			"redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB. By default each gateway counts in its memory.",
		"limits_away": "Behaviour of a gateway while that Redis does not answer: count alone (local), " +
			"admit every request (open) or refuse every request (closed).",
		"limits_gateways": "The most gateways that count in that Redis, the same number for all of them. " +
			"Each gateway then reserves a share of every limit, for which it need not ask Redis, " +
			"and has its share of the limits while it counts alone. 0: unknown.",
		"limit_address_list":  "Pages of the feed a second for one client address" + override,
		"limit_address_read":  "Reads a second for one client address" + override,
		"limit_address_write": "Writes a second for one client address" + override,
		"limit_key_list":      "Pages of the feed a second for one API key" + override,
		"limit_key_read":      "Reads a second for one API key" + override,
		"limit_key_write":     "Writes a second for one API key" + override,
	}
}

// OrDefault returns s. If s has no table, the result has the table for a sandbox or for production.
func (s Settings) OrDefault(sandbox bool) Settings {
	switch {
	case s.Table != nil:
	case sandbox:
		s.Table = ratelimit.Sandbox()
	default:
		s.Table = ratelimit.Production()
	}
	return s
}

// override replaces the policy of one class with a policy that allows a number of requests each second.
type override struct {
	by    ratelimit.By
	class routes.Class
	limit *int64 // nil: the table's policy stays; 0: no limit
}

func (s Settings) overrides() []override {
	return []override{
		{ratelimit.ByAddress, routes.List, s.AddressList},
		{ratelimit.ByAddress, routes.Read, s.AddressRead},
		{ratelimit.ByAddress, routes.Write, s.AddressWrite},
		{ratelimit.ByKey, routes.List, s.KeyList},
		{ratelimit.ByKey, routes.Read, s.KeyRead},
		{ratelimit.ByKey, routes.Write, s.KeyWrite},
	}
}

// Policies returns the table with the overrides; nil if there are no limits.
func (s Settings) Policies() ratelimit.Table {
	if s.None {
		return nil
	}
	table := s.Table
	for _, o := range s.overrides() {
		if o.limit != nil {
			table = table.PerSecond(o.by, o.class, *o.limit)
		}
	}
	return table
}

// Validate returns every fault of the settings. The argument maxBody is the maximum number of bytes of a request body.
// Each limit of bytes must be large enough for one body.
func (s Settings) Validate(maxBody int64) error {
	err := errs.In(s.Policies().Validate(maxBody), "--limits")
	if s.Redis != "" {
		err = errors.Join(err, errs.In(ratelimit.CheckURL(s.Redis), "--limits-redis"))
	}
	return err
}
