package apikey

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
)

// encodedKey is a key as stores keep it.
type encodedKey struct {
	ID       string          `json:"id"`
	Broker   string          `json:"broker"`
	Name     string          `json:"name"`
	Role     identity.Role   `json:"role"`
	Levels   string          `json:"levels,omitempty"`
	Test     bool            `json:"test,omitempty"`
	Expires  time.Time       `json:"expires,omitzero"`
	Limits   authapi.Limits  `json:"limits,omitempty"`
	Allow    []netip.Prefix  `json:"allow,omitempty"`
	Created  time.Time       `json:"created"`
	Modified time.Time       `json:"modified"`
	Revoked  time.Time       `json:"revoked,omitzero"`
	Secrets  []encodedSecret `json:"secrets"`
}

type encodedSecret struct {
	Number  int       `json:"number"`
	Hash    string    `json:"sha256"`
	Created time.Time `json:"created"`
	Until   time.Time `json:"until,omitzero"`
}

// encodedBroker is a broker as stores keep it.
type encodedBroker struct {
	Name     string    `json:"name"`
	Title    string    `json:"title,omitempty"`
	Contact  string    `json:"contact,omitempty"`
	Blocked  bool      `json:"blocked,omitempty"`
	Created  time.Time `json:"created"`
	Modified time.Time `json:"modified"`
}

// Encode returns the key as text for a store.
func (k Key) Encode() ([]byte, error) {
	s := k.Settings
	e := encodedKey{k.ID, k.Broker, s.Name, s.Role, s.Levels, s.Test, s.Expires, s.Limits, s.Allow, k.Created, k.Modified, k.Revoked, nil}
	for _, secret := range k.Secrets {
		e.Secrets = append(e.Secrets, encodedSecret(secret))
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode key %s: %w", k.ID, err)
	}
	return text, nil
}

// DecodeKey returns the key that Encode made the text of.
func DecodeKey(text []byte) (Key, error) {
	var e encodedKey
	if err := json.Unmarshal(text, &e); err != nil {
		return Key{}, fmt.Errorf("decode key: %w", err)
	}
	k := Key{
		ID: e.ID, Broker: e.Broker, Created: e.Created, Modified: e.Modified, Revoked: e.Revoked,
		Settings: Settings{e.Name, e.Role, e.Levels, e.Test, e.Expires, e.Limits, e.Allow},
	}
	for _, secret := range e.Secrets {
		k.Secrets = append(k.Secrets, Secret(secret))
	}
	return k, nil
}

// Encode returns the broker as text for a store.
func (b Broker) Encode() ([]byte, error) {
	text, err := json.Marshal(encodedBroker(b))
	if err != nil {
		return nil, fmt.Errorf("encode broker %s: %w", b.Name, err)
	}
	return text, nil
}

// DecodeBroker returns the broker that Encode made the text of.
func DecodeBroker(text []byte) (Broker, error) {
	var e encodedBroker
	if err := json.Unmarshal(text, &e); err != nil {
		return Broker{}, fmt.Errorf("decode broker: %w", err)
	}
	return Broker(e), nil
}
