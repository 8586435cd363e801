package translog

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"
)

// Signer says who made a signature of a checkpoint. The signature itself was not verified.
type Signer struct {
	Name string
	ID   string    // id of the key: eight hexadecimal digits
	At   time.Time // when a witness cosigned; zero for other signatures
}

// The bytes of a cosignature: key id, time and Ed25519 signature. No time is later
// than the year 9999.
const (
	cosignatureSize = 4 + 8 + 64
	latest          = 253402300799 // seconds since the epoch
)

// Signers lists the signatures of a signed checkpoint, without verifying them. For a malformed checkpoint it
// returns an error with the cause ErrCheckpoint.
func Signers(signed []byte) ([]Signer, error) {
	if _, err := Unverified(signed); err != nil {
		return nil, err
	}
	var all []Signer
	lines := signed[bytes.LastIndex(signed, []byte("\n\n"))+2:]
	for line := range strings.Lines(string(lines)) {
		name, signature, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "— "), " ")
		raw, err := base64.StdEncoding.DecodeString(signature)
		if err != nil || len(raw) < 4 {
			continue // cannot happen: Unverified refuses a checkpoint with a malformed signature
		}
		s := Signer{Name: name, ID: hex.EncodeToString(raw[:4])}
		if len(raw) == cosignatureSize {
			if at := binary.BigEndian.Uint64(raw[4:]); at <= latest {
				s.At = time.Unix(int64(at), 0).UTC()
			}
		}
		all = append(all, s)
	}
	return all, nil
}
