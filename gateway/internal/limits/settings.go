package limits

import (
	"errors"
	"fmt"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/routes"
)

// Settings say how many requests each client may send. The tags make them flags
// of a command. The zero value admits everything.
type Settings struct {
	Table ratelimit.Table `name:"limits" placeholder:"NAME" help:"production, sandbox, or in the file a list of policies."`

	Redis string `name:"limits-redis" placeholder:"URL" help:"Redis, or its sentinels, that all gateways count in."`

	Fallback ratelimit.Fallback `name:"limits-away" default:"local" enum:"local,open,closed" help:"Without Redis: count, admit, deny."`

	Gateways int64 `name:"limits-gateways" default:"0" help:"Most gateways on it; each reserves a share. 0: unknown."`

	None bool `name:"no-limits" help:"Admit any number of requests."`

	AddressList  *int64 `name:"limit-address-list" placeholder:"N" help:"Pages a second by one address; 0: any number."`
	AddressRead  *int64 `name:"limit-address-read" placeholder:"N" help:"Reads a second by one address; 0: any number."`
	AddressWrite *int64 `name:"limit-address-write" placeholder:"N" help:"Writes a second by one address; 0: any number."`
	KeyList      *int64 `name:"limit-key-list" placeholder:"N" help:"Pages a second by one API key; 0: any number."`
	KeyRead      *int64 `name:"limit-key-read" placeholder:"N" help:"Reads a second by one API key; 0: any number."`
	KeyWrite     *int64 `name:"limit-key-write" placeholder:"N" help:"Writes a second by one API key; 0: any number."`
}

// OrDefault returns s with the table of a sandbox or of production if s has no
// table of its own.
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

// override replaces the policy of one class by a number of requests a second.
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

// policies returns the table with the overrides; nil for no limits.
func (s Settings) policies() ratelimit.Table {
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

// Validate returns every fault of the settings. maxBody is the limit of a
// request body in bytes; each limit of bytes must have room for one.
func (s Settings) Validate(maxBody int64) error {
	var faults []error
	for _, o := range s.overrides() {
		if o.limit != nil && *o.limit < 0 {
			faults = append(faults, fmt.Errorf("the limit of %s requests by %s must not be negative", o.class, o.by))
		}
	}
	if faults == nil {
		faults = append(faults, s.policies().Validate(maxBody))
	}
	if s.Gateways < 0 {
		faults = append(faults, errors.New("the number of gateways must not be negative"))
	}
	if s.Redis != "" {
		faults = append(faults, ratelimit.CheckURL(s.Redis))
	}
	return errors.Join(faults...)
}
