package translog

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Salt hides what a commitment is made of: without the salt, nobody can guess the
// asset. Its text form is hexadecimal.
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
	decoder := jsontext.NewDecoder(bytes.NewReader(asset))
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != jsontext.KindBeginObject {
		return nil, "", "", ErrAsset
	}
	object := append(make([]byte, 0, len(asset)), '{')
	for decoder.PeekKind() == jsontext.KindString {
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, "", "", fmt.Errorf("%w: %w", ErrAsset, err)
		}
		member := name.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, "", "", fmt.Errorf("%w: %w", ErrAsset, err)
		}
		switch member {
		case "dateModified":
			modified = unquoted(value)
			continue
		case "id":
			id = unquoted(value)
		}
		if len(object) > 1 {
			object = append(object, ',')
		}
		if object, err = jsontext.AppendQuote(object, member); err != nil {
			return nil, "", "", fmt.Errorf("%w: %w", ErrAsset, err)
		}
		object = append(append(object, ':'), value...)
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, "", "", fmt.Errorf("%w: %w", ErrAsset, err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, "", "", fmt.Errorf("%w: text follows it", ErrAsset)
	}
	value := jsontext.Value(append(object, '}'))
	if err := value.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, "", "", fmt.Errorf("%w: %w", ErrAsset, err)
	}
	return value, id, modified, nil
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

// Match returns nil if the leaf commits to the asset under the salt. The asset is
// its public view of version 2.5, with id and dateModified. Match returns
// ErrNoCommitment for a withdrawal, and an error with the cause ErrMismatch or
// ErrAsset if the asset is another.
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
