// Package audit writes and checks the audit log. The log is a chain of sealed entries: one for each change of a
// broker or key, for each action of an operator on a webhook, for each recovery of an asset, for each file that was
// taken down, and for what people do in the console. A client can check the same chain with adminapi.Chain.
package audit

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/errs"
	"asset-registry/shared/keyring"
)

// Log is the stored audit log. It is safe for concurrent use.
type Log interface {
	// Head returns the end of the log. It includes every change whose call has returned.
	Head(ctx context.Context) (adminapi.Head, error)
	// Entries returns up to limit entries, in order. The first one follows the entry with the number in the
	// argument `after`.
	Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error)
	// Reseal durably replaces entries by copies that are sealed with another secret. The head stays the same.
	Reseal(ctx context.Context, entries []adminapi.Entry) error
}

// The actions on brokers and keys, as entries name them.
const (
	CreateBroker = "broker.create"
	ChangeBroker = "broker.change"
	CreateKey    = "key.create"
	ChangeKey    = "key.change"
	RotateKey    = "key.rotate"
	RevokeKey    = "key.revoke"
)

// RecoverAsset is the action of giving an asset new tokens.
const RecoverAsset = "asset.recover"

// RemoveFile is the action of taking down a file that belongs to a document.
const RemoveFile = "file.remove"

// EndAgain is the action of ending a right that an entry had ended which the store lost (adminapi.LogLost).
const EndAgain = "right.end"

// AcceptKeys is the action of a person who lets the keys go on as they are, after endings were lost.
const AcceptKeys = "keys.accept"

// RemoveBroker is the action of removing a broker that owns nothing and whose keys were never used.
const RemoveBroker = "broker.remove"

// The actions of people that change nothing.
const (
	BeginSession = "session.begin"   // somebody signs in
	EndSession   = "session.end"     // somebody signs out, or an operator ends the session
	Refuse       = "session.refused" // wrong keys came from an address
	ReadAsset    = "asset.read"      // somebody sees a draft, or hidden fields of an asset
	ExportLog    = "audit.export"
)

// Session is what the audit log shows of a session of the console.
type Session struct {
	ID string `json:"session"`
}

// LogSubject is the subject of entries about the log itself and about sessions.
const LogSubject = "log"

// Actions returns every action, except the actions on webhooks.
func Actions() []string {
	return []string{
		CreateBroker, ChangeBroker, CreateKey, ChangeKey, RotateKey, RevokeKey, RecoverAsset, RemoveFile,
		EndAgain, adminapi.LogLost, AcceptKeys, RemoveBroker, BeginSession, EndSession, Refuse, ReadAsset, ExportLog,
	}
}

const (
	keySubject     = "key "
	brokerSubject  = "broker "
	webhookSubject = "webhook "
	assetSubject   = "asset "
	fileSubject    = "file "
)

// OfKey returns the subject of entries about the key with an id.
func OfKey(id string) string { return keySubject + id }

// OfBroker returns the subject of entries about the broker with a name.
func OfBroker(name string) string { return brokerSubject + name }

// KeyOf returns the id of the key that a subject names, or false if the subject does not name a key.
func KeyOf(subject string) (id string, ok bool) { return strings.CutPrefix(subject, keySubject) }

// BrokerOf returns the name of the broker that a subject names, or false if the subject does not name a broker.
func BrokerOf(subject string) (name string, ok bool) {
	return strings.CutPrefix(subject, brokerSubject)
}

// OfWebhook returns the subject of entries about the webhook with an id. The store of this service has no
// webhooks: they are in the asset service.
func OfWebhook(id string) string { return webhookSubject + id }

// WebhookOf returns the id of the webhook that a subject names, or false if the subject does not name a
// webhook.
func WebhookOf(subject string) (id string, ok bool) {
	return strings.CutPrefix(subject, webhookSubject)
}

// OfAsset returns the subject of entries about the asset with an id. The store of this service has no assets:
// they are in the asset service.
func OfAsset(id string) string { return assetSubject + id }

// AssetOf returns the id of the asset that a subject names, or false if the subject does not name an asset.
func AssetOf(subject string) (id string, ok bool) { return strings.CutPrefix(subject, assetSubject) }

// OfFile returns the subject of entries about the file with an id. The store of this service has no files: they
// are in the file service.
func OfFile(id string) string { return fileSubject + id }

// recorded reports whether the store of this service has the thing that a subject names: a broker or a key.
func recorded(subject string) bool {
	_, key := KeyOf(subject)
	_, broker := BrokerOf(subject)
	return key || broker
}

// Encode encodes the state of something before or after a change, in the form that the log stores.
func Encode(value any) (json.RawMessage, error) {
	text, err := json.Marshal(value)
	return text, errs.In(err, "encode for the audit log")
}

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

// Reseal seals all entries with the current secret, so that operators can remove
// the former secrets. It returns the number of entries whose seal it replaced.
// Reseal fails without a change if the log has problems. It may be repeated.
func (c *Checker) Reseal(ctx context.Context) (resealed int, err error) {
	found, err := c.Check(ctx)
	if err != nil {
		return 0, err
	}
	if len(found.Problems) > 0 {
		return 0, fmt.Errorf("reseal audit log: the log has problems: %s", strings.Join(found.Problems, "; "))
	}
	for after := int64(0); ; {
		entries, err := c.log.Entries(ctx, after, page)
		if err != nil {
			return resealed, fmt.Errorf("reseal audit log: %w", err)
		}
		var changed []adminapi.Entry
		for _, e := range entries {
			after = e.Seq
			// An entry with a faulty seal was added after the check. It stays unchanged.
			if c.sealer.current(e) || c.sealer.fault(e) != "" {
				continue
			}
			e.Seal = c.sealer.seal(e.Hash)
			changed = append(changed, e)
		}
		if err := c.log.Reseal(ctx, changed); err != nil {
			return resealed, fmt.Errorf("reseal audit log: %w", err)
		}
		resealed += len(changed)
		if len(entries) < page {
			return resealed, nil
		}
	}
}
