package webhook

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"asset-registry/shared/keyring"
)

// ErrSealed is returned for a seal that no secret of the registry opens.
var ErrSealed = errors.New("the secret of a webhook is sealed with a secret that the registry does not have")

// The prefixes of keys in printed form (Standard Webhooks, "Signature scheme").
const (
	secretPrefix = "whsec_"
	publicPrefix = "whpk_"
)

// The purposes from which keys are derived. They must not change, because receivers keep the derived keys.
const (
	sealPurpose   = "asset-registry seeds of webhooks"
	secretPurpose = "asset-registry webhook secret"
	signPurpose   = "asset-registry webhook Ed25519"
)

// seedSize is the length of a seed and of each key that is derived from it, in bytes.
const seedSize = 32

// Seals makes, seals and opens the seeds of endpoints. The secrets of an endpoint are
// derived from its seed (docs/webhooks.md, "Data"). Seals is safe for concurrent use.
type Seals struct {
	keys []sealKey // the current one first
}

type sealKey struct {
	name string
	aead cipher.AEAD
}

// NewSeals returns Seals with keys derived from the registry's secrets. It seals with the first secret, and
// opens with all of them.
func NewSeals(secrets keyring.Ring) (Seals, error) {
	keys, err := secrets.Derive(sealPurpose)
	if err != nil {
		return Seals{}, err
	}
	var s Seals
	for _, k := range keys {
		block, err := aes.NewCipher(k.Key)
		if err != nil {
			return Seals{}, fmt.Errorf("seal seeds of webhooks: %w", err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return Seals{}, fmt.Errorf("seal seeds of webhooks: %w", err)
		}
		s.keys = append(s.keys, sealKey{k.Name, aead})
	}
	return s, nil
}

// New returns a new random seed, sealed with the current secret.
func (s Seals) New() (seal string, err error) {
	seed := make([]byte, seedSize)
	if _, err := rand.Read(seed); err != nil {
		return "", fmt.Errorf("make the secret of a webhook: %w", err)
	}
	return s.seal(seed), nil
}

// seal returns a sealed seed: the name of the secret, a dot, and the cipher text.
func (s Seals) seal(seed []byte) string {
	k := s.keys[0]
	return k.name + "." + base64.RawURLEncoding.EncodeToString(k.aead.Seal(nil, nil, seed, []byte(k.name)))
}

// open returns the seed in a seal, and whether the seal was made with the current secret. It returns ErrSealed
// if no secret opens the seal.
func (s Seals) open(seal string) (seed []byte, current bool, err error) {
	name, text, _ := strings.Cut(seal, ".")
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, false, ErrSealed
	}
	for i, k := range s.keys {
		if k.name != name {
			continue
		}
		if seed, err = k.aead.Open(nil, nil, data, []byte(name)); err != nil || len(seed) != seedSize {
			return nil, false, ErrSealed
		}
		return seed, i == 0, nil
	}
	return nil, false, ErrSealed
}

// Secret returns the keys that belong to a sealed seed, as receivers get them: the
// symmetric secret ("whsec_...") and the public Ed25519 key ("whpk_..."). It returns
// ErrSealed for a seal of another registry.
func (s Seals) Secret(seal string) (secret, publicKey string, err error) {
	k, err := s.keysOf(seal)
	if err != nil {
		return "", "", err
	}
	public := k.private.Public().(ed25519.PublicKey)
	return secretPrefix + base64.StdEncoding.EncodeToString(k.secret),
		publicPrefix + base64.StdEncoding.EncodeToString(public), nil
}

// Renew returns the seed sealed with the current secret. The result `anew` is true for a new seal. A seal that the
// current secret has made, or "", is returned unchanged. Renew returns ErrSealed for a seal of another registry.
func (s Seals) Renew(seal string) (renewed string, anew bool, err error) {
	if seal == "" {
		return "", false, nil
	}
	seed, current, err := s.open(seal)
	if err != nil || current {
		return seal, false, err
	}
	return s.seal(seed), true, nil
}

// keys sign the messages to one endpoint.
type keys struct {
	secret  []byte
	private ed25519.PrivateKey
}

// keysOf derives the keys from a sealed seed.
func (s Seals) keysOf(seal string) (keys, error) {
	seed, _, err := s.open(seal)
	if err != nil {
		return keys{}, err
	}
	secret, err1 := hkdf.Key(sha256.New, seed, nil, secretPurpose, seedSize)
	private, err2 := hkdf.Key(sha256.New, seed, nil, signPurpose, ed25519.SeedSize)
	if err := errors.Join(err1, err2); err != nil {
		return keys{}, fmt.Errorf("derive the keys of a webhook: %w", err)
	}
	return keys{secret, ed25519.NewKeyFromSeed(private)}, nil
}

// Resealed counts the endpoints that Reseal has read.
type Resealed struct {
	All     int
	Anew    int // endpoints whose seed was sealed with a former secret, and is now sealed with the current one
	Foreign int // endpoints with a seed that no secret of the registry opens; they stay unchanged
}

// Reseal seals the seeds of all endpoints with the registry's current secret. The service may run meanwhile, and
// Reseal may be repeated. If Reseal fails, it still returns the counts up to the failure.
func Reseal(ctx context.Context, store Store, seals Seals) (found Resealed, err error) {
	for after := ""; ; {
		page, err := store.Endpoints(ctx, "", after, resealBatch)
		if err != nil {
			return found, fmt.Errorf("read webhooks: %w", err)
		}
		if len(page) == 0 {
			return found, nil
		}
		for _, e := range page {
			found.All++
			anew, err := resealed(ctx, store, seals, e)
			switch {
			case errors.Is(err, ErrSealed):
				found.Foreign++
			case errors.Is(err, ErrNotFound): // removed meanwhile
			case err != nil:
				return found, fmt.Errorf("seal webhook %s anew: %w", e.ID, err)
			case anew:
				found.Anew++
			}
		}
		after = page[len(page)-1].ID
	}
}

const resealBatch = 200

// resealed seals the seeds of an endpoint with the current secret. If a seed was sealed with a former secret, it
// stores the endpoint and returns true.
func resealed(ctx context.Context, store Store, seals Seals, e Endpoint) (anew bool, err error) {
	for {
		next := e
		var anewOld bool
		if next.Seal, anew, err = seals.Renew(e.Seal); err != nil {
			return false, err
		}
		if next.OldSeal, anewOld, err = seals.Renew(e.OldSeal); err != nil {
			return false, err
		}
		if anew = anew || anewOld; !anew {
			return false, nil
		}
		if err = store.Put(ctx, next); !errors.Is(err, ErrStale) {
			return anew, err
		}
		if e, err = store.Endpoint(ctx, e.ID); err != nil {
			return false, err
		}
	}
}
