package admin

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"asset-registry/shared/adminapi"
)

// Sealer seals audit entries, so that who can write into the store but has not
// the registry's secret cannot make a log that passes for ours.
type Sealer struct{ key []byte }

// NewSealer returns a sealer whose key is derived from the registry's secret (RFC 5869).
func NewSealer(secret []byte) (*Sealer, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "asset-registry audit log", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive key of the audit log: %w", err)
	}
	return &Sealer{key}, nil
}

func (s *Sealer) seal(hash string) string {
	mac := hmac.New(sha256.New, s.key)
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

func (s *Sealer) sealed(e adminapi.Entry) bool {
	return hmac.Equal([]byte(s.seal(e.Hash)), []byte(e.Seal))
}
