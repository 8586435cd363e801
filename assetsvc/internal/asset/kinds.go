package asset

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"asset-registry/assetsvc/internal/record"
)

const (
	notText         = "Couldn't interpret '%s' as string."
	noMatch         = "String value did not match validation regex."
	wrongHashLength = "Hash value is wrong length."
	notHex          = "Hash value is not hexadecimal."
)

// text accepts strings, integers and booleans. Integers and booleans become strings (docs/contract.md, "Field
// rules").
var text = of("text", func(w *walk, path string, _, sent record.Value) record.Value {
	s, ok := cast(sent)
	if !ok {
		w.wrong(path, notText, quote(sent))
		return nil
	}
	return s
})

// The greatest lengths of texts, in characters (docs/contract.md, "Field rules"). They are checked in requests
// only, never in stored assets.
const (
	proseLength      = 250_000
	lineLength       = 5_000
	codeLength       = 1_000
	addressLength    = 4_000
	coordinateLength = 40 // maximum for a number; a text may have up to codeLength characters
)

// The kinds of text. Each has a different maximum length.
var (
	prose = text.upTo(proseLength) // descriptions
	line  = text.upTo(lineLength)  // titles, names and addresses of places
	code  = text.upTo(codeLength)  // numbers, codes and the like
)

// upTo returns the kind with one more rule: a text may have at most the given number of characters.
func (k plain) upTo(most int) plain {
	k.most = most
	return k
}

// secret accepts the same values as the kind `text`, but no error quotes them.
var secret = of("text", func(w *walk, path string, _, sent record.Value) record.Value {
	s, ok := cast(sent)
	if !ok {
		w.wrong(path, "This must be a string.")
		return nil
	}
	return s
})

// cast returns a value as a string. It returns false for a value that cannot become a string.
func cast(sent record.Value) (string, bool) {
	switch v := sent.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case record.Number:
		return string(v), !strings.ContainsAny(string(v), ".eE")
	default:
		return "", false
	}
}

// textThat returns a kind of text that accepts the empty string and strings of the given form. The parameter
// `shown` is the form in the description of the fields; it may be less strict. The parameter `otherwise` is the
// text of the fault for all other strings.
func textThat(form *regexp.Regexp, shown, otherwise string) plain {
	is := Form{Kind: "pattern", Pattern: "^$|" + shown}
	return plain{form: is, take: func(w *walk, path string, old, sent record.Value) record.Value {
		value := text.convert(w, path, old, sent)
		if s, ok := value.(string); ok && s != "" && !form.MatchString(s) {
			w.breaks(path, "%s", otherwise)
		}
		return value
	}}
}

// oneOf returns a kind of text that accepts the choices.
func oneOf(choices ...string) plain {
	is := Form{Kind: "choice", Choices: choices}
	return plain{form: is, take: func(w *walk, path string, old, sent record.Value) record.Value {
		value := text.convert(w, path, old, sent)
		if s, ok := value.(string); ok && !slices.Contains(choices, s) {
			w.breaks(path, "%s", notOneOf(choices))
		}
		return value
	}}
}

// oneOfCodes returns a kind of text that accepts the codes of a list.
func oneOfCodes(codes codeList) plain {
	is := Form{Kind: "choice", Choices: codes}
	return plain{form: is, take: func(w *walk, path string, old, sent record.Value) record.Value {
		value := text.convert(w, path, old, sent)
		if s, ok := value.(string); ok && !codes.has(s) {
			w.refuse(path, s, codes)
		}
		return value
	}}
}

// identifierScheme accepts the built-in schemes of identifiers, and the schemes that the operator supplies. The
// description of the fields lists only the built-in schemes.
var identifierScheme = plain{form: Form{Kind: "choice", Choices: identifierSchemes},
	take: func(w *walk, path string, old, sent record.Value) record.Value {
		return oneOfCodes(w.rules.identifierSchemes()).take(w, path, old, sent)
	}}

func notOneOf(choices []string) string {
	return "Value must be one of [" + quoted(choices) + "]."
}

func quoted(values []string) string { return "'" + strings.Join(values, "', '") + "'" }

// maxChoices is the length of the longest list that an error quotes. For a longer list, the error names the
// nearest value only.
const maxChoices = 10

