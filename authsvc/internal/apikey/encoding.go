package apikey

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/errs"
	"asset-registry/shared/identity"
)

// encodedKey is a key as stores keep it.
type encodedKey struct {
	ID        string          `json:"id"`
	Broker    string          `json:"broker"`
	Name      string          `json:"name"`
	Role      identity.Role   `json:"role"`
	Levels    string          `json:"levels,omitempty"`
	Test      bool            `json:"test,omitempty"`
	Expires   time.Time       `json:"expires,omitzero"`
	Limits    authapi.Limits  `json:"limits,omitempty"`
	Allow     []netip.Prefix  `json:"allow,omitempty"`
	Created   time.Time       `json:"created"`
	Modified  time.Time       `json:"modified"`
	Revoked   time.Time       `json:"revoked,omitzero"`
	Secrets   []encodedSecret `json:"secrets"`
	Unaudited bool            `json:"unaudited,omitempty"`
}

type encodedSecret struct {
	Number  int       `json:"number"`
	Hash    string    `json:"sha256"`
	Created time.Time `json:"created"`
	Until   time.Time `json:"until,omitzero"`
}

// encodedBroker is a broker as stores keep it.
type encodedBroker struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Contact string `json:"contact,omitempty"`
	Blocked bool   `json:"blocked,omitempty"`

	Raise       int64     `json:"raise,omitempty"`
	RaisedUntil time.Time `json:"raised_until,omitzero"`

	Created  time.Time `json:"created"`
	Modified time.Time `json:"modified"`
}

// Encode returns the key as JSON for a store.
func (k Key) Encode() ([]byte, error) {
	s := k.Settings
	e := encodedKey{
		ID: k.ID, Broker: k.Broker, Name: s.Name, Role: s.Role, Levels: s.Levels, Test: s.Test, Expires: s.Expires,
		Limits: s.Limits, Allow: s.Allow, Created: k.Created, Modified: k.Modified, Revoked: k.Revoked,
		Unaudited: k.Unaudited,
	}
	for _, secret := range k.Secrets {
		e.Secrets = append(e.Secrets, encodedSecret(secret))
	}
	text, err := json.Marshal(e)
	return text, errs.In(err, "encode key %s", k.ID)
}

// DecodeKey decodes a text that Key.Encode has made.
func DecodeKey(text []byte) (Key, error) {
	var e encodedKey
	if err := json.Unmarshal(text, &e); err != nil {
		return Key{}, fmt.Errorf("decode key: %w", err)
	}
	k := Key{
		ID: e.ID, Broker: e.Broker, Created: e.Created, Modified: e.Modified, Revoked: e.Revoked, Unaudited: e.Unaudited,
		Settings: Settings{e.Name, e.Role, e.Levels, e.Test, e.Expires, e.Limits, e.Allow},
	}
	for _, secret := range e.Secrets {
		k.Secrets = append(k.Secrets, Secret(secret))
	}
	return k, nil
}

// Encode returns the broker as JSON for a store.
func (b Broker) Encode() ([]byte, error) {
	text, err := json.Marshal(encodedBroker(b))
	return text, errs.In(err, "encode broker %s", b.Name)
}

// DecodeBroker decodes a text that Broker.Encode has made.
func DecodeBroker(text []byte) (Broker, error) {
	var e encodedBroker
	if err := json.Unmarshal(text, &e); err != nil {
		return Broker{}, fmt.Errorf("decode broker: %w", err)
	}
	return Broker(e), nil
}
