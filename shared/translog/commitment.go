package translog

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"asset-registry/shared/errs"
)

// Salt is a part of the input of a commitment. Without the salt, nobody can test
// guesses of the asset. The text form of a salt is hexadecimal.
type Salt [32]byte

// NewSalt returns a new random salt.
func NewSalt() Salt {
	var s Salt
	rand.Read(s[:]) // never fails
	return s
}

// String returns the salt in hexadecimal.
func (s Salt) String() string { return hex.EncodeToString(s[:]) }

// MarshalText returns the salt in hexadecimal.
func (s Salt) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads a salt of 64 lower-case hexadecimal digits.
func (s *Salt) UnmarshalText(text []byte) error {
	if !isHex(string(text), 2*len(s)) {
		return errors.New("malformed salt")
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// Commitment binds a leaf to an asset without revealing it.
type Commitment [sha256.Size]byte

// String returns the commitment in hexadecimal.
func (c Commitment) String() string { return hex.EncodeToString(c[:]) }

// MarshalText returns the commitment in hexadecimal.
func (c Commitment) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, c[:]), nil }

// UnmarshalText reads a commitment of 64 lower-case hexadecimal digits.
func (c *Commitment) UnmarshalText(text []byte) (err error) {
	*c, err = parseCommitment(string(text))
	return err
}

func parseCommitment(text string) (Commitment, error) {
	var c Commitment
	if !isHex(text, 2*len(c)) {
		return c, errors.New("malformed commitment")
	}
	_, err := hex.Decode(c[:], []byte(text))
	return c, err
}

// Commit returns the commitment to an asset: a hash of the salt and the asset's
// canonical form. The asset is a JSON object, with or without dateModified. Commit
// returns the errors of Canonical.
func Commit(salt Salt, asset []byte) (Commitment, error) {
	text, err := Canonical(asset)
	if err != nil {
		return Commitment{}, err
	}
	return seal(salt, text), nil
}

// seal returns the hash of a salt and a canonical form.
func seal(salt Salt, text []byte) Commitment {
	return sha256.Sum256(append(salt[:], text...))
}

// ErrAsset is the cause of every error about an asset that is not one JSON object
// with distinct names and valid strings.
var ErrAsset = errors.New("the asset is not a JSON object")

// Canonical returns the canonical form of an asset (docs/log.md, "Canonical
// form"), without its member dateModified. Numbers stay as they are written. It
// returns errors with the cause ErrAsset.
func Canonical(asset []byte) ([]byte, error) {
	text, _, _, err := dissect(asset)
	return text, err
}

