// Package audit writes and checks the audit log. The log is a chain of sealed entries: one for each change of a
// broker or key, for each action of an operator on a webhook, for each recovery of an asset, and for each file
// that was taken down. A client can check the same chain with adminapi.Chain.
package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"asset-registry/shared/adminapi"
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

// LogSubject is the subject of entries about the log itself.
const LogSubject = "log"

// Actions returns every action, except the actions on webhooks.
func Actions() []string {
	return []string{
		CreateBroker, ChangeBroker, CreateKey, ChangeKey, RotateKey, RevokeKey, RecoverAsset, RemoveFile,
		EndAgain, adminapi.LogLost, AcceptKeys,
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

// FileOf returns the id of the file that a subject names, or false if the subject does not name a file.
func FileOf(subject string) (id string, ok bool) { return strings.CutPrefix(subject, fileSubject) }

// recorded reports whether the store of this service has the thing that a subject names: a broker or a key.
func recorded(subject string) bool {
	_, webhook := WebhookOf(subject)
	_, asset := AssetOf(subject)
	_, file := FileOf(subject)
	return !webhook && !asset && !file && subject != LogSubject
}

// Encode encodes the state of something before or after a change, in the form that the log stores.
func Encode(value any) (json.RawMessage, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode for the audit log: %w", err)
	}
	return text, nil
}
