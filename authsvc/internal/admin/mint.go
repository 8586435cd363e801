package admin

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/authapi"
)

func mint() (secret, hash string) {
	secret = apikey.New()
	return secret, authapi.Hash(secret)
}

// newID names a key. Ids are in the order of their making.
func newID(now time.Time) string {
	var bits [10]byte
	binary.BigEndian.PutUint32(bits[:4], uint32(now.Unix()))
	rand.Read(bits[4:]) // never fails
	return "key-" + strings.ToLower(base32.HexEncoding.EncodeToString(bits[:]))
}
