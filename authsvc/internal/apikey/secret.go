package apikey

import (
	"crypto/rand"
	"fmt"
	"hash/crc32"
	"strings"
)

const (
	prefix   = "ark_"
	alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"
	random   = 32 // number of random characters: 165 bits
	checked  = 6  // number of characters of the checksum
)

// New returns a new API key: "ark_", 32 random letters and digits, and six
// characters of checksum. Secret scanners recognize a key by its prefix and
// checksum.
func New() string {
	var b strings.Builder
	b.WriteString(prefix)
	for b.Len() < len(prefix)+random {
		var bits [1]byte
		rand.Read(bits[:])                                // never fails
		if n := int(bits[0]); n < 256-256%len(alphabet) { // larger values would make some characters more frequent
			b.WriteByte(alphabet[n%len(alphabet)])
		}
	}
	return b.String() + checksum(b.String())
}

func checksum(text string) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text)))[:checked]
}
