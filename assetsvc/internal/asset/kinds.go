package asset

import (
	"errors"
	"fmt"
	"maps"
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

// text accepts strings, and integers and booleans, which become strings
// (docs/contract.md, "Field rules").
var text = plain{form: textForm, take: func(w *walk, path string, _, sent record.Value) record.Value {
	s, ok := cast(sent)
	if !ok {
		w.wrong(path, notText, quote(sent))
		return nil
	}
	return s
}}

// The lengths of texts in characters (docs/contract.md, "Field rules"). They are asked of
// texts that a request brings, never of stored ones.
const (
	proseLength      = 250_000
	lineLength       = 5_000
	codeLength       = 1_000
	addressLength    = 4_000
	coordinateLength = 40 // of a number; a text may have codeLength
)

// The kinds of text by their length.
var (
	prose = text.upTo(proseLength) // descriptions
	line  = text.upTo(lineLength)  // titles, names and addresses of places
	code  = text.upTo(codeLength)  // numbers, codes and the like
)

// upTo returns the kind of the texts of a kind that have at most so many characters.
func (k plain) upTo(most int) plain {
	k.most = most
	if k.form.Shown == nil {
		k.form.Shown = k.form.Sent // a stored text may be longer
	}
	k.form.Sent = maps.Clone(k.form.Sent)
	k.form.Sent["maxLength"] = most
	return k
}

// secret is text that no error quotes.
var secret = plain{form: textForm, take: func(w *walk, path string, _, sent record.Value) record.Value {
	s, ok := cast(sent)
	if !ok {
		w.wrong(path, "This must be a string.")
		return nil
	}
	return s
}}

// cast returns a value as a string, and whether it can be one.
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

// textThat returns a kind of text that accepts the empty string and strings of a
// form, which the description shows as shown. Other strings get the fault otherwise.
func textThat(form *regexp.Regexp, shown, otherwise string) plain {
	return plain{form: patternForm("^$|" + shown), take: func(w *walk, path string, old, sent record.Value) record.Value {
		value := text.convert(w, path, old, sent)
		if s, ok := value.(string); ok && s != "" && !form.MatchString(s) {
			w.breaks(path, "%s", otherwise)
		}
		return value
	}}
}

// oneOf returns a kind of text that accepts the choices.
func oneOf(choices ...string) plain {
	return plain{form: choiceForm(choices), take: func(w *walk, path string, old, sent record.Value) record.Value {
		value := text.convert(w, path, old, sent)
		if s, ok := value.(string); ok && !slices.Contains(choices, s) {
			w.breaks(path, "%s", notOneOf(choices))
		}
		return value
	}}
}

// oneOfCodes returns a kind of text that accepts the codes of a list.
func oneOfCodes(codes codeList) plain {
	return plain{form: choiceForm(codes), take: func(w *walk, path string, old, sent record.Value) record.Value {
		value := text.convert(w, path, old, sent)
		if s, ok := value.(string); ok && !codes.has(s) {
			w.refuse(path, s, codes)
		}
		return value
	}}
}

// identifierScheme accepts the built-in schemes of identifiers and those of the operator. Its form
// has the built-in ones.
var identifierScheme = plain{form: choiceForm(identifierSchemes),
	take: func(w *walk, path string, old, sent record.Value) record.Value {
		return oneOfCodes(w.rules.identifierSchemes()).take(w, path, old, sent)
	}}

func notOneOf(choices []string) string {
	return "Value must be one of [" + quoted(choices) + "]."
}

func quoted(values []string) string { return "'" + strings.Join(values, "', '") + "'" }

// maxChoices is the length of the longest list that an error shows in full. For a
// longer list the error names the nearest value.
const maxChoices = 10

// refuse reports a value that is not in a list.
func (w *walk) refuse(path, sent string, accepted codeList) {
	switch {
	case w.typesOnly: // do not search for the nearest value in vain
	case len(accepted) <= maxChoices:
		w.wrong(path, "%s", notOneOf(accepted))
	default:
		w.wrong(path, "Value must be one of %d values%s.", len(accepted), w.nearest(sent, accepted))
	}
}

// registeredType accepts the asset types of the operator (docs/contract.md,
// "Asset").
var registeredType = plain{form: stringForm, take: func(w *walk, path string, old, sent record.Value) record.Value {
	value := text.convert(w, path, old, sent)
	if s, ok := value.(string); ok && s != "" && !slices.Contains(w.rules.Types, s) {
		w.breaks(path, "Not implemented: the types are %s", quoted(w.rules.Types))
	}
	return value
}}

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
		w.wrong(path, "Could not parse %s. Should be ISO8601.", quote(sent))
		return nil
	}
	return FormatTime(t, t.Location())
}}

