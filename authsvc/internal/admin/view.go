package admin

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/identity"
)

// viewBroker is what may be known of a broker.
func viewBroker(b apikey.Broker) adminapi.Broker { return adminapi.Broker(b) }

// viewKey is what may be known of a key, and what the audit log tells of it: no
// hash is in it.
func viewKey(k apikey.Key) adminapi.Key {
	v := adminapi.Key{ID: k.ID, Broker: k.Broker, KeySettings: viewSettings(k.Settings), Created: k.Created, Modified: k.Modified, Revoked: optional(k.Revoked)}
	for _, s := range k.Secrets {
		v.Secrets = append(v.Secrets, adminapi.Secret{Number: s.Number, Fingerprint: s.Fingerprint(), Created: s.Created, Until: optional(s.Until)})
	}
	return v
}

func viewSettings(s apikey.Settings) adminapi.KeySettings {
	v := adminapi.KeySettings{Name: s.Name, Role: string(s.Role), Levels: s.Levels, Test: s.Test, Expires: optional(s.Expires), Limits: s.Limits}
	for _, prefix := range s.Allow {
		v.Allow = append(v.Allow, prefix.String())
	}
	return v
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// settings reads what an operator says of a key, and notes what of it cannot be
// read.
func settings(v adminapi.KeySettings, found *problems.List) apikey.Settings {
	s := apikey.Settings{Name: v.Name, Role: identity.Role(v.Role), Levels: v.Levels, Test: v.Test, Limits: v.Limits}
	if v.Expires != nil {
		if s.Expires = v.Expires.UTC().Truncate(time.Microsecond); s.Expires.IsZero() { // which stands for no end
			found.Add("expires", timeOver)
		}
	}
	for i, text := range v.Allow {
		prefix, err := netip.ParsePrefix(text)
		if addr, bad := netip.ParseAddr(text); err != nil && bad == nil {
			prefix, err = addr.Unmap().Prefix(addr.Unmap().BitLen())
		}
		if err != nil {
			found.Add("allow."+strconv.Itoa(i), "%.50q is neither an address nor a network such as 192.0.2.0/24.", text)
		}
		s.Allow = append(s.Allow, prefix.Masked())
	}
	return s
}

// timeOver is told of an end that no key can have.
const timeOver = "The time is over already."

// told is a value as the audit log has it.
func told(value any) (json.RawMessage, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode for the audit log: %w", err)
	}
	return text, nil
}

// The subjects of audit entries.
const (
	ofKey    = "key "
	ofBroker = "broker "
)
