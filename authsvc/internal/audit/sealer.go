package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/keyring"
)

// Sealer seals audit entries with the current secret. An intruder who can write to the store but does not have
// the secret cannot forge an entry. A seal begins with the name of the secret that made it: "NAME:HEX".
type Sealer struct{ keys []keyring.Key }

// NewSealer returns a sealer with keys derived from the registry's secrets. The
// first secret is the current one.
func NewSealer(secrets keyring.Ring) (*Sealer, error) {
	keys, err := secrets.Derive("asset-registry audit log")
	return &Sealer{keys}, err
}

// Append returns the entry with the number, hashes and seal that put it after head. It replaces invalid UTF-8,
// which JSON cannot hold: otherwise the hash would not match the entry when it is read back.
func (s *Sealer) Append(head adminapi.Head, e adminapi.Entry) (adminapi.Entry, error) {
	for _, text := range []*string{&e.Who, &e.From, &e.RequestID, &e.Subject} {
		*text = strings.ToValidUTF8(*text, "\uFFFD")
	}
	e.Seq, e.Prev = head.Seq+1, head.Hash
	sum, err := e.Sum()
	if err != nil {
		return e, err
	}
	e.Hash, e.Seal = sum, s.seal(sum)
	return e, nil
}

func (s *Sealer) seal(hash string) string {
	current := s.keys[0]
	return current.Name + ":" + sealWith(current, hash)
}

func sealWith(k keyring.Key, hash string) string {
	mac := hmac.New(sha256.New, k.Key)
	mac.Write([]byte(hash))
	return hex.EncodeToString(mac.Sum(nil))
}

// fault returns what is wrong with the seal of an entry; "" if the seal is valid.
func (s *Sealer) fault(e adminapi.Entry) string {
	name, seal, _ := strings.Cut(e.Seal, ":")
	known := false
	for _, k := range s.keys {
		if k.Name != name {
			continue
		}
		known = true
		if hmac.Equal([]byte(sealWith(k, e.Hash)), []byte(seal)) {
			return ""
		}
	}
	if !known {
		return "is sealed with a secret that this registry does not have"
	}
	return "was not written by this registry"
}

// current reports whether the current secret sealed the entry.
func (s *Sealer) current(e adminapi.Entry) bool { return e.Seal == s.seal(e.Hash) }
