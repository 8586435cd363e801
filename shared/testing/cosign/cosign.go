// Package cosign makes cosignatures of checkpoints, as a witness does (tlog-cosignature).
package cosign

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Line returns the line with the cosignature of a signed checkpoint. The argument `secret` is a secret key in the form
// of signed notes (translog.Key.Secret). Line panics if it is malformed.
func Line(checkpoint []byte, secret string, at time.Time) []byte {
	parts := strings.Split(strings.TrimPrefix(secret, "PRIVATE+KEY+"), "+") // the last part may have a "+", too
	id, err1 := hex.DecodeString(parts[1])
	typed, err2 := base64.StdEncoding.DecodeString(strings.Join(parts[2:], "+"))
	if err1 != nil || err2 != nil {
		panic("cosign: malformed key")
	}
	text := checkpoint[:bytes.LastIndex(checkpoint, []byte("\n\n"))+1]
	signed := fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at.Unix(), text)
	raw := binary.BigEndian.AppendUint64(id, uint64(at.Unix()))
	raw = append(raw, ed25519.Sign(ed25519.NewKeyFromSeed(typed[1:]), signed)...)
	return fmt.Appendf(nil, "— %s %s\n", parts[0], base64.StdEncoding.EncodeToString(raw))
}
