package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Decimal is an exact decimal number, such as "240.5". In JSON it is a number. It never becomes a float
// (docs/contract.md, "Numbers"). The empty Decimal is absent.
type Decimal string

// number matches a JSON number. An exponent has at most three digits, so that Rat
// stays small.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)

// MarshalJSON returns the number. It fails if the text is not a JSON number.
func (d Decimal) MarshalJSON() ([]byte, error) {
	if !number.MatchString(string(d)) {
		return nil, fmt.Errorf("%q is not a decimal number", string(d))
	}
	return []byte(d), nil
}

// UnmarshalJSON accepts a number, and a string that holds one.
func (d *Decimal) UnmarshalJSON(text []byte) error {
	if len(text) > 1 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	if !number.Match(text) {
		return fmt.Errorf("%.50q is not a decimal number", text)
	}
	*d = Decimal(text)
	return nil
}

// Rat returns the exact value. ok is false if d is empty or not a JSON number.
func (d Decimal) Rat() (value *big.Rat, ok bool) {
	if !number.MatchString(string(d)) {
		return nil, false
	}
	return new(big.Rat).SetString(string(d))
}

// Scalar is a string or a number. The registry returns it as it was sent
// (docs/contract.md, "Numbers"). The zero value is absent.
type Scalar struct {
	text     string
	isNumber bool
}

// Text returns a Scalar that is a string.
func Text(s string) Scalar { return Scalar{text: s} }

// Number returns a Scalar that is a number, with the digits of d.
func Number(d Decimal) Scalar { return Scalar{text: string(d), isNumber: true} }

// String returns the string, or the digits of the number.
func (s Scalar) String() string { return s.text }

// IsNumber reports whether s is a number.
func (s Scalar) IsNumber() bool { return s.isNumber }

// MarshalJSON returns a string or a number.
func (s Scalar) MarshalJSON() ([]byte, error) {
	if s.isNumber {
		return Decimal(s.text).MarshalJSON()
	}
	return json.Marshal(s.text)
}

// UnmarshalJSON accepts a string or a number.
func (s *Scalar) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		s.isNumber = false
		return json.Unmarshal(text, &s.text)
	}
	if !number.Match(text) {
		return fmt.Errorf("%.50q is neither a string nor a number", text)
	}
	*s = Scalar{text: string(text), isNumber: true}
	return nil
}

// Timestamp is a time as the registry writes it, such as
// "2026-11-22T00:32:46.881553+00:00" (docs/contract.md, "Timestamps"). The empty
// Timestamp is absent.
type Timestamp string

// At returns the Timestamp of a time, with microseconds and the time's zone offset.
func At(t time.Time) Timestamp { return Timestamp(t.Format("2006-01-02T15:04:05.000000-07:00")) }

// Time parses the timestamp. It accepts RFC 3339, which the registry's own
// timestamps follow.
func (t Timestamp) Time() (time.Time, error) { return time.Parse(time.RFC3339Nano, string(t)) }

// Tag names a state of an asset (docs/contract.md, "Conditional requests"). The
// empty Tag is absent.
type Tag string

// AnyTag matches every state.
const AnyTag Tag = "*"

// Tagged holds the facts about an object that the header of an answer has. Structs with a tag embed it.
type Tagged struct {
	// Tag is the ETag of the answer. It is empty for an object that is inside another one.
	Tag Tag `json:"-"`
	// Ignored names fields that the request has sent and the registry has ignored, such as documents in an asset. It is
	// empty if the object in the request has a DateModified, because such an object came from the registry.
	Ignored []string `json:"-"`
}

func (t *Tagged) setTagged(of Tagged) { *t = of }

// taggedBy returns the facts about the object that the header of the answer to a request has.
func taggedBy(r request, header http.Header) Tagged {
	t := Tagged{Tag: Tag(header.Get("ETag"))}
	if names := header.Get("Registry-Ignored"); names != "" && !isSentBack(r.data) {
		t.Ignored = strings.Split(names, ", ")
	}
	return t
}

// isSentBack reports whether the data of a request is an object that came from the registry.
func isSentBack(data any) bool {
	switch v := data.(type) {
	case Asset:
		return v.DateModified != ""
	case Document:
		return v.DateModified != ""
	case Fields:
		return v["dateModified"] != nil
	default:
		return false
	}
}

// Fields is a change of named fields, for a PATCH (docs/contract.md, "Merge"). A nil value clears a field. The
// other values are JSON values, or structs of this package:
//
//	client.Fields{"title": "New", "description_en": nil, "items": []client.Item{item}}
//
// Lists are merged by index, and a shorter list cuts off the rest.
type Fields map[string]any

// Write says who changes an asset, and under which condition.
type Write struct {
	Token   Secret // owner token; empty for a concierge or an administrator
	IfMatch Tag    // write only if the asset still has this tag; empty: always
}

// Access holds the tokens of a new asset. Only the answer that creates the asset has the tokens, because the
// registry stores only their hashes.
type Access struct {
	Token    Secret `json:"token"`    // owner token
	Transfer Secret `json:"transfer"` // transfer token, for the next owner
}

var errNoID = errors.New("the id is empty")

// checkIDs returns an error if an id is empty, "." or "..", because the path would then name another resource.
func checkIDs(ids ...string) error {
	for _, id := range ids {
		if id == "" || id == "." || id == ".." {
			return fmt.Errorf("%w: %s", errNoID, strconv.Quote(id))
		}
	}
	return nil
}