// dissect returns the canonical form of an asset, and its members id and
// dateModified. A member that is missing or not a string is "".
func dissect(asset []byte) (text []byte, id, modified string, err error) {
	var members map[string]jsontext.Value
	err = json.Unmarshal(asset, &members)
	if err == nil && members == nil {
		err = errors.New("it is null")
	}
	id, modified = unquoted(members["id"]), unquoted(members["dateModified"])
	delete(members, "dateModified")
	if err == nil {
		text, _ = json.Marshal(members) // cannot fail: the values are JSON
		err = (*jsontext.Value)(&text).Canonicalize(
			jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	}
	return text, id, modified, errs.In(err, "%w", ErrAsset)
}

// unquoted returns a JSON string's text, and "" for any other value.
func unquoted(value jsontext.Value) string {
	if value.Kind() != jsontext.KindString {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}

// The errors of Leaf.Match.
var (
	ErrNoCommitment = errors.New("a withdrawal commits to nothing")
	ErrMismatch     = errors.New("the asset is not what the leaf commits to")
)

// Match returns nil if the leaf commits to the asset with the salt. The argument `asset` is the asset as version 2.5 of
// the API shows it to everybody, with id and dateModified. For a withdrawal, Match returns ErrNoCommitment. If the leaf
// does not commit to the asset, the error has the cause ErrMismatch. If the asset is not a valid JSON object, the error
// has the cause ErrAsset.
func (l Leaf) Match(asset []byte, salt Salt) error {
	if l.Kind == Withdraw {
		return ErrNoCommitment
	}
	text, id, modified, err := dissect(asset)
	if err != nil {
		return err
	}
	if id != l.Asset {
		return fmt.Errorf("%w: id is %.40q, want %q", ErrMismatch, id, l.Asset)
	}
	at, err := time.Parse(timeForm, modified)
	if err != nil || at.Format(timeForm) != modified || at.UnixMicro() != l.Position {
		return fmt.Errorf("%w: dateModified is %.40q, want %s", ErrMismatch, modified,
			time.UnixMicro(l.Position).UTC().Format(timeForm))
	}
	if seal(salt, text) != l.Commitment {
		return fmt.Errorf("%w: the commitment differs", ErrMismatch)
	}
	return nil
}

// timeForm is the form of dateModified (docs/contract.md, "Timestamps").
const timeForm = "2006-01-02T15:04:05.000000-07:00"

// Kind says what happened to an asset (docs/log.md, "Leaves").
type Kind string

// The kinds of leaves. A Withdraw has no commitment; all others have one.
const (
	Publish  Kind = "publish"  // the asset became public
	Change   Kind = "change"   // the asset was public before the change, and is public after it
	Withdraw Kind = "withdraw" // the asset was public before the change, and is not public after it
	Import   Kind = "import"   // the asset was already public when the log began
)

// Leaf is an entry of the log: one change of one public asset.
type Leaf struct {
	Position   int64  // microseconds since the epoch: the asset's dateModified
	Asset      string // 32 lower-case hexadecimal digits
	Revision   int64  // number of the revision, from 1
	Kind       Kind
	Commitment Commitment // zero for a Withdraw
}

// leafVersion is the value of a leaf's member v.
const leafVersion = 1

// assetDigits is the length of an asset's id.
const assetDigits = 32

// maxPosition is the end of the year 9999.
const maxPosition = 253402300799999999

// ErrLeaf is the cause of every error about a leaf that is not of the form that
// docs/log.md gives.
var ErrLeaf = errors.New("malformed leaf")

// Check returns an error with the cause ErrLeaf if a member has an invalid value.
// The error names the first such member.
func (l Leaf) Check() error {
	switch {
	case l.Position < 1 || l.Position > maxPosition:
		return fmt.Errorf("%w: position %d", ErrLeaf, l.Position)
	case !isHex(l.Asset, assetDigits):
		return fmt.Errorf("%w: asset %.40q", ErrLeaf, l.Asset)
	case l.Revision < 1:
		return fmt.Errorf("%w: revision %d", ErrLeaf, l.Revision)
	}
	switch l.Kind {
	case Publish, Change, Import:
		if l.Commitment == (Commitment{}) {
			return fmt.Errorf("%w: a %s without a commitment", ErrLeaf, l.Kind)
		}
	case Withdraw:
		if l.Commitment != (Commitment{}) {
			return fmt.Errorf("%w: a %s with a commitment", ErrLeaf, l.Kind)
		}
	default:
		return fmt.Errorf("%w: kind %.40q", ErrLeaf, l.Kind)
	}
	return nil
}

// Encode returns the leaf in the only form that a leaf may have, canonical JSON. The leaf must pass Check.
func (l Leaf) Encode() []byte {
	commitment := ""
	if l.Kind != Withdraw {
		commitment = `","commitment":"` + l.Commitment.String()
	}
	const form = `{"asset":"%s%s","kind":"%s","position":%d,"revision":%d,"v":%d}`
	return fmt.Appendf(nil, form, l.Asset, commitment, l.Kind, l.Position, l.Revision, leafVersion)
}

// ParseLeaf reads an entry of the log. It accepts only what Encode writes; every
// other text is an error with the cause ErrLeaf.
func ParseLeaf(entry []byte) (Leaf, error) {
	if len(entry) > MaxLeaf {
		return Leaf{}, fmt.Errorf("%w: %d bytes", ErrLeaf, len(entry))
	}
	text := string(entry)
	l := Leaf{Asset: member(text, `{"asset":"`), Kind: Kind(member(text, `"kind":"`))}
	if l.Kind != Withdraw {
		// A malformed commitment becomes zero, and Check refuses zero.
		l.Commitment, _ = parseCommitment(member(text, `"commitment":"`))
	}
	// The errors of ParseInt are ignored: with a wrong number, either Check fails, or Encode returns another text.
	l.Position, _ = strconv.ParseInt(member(text, `"position":`), 10, 64)
	l.Revision, _ = strconv.ParseInt(member(text, `"revision":`), 10, 64)
	if err := l.Check(); err != nil {
		return Leaf{}, err
	}
	if string(l.Encode()) != text {
		return Leaf{}, fmt.Errorf("%w: not in the canonical form of version %d", ErrLeaf, leafVersion)
	}
	return l, nil
}

// member returns the text after a member's name, up to the next quote, comma or
// brace. It does not check the text: afterwards, the caller encodes the leaf again
// and compares the result with the whole text.
func member(text, name string) string {
	_, rest, _ := strings.Cut(text, name)
	return rest[:max(strings.IndexAny(rest, `",}`), 0)]
}

// isHex reports whether the text has exactly the given number of lower-case hexadecimal digits, and nothing
// else.
func isHex(text string, digits int) bool {
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}