// refuse adds a fault for a value that is not in a list.
func (w *walk) refuse(path, sent string, accepted codeList) {
	switch {
	case w.typesOnly: // the fault would be dropped, so do not search for the nearest value
	case len(accepted) <= maxChoices:
		w.wrong(path, "%s", notOneOf(accepted))
	default:
		w.wrong(path, "Value must be one of %d values%s.", len(accepted), w.nearest(sent, accepted))
	}
}

// registeredType accepts the asset types that the operator has set (docs/contract.md, "Asset").
var registeredType = of("string", func(w *walk, path string, old, sent record.Value) record.Value {
	value := text.convert(w, path, old, sent)
	if s, ok := value.(string); ok && s != "" && !slices.Contains(w.rules.Types, s) {
		w.breaks(path, "Not implemented: the types are %s", quoted(w.rules.Types))
	}
	return value
})

const exampleTime = "2026-11-20T12:00:00+02:00"

var timestampForm = Form{Kind: "timestamp", Pattern: sentTime}

// timestamp accepts ISO 8601 timestamps and keeps their offset (docs/contract.md,
// "Timestamps").
var timestamp = plain{form: timestampForm, take: func(w *walk, path string, _, sent record.Value) record.Value {
	written, _ := sent.(string)
	t, err := ParseTime(written, w.rules.Zone)
	switch {
	case errors.Is(err, ErrTimeRange):
		w.wrong(path, "date value out of range")
		return nil
	case err != nil:
		w.wrong(path, "Could not parse %s. Should be ISO8601. For example: "+exampleTime, quote(sent))
		return nil
	}
	return FormatTime(t, t.Location())
}}

// quantity accepts decimals, as numbers or strings, and rounds them
// (docs/contract.md, "Numbers").
var quantity = plain{form: Form{Kind: "quantity", Pattern: decimalForm.String()},
	take: func(w *walk, path string, _, sent record.Value) record.Value {
		var written string
		switch v := sent.(type) {
		case string:
			written = v
		case record.Number:
			written = string(v)
		}
		number, ok := parseDecimal(written, quantityPlaces)
		if !ok {
			w.wrong(path, "Number '%s' failed to convert to a decimal.", quote(sent))
			return nil
		}
		mantissa, _, _ := strings.Cut(strings.ToLower(written), "e")
		if number == "0" && strings.ContainsAny(mantissa, "123456789") {
			w.wrong(path, "Number '%s' would become 0: %d fraction digits are kept.", quote(sent), quantityPlaces)
			return nil
		}
		return number
	}}

// identifierDigits is the maximum number of digits of an integer. Every JSON decoder keeps such an integer exactly.
const identifierDigits = 15

var identifierNumber = regexp.MustCompile(fmt.Sprintf(`^-?[0-9]{1,%d}$`, identifierDigits))

// identifierID accepts strings and integers, and keeps them as sent
// (docs/contract.md, "Numbers").
var identifierID = of("identifier", func(w *walk, path string, _, sent record.Value) record.Value {
	switch v := sent.(type) {
	case string:
		return v
	case record.Number:
		if identifierNumber.MatchString(string(v)) {
			return v
		}
	}
	const accepted = " Send a string, or an integer of at most %d digits."
	w.wrong(path, notText+accepted, quote(sent), identifierDigits)
	return nil
}).upTo(codeLength)

// coordinate accepts strings and numbers, and keeps them as sent (docs/contract.md, "Numbers"). It refuses
// numbers that common JSON decoders refuse: numbers with too many characters, and numbers outside the range of
// float64.
var coordinate = of("coordinate", func(w *walk, path string, _, sent record.Value) record.Value {
	switch v := sent.(type) {
	case string:
		return v
	case record.Number:
		if len(v) > coordinateLength {
			break
		}
		if _, err := strconv.ParseFloat(string(v), 64); err == nil {
			return v
		}
	}
	const accepted = " Send a string, or a number of at most %d characters, below 1.8e308."
	w.wrong(path, notText+accepted, quote(sent), coordinateLength)
	return nil
}).upTo(codeLength)

// height is a coordinate that usually has a unit, such as "170 m".
var height = of("height", coordinate.take).upTo(codeLength)

var wholeNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`)

// integer accepts whole numbers of up to 18 digits, as numbers or strings.
var integer = plain{form: Form{Kind: "integer", Pattern: wholeNumber.String()},
	take: func(w *walk, path string, _, sent record.Value) record.Value {
		written := fmt.Sprint(sent)
		switch sent.(type) {
		case string, record.Number:
			if wholeNumber.MatchString(written) {
				return record.Number(written)
			}
		}
		w.wrong(path, "Value '%s' is not int.", quote(sent))
		return nil
	}}

// anything accepts every value and keeps it as sent.
var anything = of("any", func(_ *walk, _ string, _, sent record.Value) record.Value { return sent })

// constant returns a function for field.absent that gives the field a fixed value.
func constant(value string) func(*walk, record.Value) record.Value {
	return func(*walk, record.Value) record.Value { return value }
}

// disabled is the kind of schema_properties (docs/contract.md, "Item"). It accepts only empty objects and empty
// lists.
var disabled = of("disabled", func(w *walk, path string, _, sent record.Value) record.Value {
	switch v := sent.(type) {
	case record.Object:
		if len(v) == 0 {
			return nil
		}
	case record.List:
		if len(v) == 0 {
			return nil
		}
	}
	w.breaks(path, "Opportunity to use schema_properties is disabled")
	return nil
})

const idLength = 32 // number of hex characters in an id

var (
	idForm  = regexp.MustCompile(fmt.Sprintf(`^[0-9a-f]{%d}$`, idLength))
	hexForm = regexp.MustCompile(`^[0-9a-fA-F]*$`)
)

// ownID is the kind of ids that clients may choose. It keeps a well-formed id. Any other text is a placeholder,
// which is replaced by a new id (docs/contract.md, "Identifiers").
var ownID = plain{form: Form{Kind: "id", Pattern: idForm.String()},
	take: func(w *walk, path string, old, sent record.Value) record.Value {
		s, _ := text.convert(w, path, nil, sent).(string)
		if idForm.MatchString(s) || w.typesOnly {
			return s
		}
		id := newID(w, old)
		w.ignores(path, s, id, "")
		return id
	}}

// newID returns a new id. In a merge it returns the old id, if there is one, so that a repeated PATCH changes
// nothing.
func newID(w *walk, old record.Value) record.Value {
	if old != nil && !w.whole {
		return old
	}
	return w.newID()
}

// serverID is the kind of ids that the service chooses. It ignores the values that clients send.
var serverID = plain{form: Form{Kind: "id", Pattern: idForm.String()},
	take: func(w *walk, path string, old, sent record.Value) record.Value {
		s := text.convert(w, path, nil, sent)
		if w.typesOnly {
			return s
		}
		id := givenID(w, old)
		w.ignores(path, s, id, "")
		return id
	}}

// givenID returns the old id, or a new one if the part is new.
func givenID(w *walk, old record.Value) record.Value {
	if old != nil {
		return old
	}
	return w.newID()
}

// reference accepts ids of objects outside the asset.
var reference = plain{form: Form{Kind: "reference", Pattern: fmt.Sprintf("^([0-9a-fA-F]{%d})?$", idLength)},
	take: func(w *walk, path string, old, sent record.Value) record.Value {
		value := text.convert(w, path, old, sent)
		if s, ok := value.(string); ok && s != "" {
			w.checkHex(path, s, idLength)
		}
		return value
	}}

// checkHex adds a fault for a text that does not consist of the given number of hex characters.
func (w *walk) checkHex(path, s string, length int) {
	switch {
	case len(s) != length:
		w.breaks(path, wrongHashLength)
	case !hexForm.MatchString(s):
		w.breaks(path, notHex)
	}
}

// digestLengths has the number of hex characters in a hash of each algorithm.
var digestLengths = map[string]int{"md5": 32, "sha1": 40, "sha224": 56, "sha256": 64, "sha384": 96, "sha512": 128}

// digest accepts hashes: the name of an algorithm, a colon, and hex characters.
var digest = plain{form: Form{Kind: "pattern", Pattern: "^$|" + digestPattern()},
	take: func(w *walk, path string, old, sent record.Value) record.Value {
		value := text.convert(w, path, old, sent)
		if s, ok := value.(string); ok && s != "" {
			algorithm, sum, _ := strings.Cut(s, ":")
			if length := digestLengths[algorithm]; length == 0 {
				w.breaks(path, "Hash type is not supported.")
			} else {
				w.checkHex(path, sum, length)
			}
		}
		return value
	}}