// quantity accepts decimals, as numbers or strings, and rounds them
// (docs/contract.md, "Numbers").
var quantity = plain{form: quantityForm, take: func(w *walk, path string, _, sent record.Value) record.Value {
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

// identifierDigits is how many digits of an integer every JSON decoder keeps.
const identifierDigits = 15

var identifierNumber = regexp.MustCompile(fmt.Sprintf(`^-?[0-9]{1,%d}$`, identifierDigits))

// identifierID accepts strings and integers, and keeps them as sent
// (docs/contract.md, "Numbers").
var identifierID = plain{form: identifierForm, take: func(w *walk, path string, _, sent record.Value) record.Value {
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
}}.upTo(codeLength)

// coordinate accepts strings and numbers, and keeps them as sent
// (docs/contract.md, "Numbers"). It refuses numbers that common JSON decoders
// refuse: long ones, and those that no float64 holds.
var coordinate = plain{form: coordinateForm, take: func(w *walk, path string, _, sent record.Value) record.Value {
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
}}.upTo(codeLength)

// height is a coordinate that usually has a unit, such as "170 m".
var height = plain{form: heightForm, take: coordinate.take}.upTo(codeLength)

var wholeNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`)

// integer accepts whole numbers of up to 18 digits, as numbers or strings.
var integer = plain{form: integerForm, take: func(w *walk, path string, _, sent record.Value) record.Value {
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
var anything = plain{form: anyForm, take: func(_ *walk, _ string, _, sent record.Value) record.Value { return sent }}

// constant returns a function for field.absent that gives the field a fixed value.
func constant(value string) func(*walk, record.Value) record.Value {
	return func(*walk, record.Value) record.Value { return value }
}

// disabled accepts empty objects and empty lists only: it is the kind of
// schema_properties (docs/contract.md, "Item").
var disabled = plain{form: disabledForm, take: func(w *walk, path string, _, sent record.Value) record.Value {
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
}}

const idLength = 32 // hex characters of an id

var (
	idForm  = regexp.MustCompile(fmt.Sprintf(`^[0-9a-f]{%d}$`, idLength))
	hexForm = regexp.MustCompile(`^[0-9a-fA-F]*$`)
)

// ownID is the kind of ids that clients may choose. It keeps a well-formed id and
// replaces anything else, which is a placeholder (docs/contract.md,
// "Identifiers").
var ownID = plain{form: givenIDForm, take: func(w *walk, path string, old, sent record.Value) record.Value {
	s, _ := text.convert(w, path, nil, sent).(string)
	if idForm.MatchString(s) || w.typesOnly {
		return s
	}
	id := newID(w, old)
	w.ignores(path, s, id, "")
	return id
}}

// newID returns a new id, or in a merge the old one, so that a repeated PATCH
// changes nothing.
func newID(w *walk, old record.Value) record.Value {
	if old != nil && !w.whole {
		return old
	}
	return w.newID()
}

// serverID is the kind of ids that the service chooses. It ignores what a client
// sends.
var serverID = plain{form: givenIDForm, take: func(w *walk, path string, old, sent record.Value) record.Value {
	s := text.convert(w, path, nil, sent)
	if w.typesOnly {
		return s
	}
	id := givenID(w, old)
	w.ignores(path, s, id, "")
	return id
}}

// givenID returns the old id, or a new one if there is none.
func givenID(w *walk, old record.Value) record.Value {
	if old != nil {
		return old
	}
	return w.newID()
}

// reference accepts ids of objects outside the asset.
var reference = plain{form: referenceForm, take: func(w *walk, path string, old, sent record.Value) record.Value {
	value := text.convert(w, path, old, sent)
	if s, ok := value.(string); ok && s != "" {
		w.checkHex(path, s, idLength)
	}
	return value
}}

// checkHex reports a text that does not consist of exactly length hex characters.
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

// digest accepts hashes: the name of an algorithm, a colon, hex characters.
var digest = plain{form: digestForm, take: func(w *walk, path string, old, sent record.Value) record.Value {
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
