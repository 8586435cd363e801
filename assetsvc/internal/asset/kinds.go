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

// text is the kind of strings; integers and booleans are cast (contract, section 1).
func text(w *walk, path string, _, sent record.Value) record.Value {
	s, ok := cast(sent)
	if !ok {
		w.wrong(path, notText, quote(sent))
		return nil
	}
	return s
}

const notText = "Couldn't interpret '%s' as string."

// secret is the kind of texts that no error quotes.
func secret(w *walk, path string, _, sent record.Value) record.Value {
	s, ok := cast(sent)
	if !ok {
		w.wrong(path, "This must be a string.")
		return nil
	}
	return s
}

// cast returns a value as a string, and whether it can be one.
func cast(sent record.Value) (string, bool) {
	switch v := sent.(type) {
	case string:
		return v, true
	case bool:
		return string(record.Append(nil, v)), true
	case record.Number:
		return string(v), !strings.ContainsAny(string(v), ".eE")
	}
	return "", false
}

// textThat is the kind of strings that pass a test, or are empty.
func textThat(test func(string) bool, otherwise string) kind {
	return func(w *walk, path string, old, sent record.Value) record.Value {
		value := text(w, path, old, sent)
		if s, ok := value.(string); ok && s != "" && !test(s) {
			w.breaks(path, "%s", otherwise)
		}
		return value
	}
}

// oneOf is the kind of strings of a list.
func oneOf(choices ...string) kind {
	return func(w *walk, path string, old, sent record.Value) record.Value {
		value := text(w, path, old, sent)
		if s, ok := value.(string); ok && !slices.Contains(choices, s) {
			w.breaks(path, "%s", notOneOf(choices))
		}
		return value
	}
}

// oneOfCodes is the kind of strings of a code list.
func oneOfCodes(list codeList) kind {
	return func(w *walk, path string, old, sent record.Value) record.Value {
		value := text(w, path, old, sent)
		if s, ok := value.(string); ok && !list.has(s) {
			w.refuse(path, s, list)
		}
		return value
	}
}

func notOneOf(choices []string) string {
	return "Value must be one of [" + quoted(choices) + "]."
}

func quoted(values []string) string { return "'" + strings.Join(values, "', '") + "'" }

// maxTold is how many values of a list an error tells; of a longer one it tells
// the nearest.
const maxTold = 10

// refuse notes a value that a list does not have.
func (w *walk) refuse(path, sent string, list codeList) {
	switch {
	case w.typesOnly: // what is ignored needs no suggestion
	case len(list) <= maxTold:
		w.wrong(path, "%s", notOneOf(list))
	default:
		w.wrong(path, "Value must be one of %d values%s.", len(list), w.nearest(sent, list))
	}
}

// registeredType is the kind of assetType (contract, decision 3).
func registeredType(w *walk, path string, old, sent record.Value) record.Value {
	value := text(w, path, old, sent)
	if s, ok := value.(string); ok && s != "" && !slices.Contains(w.rules.Types, s) {
		w.breaks(path, "Not implemented: the types are %s", quoted(w.rules.Types))
	}
	return value
}

// timestamp keeps the offset that was sent.
func timestamp(w *walk, path string, _, sent record.Value) record.Value {
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
}

// quantity is the kind of decimals that are rounded (contract, decision 11).
func quantity(w *walk, path string, _, sent record.Value) record.Value {
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
	return number
}

// identifierNumber is an integer that every JSON decoder takes, and keeps exact.
var identifierNumber = regexp.MustCompile(`^-?[0-9]{1,15}$`)

// identifierID is the kind of ids of organisations: strings, and integers that
// are kept as sent (contract, decision 21).
func identifierID(w *walk, path string, _, sent record.Value) record.Value {
	switch v := sent.(type) {
	case string:
		return v
	case record.Number:
		if identifierNumber.MatchString(string(v)) {
			return v
		}
	}
	w.wrong(path, notText+" Send a string, or an integer of at most 15 digits.", quote(sent))
	return nil
}

const coordinateLength = 40 // characters of a number

// coordinate is the kind of strings and numbers that are kept as sent (contract,
// decision 21). Numbers are those that common JSON decoders take: short ones
// that a float64 can hold.
func coordinate(w *walk, path string, _, sent record.Value) record.Value {
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
}

var wholeNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`)

// integer is the kind of whole numbers of up to 18 digits.
func integer(w *walk, path string, _, sent record.Value) record.Value {
	written := fmt.Sprint(sent)
	switch sent.(type) {
	case string, record.Number:
		if wholeNumber.MatchString(written) {
			return record.Number(written)
		}
	}
	w.wrong(path, "Value '%s' is not int.", quote(sent))
	return nil
}

// anything is the kind of values that are kept as sent.
func anything(_ *walk, _ string, _, sent record.Value) record.Value { return sent }

// dropped is the kind of values that are judged as of another kind, and not kept.
func dropped(of kind) kind {
	return func(w *walk, path string, old, sent record.Value) record.Value {
		of(w, path, old, sent)
		return nil
	}
}

// constant returns what a field is when it was not sent.
func constant(value string) func(*walk, record.Value) record.Value {
	return func(*walk, record.Value) record.Value { return value }
}

// disabled is the kind of schema_properties, which must be empty (contract, section 1.2).
func disabled(w *walk, path string, _, sent record.Value) record.Value {
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
}

var (
	idForm  = regexp.MustCompile(`^[0-9a-f]{32}$`)
	hexForm = regexp.MustCompile(`^[0-9a-fA-F]*$`)
)

// ownID is the kind of ids that clients may choose: a well-formed one is kept,
// anything else is a placeholder (contract, decision 10).
func ownID(w *walk, path string, old, sent record.Value) record.Value {
	if s, ok := text(w, path, nil, sent).(string); ok && idForm.MatchString(s) {
		return s
	}
	return newID(w, old)
}

// newID returns the id of what has none. Within a merge it is the one that is
// there, so that a repeated PATCH changes nothing.
func newID(w *walk, old record.Value) record.Value {
	if old != nil && !w.whole {
		return old
	}
	return w.newID()
}

// serverID is the kind of ids that the service gives; what is sent is ignored.
func serverID(w *walk, path string, old, sent record.Value) record.Value {
	text(w, path, nil, sent)
	return givenID(w, old)
}

// givenID returns the id that the service gives, once.
func givenID(w *walk, old record.Value) record.Value {
	if old != nil {
		return old
	}
	return w.newID()
}

// reference is the kind of ids of objects elsewhere.
func reference(w *walk, path string, old, sent record.Value) record.Value {
	value := text(w, path, old, sent)
	if s, ok := value.(string); ok && s != "" {
		switch {
		case len(s) != 32:
			w.breaks(path, "Hash value is wrong length.")
		case !hexForm.MatchString(s):
			w.breaks(path, "Hash value is not hexadecimal.")
		}
	}
	return value
}

// digestLengths are how many hex characters the hashes of each algorithm have.
var digestLengths = map[string]int{"md5": 32, "sha1": 40, "sha224": 56, "sha256": 64, "sha384": 96, "sha512": 128}

// digest is the kind of hashes: the name of an algorithm, a colon, hex characters.
func digest(w *walk, path string, old, sent record.Value) record.Value {
	value := text(w, path, old, sent)
	if s, ok := value.(string); ok && s != "" {
		algorithm, sum, _ := strings.Cut(s, ":")
		switch length := digestLengths[algorithm]; {
		case length == 0:
			w.breaks(path, "Hash type is not supported.")
		case len(sum) != length:
			w.breaks(path, "Hash value is wrong length.")
		case !hexForm.MatchString(sum):
			w.breaks(path, "Hash value is not hexadecimal.")
		}
	}
	return value
}

// The forms of web addresses, e-mail addresses and media types. Names of hosts
// may have letters of any script.
var (
	urlForm      = regexp.MustCompile(`^(?i:https?)://(?:` + publicHost + `)` + afterHost + `$`)
	documentForm = regexp.MustCompile(`^(?i:https?)://(?:` + publicHost + `|` + innerHost + `)` + afterHost + `$`)

	emailForm = regexp.MustCompile(`^[^@\s\pC]{1,64}@(?:[\pL\pN](?:[\pL\pN-]{0,61}[\pL\pN])?\.)+[\pL][\pL\pN-]{0,61}[\pL\pN]$`)
	mediaForm = regexp.MustCompile(`^[a-zA-Z0-9!#$&^_.+-]+/[a-zA-Z0-9!#$&^_.+-]+$`)
)

// The parts of web addresses. An inner host is one of a network of its own: a
// name without a dot, or an IPv6 address.
const (
	publicHost = `(?:[\pL\pN](?:[\pL\pN-]{0,61}[\pL\pN])?\.)+[\pL][\pL\pN-]{0,61}[\pL\pN]\.?` +
		`|(?i:localhost)` +
		`|(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)`
	innerHost = `(?:\pN[\pL\pN_-]{0,31})?\pL(?:[\pL\pN_-]{0,61}[\pL\pN])?|\[[0-9a-fA-F:.]{2,45}\]`
	afterHost = `(?::\d{1,5})?(?:[/?#][^\s\pC]*)?`
)

const noMatch = "String value did not match validation regex."

var (
	webAddress      = textThat(urlForm.MatchString, "Not a well formed URL.")
	documentAddress = textThat(documentForm.MatchString, "Not a well formed URL.")
	emailAddress    = textThat(emailForm.MatchString, "Not a well formed email address.")
	mediaType       = textThat(mediaForm.MatchString, noMatch)
)
