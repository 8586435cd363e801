package admin

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/keyring"
)

// Sealer seals audit entries with the current secret, so that nobody who can
// write into the store, but lacks the secret, can forge a log. A seal names the
// secret that made it: "NAME:HEX".
type Sealer struct{ keys []keyring.Key }

// NewSealer returns a sealer whose keys are derived from the registry's secrets.
func NewSealer(secrets keyring.Ring) (*Sealer, error) {
	keys, err := secrets.Derive("asset-registry audit log")
	return &Sealer{keys}, err
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

// finish puts an entry at the end of a log. JSON has no text but UTF-8: a hash
// of any other would not be that of the entry as it is read again.
func (s *Sealer) finish(e adminapi.Entry, head adminapi.Head) (adminapi.Entry, error) {
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

// fault tells what is wrong with the seal of an entry, "" if nothing is. Seals
// from before secrets had names are of any of them.
func (s *Sealer) fault(e adminapi.Entry) string {
	name, seal, named := strings.Cut(e.Seal, ":")
	if !named {
		name, seal = "", e.Seal
	}
	known := false
	for _, k := range s.keys {
		if named && k.Name != name {
			continue
		}
		known = true
		if hmac.Equal([]byte(sealWith(k, e.Hash)), []byte(seal)) {
			return ""
		}
	}
	if !known {
		return "is sealed with a secret that is none of this registry's"
	}
	return "was not written by this registry"
}

// current tells whether the current secret has sealed an entry.
func (s *Sealer) current(e adminapi.Entry) bool { return e.Seal == s.seal(e.Hash) }
