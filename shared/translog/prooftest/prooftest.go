// Package prooftest reads the registry's answers with proofs, for tests. It shares no code with the packages
// that write these answers.
package prooftest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/translog"
)

// Decode returns the proof and the evidence of an answer (docs/log.md, "Proofs"). The extra data of the proof
// holds the evidence, too.
func Decode(answer []byte) (translog.Proof, translog.Evidence, error) {
	var got struct {
		Data struct {
			Index       int64
			Leaf, Asset json.RawMessage
			Salt        *translog.Salt
			Path        []string
			Checkpoint  string
		}
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return translog.Proof{}, translog.Evidence{}, err
	}
	proof := translog.Proof{Index: got.Data.Index, Checkpoint: []byte(got.Data.Checkpoint)}
	evidence := translog.Evidence{Leaf: []byte(got.Data.Leaf), Salt: got.Data.Salt, Asset: []byte(got.Data.Asset)}
	for _, text := range got.Data.Path {
		hash, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(hash) != tlog.HashSize {
			return proof, evidence, fmt.Errorf("got %q in the path, %w; want a hash", text, err)
		}
		proof.Path = append(proof.Path, tlog.Hash(hash))
	}
	var err error
	proof.Extra, err = evidence.Encode()
	return proof, evidence, err
}
