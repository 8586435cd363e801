// Package audit writes and checks the audit log: a chain of sealed entries, one
// for each change of a broker or key, for what operators do to webhooks, for each recovery
// of an asset, and for each file that was taken down.
// adminapi.Chain checks the same chain on the client's side.
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
	// Head returns the end of the log. It sees every change that has returned.
	Head(ctx context.Context) (adminapi.Head, error)
	// Entries returns up to limit entries after number after, in order.
	Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error)
	// Reseal durably replaces entries by copies with other seals. The head stays.
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

// RemoveFile is the action of taking a file of documents down.
const RemoveFile = "file.remove"

// Actions returns every action but those on webhooks.
func Actions() []string {
	return []string{CreateBroker, ChangeBroker, CreateKey, ChangeKey, RotateKey, RevokeKey, RecoverAsset, RemoveFile}
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

// KeyOf returns the id of the key that a subject names; false if it names no key.
func KeyOf(subject string) (id string, ok bool) { return strings.CutPrefix(subject, keySubject) }

// BrokerOf returns the name of the broker that a subject names; false if it names
// no broker.
func BrokerOf(subject string) (name string, ok bool) {
	return strings.CutPrefix(subject, brokerSubject)
}

// OfWebhook returns the subject of entries about the webhook with an id. No record of this
// service goes with them: the asset service has the webhooks.
func OfWebhook(id string) string { return webhookSubject + id }

// WebhookOf returns the id of the webhook that a subject names; false if it names no
// webhook.
func WebhookOf(subject string) (id string, ok bool) {
	return strings.CutPrefix(subject, webhookSubject)
}

// OfAsset returns the subject of entries about the asset with an id. No record of this service
// goes with them: the asset service has the assets.
func OfAsset(id string) string { return assetSubject + id }

// AssetOf returns the id of the asset that a subject names; false if it names no asset.
func AssetOf(subject string) (id string, ok bool) { return strings.CutPrefix(subject, assetSubject) }

// OfFile returns the subject of entries about the file with an id. No record of this service goes
// with them: the file service has the files.
func OfFile(id string) string { return fileSubject + id }

// FileOf returns the id of the file that a subject names; false if it names no file.
func FileOf(subject string) (id string, ok bool) { return strings.CutPrefix(subject, fileSubject) }

// recorded reports whether a record of this service goes with entries about a subject.
func recorded(subject string) bool {
	_, webhook := WebhookOf(subject)
	_, asset := AssetOf(subject)
	_, file := FileOf(subject)
	return !webhook && !asset && !file
}

// Encode returns a value as the log stores it, before or after a change.
func Encode(value any) (json.RawMessage, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode for the audit log: %w", err)
	}
	return text, nil
}
