package token

import (
	"encoding/json"
	"fmt"
)

// encoded is a record as stores keep it, under the asset's id.
type encoded struct {
	Broker       string `json:"broker"`
	OwnerHash    string `json:"owner"`
	TransferHash string `json:"transfer"`
	Generation   int64  `json:"generation"`
	From         string `json:"from,omitempty"`
	Former       string `json:"former,omitempty"`
}

// Encode returns the record as JSON for a store, without the asset's id.
func (r Record) Encode() ([]byte, error) {
	text, err := json.Marshal(encoded{r.Broker, r.OwnerHash, r.TransferHash, r.Generation, r.From, r.Former})
	if err != nil {
		return nil, fmt.Errorf("encode tokens of asset %s: %w", r.AssetID, err)
	}
	return text, nil
}

// Decode decodes the record of an asset from a text that Record.Encode has made.
func Decode(assetID string, text []byte) (Record, error) {
	var e encoded
	if err := json.Unmarshal(text, &e); err != nil {
		return Record{}, fmt.Errorf("decode tokens of asset %s: %w", assetID, err)
	}
	return Record{assetID, e.Broker, e.OwnerHash, e.TransferHash, e.Generation, e.From, e.Former}, nil
}

// encodedTransfer is a transfer as stores keep it, under its id.
type encodedTransfer struct {
	Broker       string `json:"broker"`
	OwnerHash    string `json:"owner"`
	TransferHash string `json:"transfer"`
	Date         int64  `json:"date"`
	AssetID      string `json:"asset,omitempty"`
	Expires      int64  `json:"expires,omitempty"`
	Claim        Claim  `json:"claim,omitzero"`
}

// Encode returns the transfer as JSON for a store, without its id.
func (t Transfer) Encode() ([]byte, error) {
	e := encodedTransfer{t.Broker, t.OwnerHash, t.TransferHash, t.Date, t.AssetID, t.Expires, t.Claim}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode transfer %s: %w", t.ID, err)
	}
	return text, nil
}

// DecodeTransfer decodes the transfer with an id from a text that Transfer.Encode has made.
func DecodeTransfer(id string, text []byte) (Transfer, error) {
	var e encodedTransfer
	if err := json.Unmarshal(text, &e); err != nil {
		return Transfer{}, fmt.Errorf("decode transfer %s: %w", id, err)
	}
	return Transfer{id, e.Broker, e.OwnerHash, e.TransferHash, e.Date, e.AssetID, e.Expires, e.Claim}, nil
}
