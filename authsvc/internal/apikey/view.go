package apikey

import (
	"time"

	"asset-registry/shared/adminapi"
)

// View returns the broker as the admin API and the audit log show it.
func (b Broker) View() adminapi.Broker { return adminapi.Broker(b) }

// View returns the key as the admin API and the audit log show it: without
// hashes, state and uses.
func (k Key) View() adminapi.Key {
	v := adminapi.Key{
		ID: k.ID, Broker: k.Broker, KeySettings: k.Settings.View(),
		Created: k.Created, Modified: k.Modified, Revoked: optional(k.Revoked),
	}
	for _, s := range k.Secrets {
		v.Secrets = append(v.Secrets, adminapi.Secret{
			Number: s.Number, Fingerprint: s.Fingerprint(), Created: s.Created, Until: optional(s.Until),
		})
	}
	return v
}

// View returns the settings as the admin API shows them.
func (s Settings) View() adminapi.KeySettings {
	v := adminapi.KeySettings{
		Name: s.Name, Role: string(s.Role), Levels: s.Levels, Test: s.Test, Expires: optional(s.Expires), Limits: s.Limits,
	}
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
