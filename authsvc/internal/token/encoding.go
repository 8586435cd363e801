package token

import (
	"encoding/json"
	"fmt"
)

// encoded is a record as stores keep it, under its asset's id.
type encoded struct {
	Broker       string `json:"broker"`
	OwnerHash    string `json:"owner"`
	TransferHash string `json:"transfer"`
	Generation   int64  `json:"generation"`
}

// Encode returns the record as text for a store to keep under the asset's id.
func (r Record) Encode() ([]byte, error) {
	text, err := json.Marshal(encoded{r.Broker, r.OwnerHash, r.TransferHash, r.Generation})
	if err != nil {
		return nil, fmt.Errorf("encode tokens of asset %s: %w", r.AssetID, err)
	}
	return text, nil
}

// Decode returns the record that Encode made the text of.
func Decode(assetID string, text []byte) (Record, error) {
	var e encoded
	if err := json.Unmarshal(text, &e); err != nil {
		return Record{}, fmt.Errorf("decode tokens of asset %s: %w", assetID, err)
	}
	return Record{assetID, e.Broker, e.OwnerHash, e.TransferHash, e.Generation}, nil
}
