package translog

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Use says what a key signs. Its value is the signature type of signed-note.
type Use byte

// The uses of keys. For both uses, the keys are Ed25519 keys.
const (
	ForLog     Use = 0x01 // signs the checkpoints of a log
	ForWitness Use = 0x04 // makes timestamped cosignatures (tlog-cosignature)
)

// ErrKey is the cause of every error about a key. No such error quotes a secret.
var ErrKey = errors.New("malformed key")

// Key is a secret key of a log or of a witness.
type Key struct {
	public  PublicKey
	private ed25519.PrivateKey
}

// NewKey makes a key from a seed of 32 random bytes. The name of a log's key is the
// log's origin.
func NewKey(use Use, name string, seed []byte) (Key, error) {
	if len(seed) != ed25519.SeedSize {
		return Key{}, fmt.Errorf("%w: a seed of %d bytes", ErrKey, len(seed))
	}
	private := ed25519.NewKeyFromSeed(seed)
	public, err := newPublicKey(use, name, private.Public().(ed25519.PublicKey))
	return Key{public, private}, err
}

// GenerateKey makes a new key.
func GenerateKey(use Use, name string) (Key, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return Key{}, err
	}
	return NewKey(use, name, private.Seed())
}

const secretPrefix = "PRIVATE+KEY+"

// ParseKey reads a secret key as Secret returns it.
func ParseKey(skey string) (Key, error) {
	rest, ok := strings.CutPrefix(skey, secretPrefix)
	name, use, hash, seed, err := cutKey(rest)
	if !ok || err != nil {
		return Key{}, fmt.Errorf("%w: not a secret key of a log or a witness", ErrKey)
	}
	key, err := NewKey(use, name, seed)
	if err == nil && key.public.hash != hash {
		err = fmt.Errorf("%w: its id is another", ErrKey)
	}
	return key, err
}

// Secret returns the key in the form of signed notes: a line that begins with
// "PRIVATE+KEY+", without a newline.
func (k Key) Secret() string { return secretPrefix + k.public.print(k.private.Seed()) }

// Public returns the public key.
func (k Key) Public() PublicKey { return k.public }

// signer signs notes with the key of a log.
type signer struct{ Key }

func (s signer) Name() string                     { return s.public.name }
func (s signer) KeyHash() uint32                  { return s.public.hash }
func (s signer) Sign(text []byte) ([]byte, error) { return ed25519.Sign(s.private, text), nil }

// cosigned returns what a witness signs (tlog-cosignature, "Ed25519 signed
// message").
func cosigned(stamp uint64, text []byte) []byte {
	return append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", stamp), text...)
}

// PublicKey is the public key of a log or of a witness. It is a note.Verifier.
type PublicKey struct {
	use  Use
	name string
	hash uint32
	raw  [ed25519.PublicKeySize]byte
}

func newPublicKey(use Use, name string, raw []byte) (PublicKey, error) {
	if use != ForLog && use != ForWitness || len(raw) != ed25519.PublicKeySize {
		return PublicKey{}, fmt.Errorf("%w: type 0x%02x with %d bytes", ErrKey, byte(use), len(raw))
	}
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, isRefused) {
		return PublicKey{}, fmt.Errorf("%w: name %.40q", ErrKey, name)
	}
	k := PublicKey{use: use, name: name, raw: [ed25519.PublicKeySize]byte(raw)}
	sum := sha256.Sum256(append([]byte(name+"\n"+string(rune(use))), raw...))
	k.hash = binary.BigEndian.Uint32(sum[:])
	return k, nil
}

// isRefused reports whether the character is forbidden in the name of a key.
func isRefused(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '+' }

// ParsePublicKey reads a public key as String returns it ("vkey").
func ParsePublicKey(vkey string) (PublicKey, error) {
	name, use, hash, raw, err := cutKey(vkey)
	if err != nil {
		return PublicKey{}, err
	}
	k, err := newPublicKey(use, name, raw)
	if err == nil && k.hash != hash {
		err = fmt.Errorf("%w: its id is another", ErrKey)
	}
	return k, err
}

// cutKey cuts a key in text form: a name, an id of eight hexadecimal digits, and in
// base64 a type and the key's bytes.
func cutKey(text string) (name string, use Use, hash uint32, raw []byte, err error) {
	name, rest, _ := strings.Cut(text, "+")
	id, rest, _ := strings.Cut(rest, "+")
	n, err1 := strconv.ParseUint(id, 16, 32)
	raw, err2 := decode64(rest)
	if !isHex(id, 8) || err1 != nil || err2 != nil || len(raw) == 0 {
		return "", 0, 0, nil, ErrKey
	}
	return name, Use(raw[0]), uint32(n), raw[1:], nil
}

// print returns the text form of a key. raw has the bytes of the public key, or the seed of the secret key.
func (k PublicKey) print(raw []byte) string {
	typed := append([]byte{byte(k.use)}, raw...)
	return fmt.Sprintf("%s+%08x+%s", k.name, k.hash, base64.StdEncoding.EncodeToString(typed))
}

// String returns the key in the form of signed notes ("vkey").
func (k PublicKey) String() string { return k.print(k.raw[:]) }

// Use returns what the key signs.
func (k PublicKey) Use() Use { return k.use }

// Name returns the key's name, which is the origin for the key of a log.
func (k PublicKey) Name() string { return k.name }

// KeyHash returns the key's id.
func (k PublicKey) KeyHash() uint32 { return k.hash }

// Verify reports whether this key has made the signature of the text.
func (k PublicKey) Verify(text, signature []byte) bool {
	if k.use == ForWitness {
		if len(signature) != 8+ed25519.SignatureSize || binary.BigEndian.Uint64(signature) > math.MaxInt64 {
			return false
		}
		text = cosigned(binary.BigEndian.Uint64(signature), text)
		signature = signature[8:]
	}
	return ed25519.Verify(k.raw[:], text, signature)
}
