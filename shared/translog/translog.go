// Package translog holds the formats of the public log of changes (docs/log.md): leaves, commitments, tiles,
// checkpoints, cosignatures, policies and proofs, and the verification of a whole log. C2SP specifies the
// formats (signed-note, tlog-checkpoint, tlog-tiles, tlog-cosignature, tlog-policy, tlog-proof). The package
// uses neither network nor storage.
package translog

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// Limits of outside input, in bytes. A reader of a log must not read more from one answer.
const (
	MaxLeaf       = 512                 // a leaf of a log of the registry
	MaxCheckpoint = 64 << 10            // a signed checkpoint
	MaxBundle     = 256 * (2 + MaxLeaf) // an entry bundle
	MaxProof      = 16 << 20            // a proof file, with the asset that it holds
	MaxPolicy     = 256 << 10           // a policy file
)

// MaxSize is the largest number of leaves that a tree may have. The functions of
// tlog do not end for sizes above 2^62.
const MaxSize = int64(1) << 60

var (
	errMalformedHash   = errors.New("malformed hash")
	errMalformedNumber = errors.New("malformed number")
)

// decode64 decodes standard base64. It refuses a text that has line ends, or bits that encode nothing.
func decode64(text string) ([]byte, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err == nil && strings.ContainsAny(text, "\r\n") {
		err = errors.New("a line end within base64")
	}
	return raw, err
}

// parseHash reads the base64 form of a hash, and accepts only the form that
// Hash.String prints.
func parseHash(text string) (tlog.Hash, error) {
	raw, err := decode64(text)
	if err != nil || len(raw) != tlog.HashSize {
		return tlog.Hash{}, errMalformedHash
	}
	return tlog.Hash(raw), nil
}

// parseSize reads a decimal number from 0 to MaxSize without leading zeroes.
func parseSize(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > MaxSize || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%w %.40q", errMalformedNumber, text)
	}
	return n, nil
}
