package translog

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

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
	b := make([]byte, 0, 256)
	b = append(b, `{"asset":"`...)
	b = append(b, l.Asset...)
	if l.Kind != Withdraw {
		b = append(b, `","commitment":"`...)
		b = hex.AppendEncode(b, l.Commitment[:])
	}
	b = append(b, `","kind":"`...)
	b = append(b, l.Kind...)
	b = append(b, `","position":`...)
	b = strconv.AppendInt(b, l.Position, 10)
	b = append(b, `,"revision":`...)
	b = strconv.AppendInt(b, l.Revision, 10)
	b = append(b, `,"v":`...)
	b = strconv.AppendInt(b, leafVersion, 10)
	return append(b, '}')
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
