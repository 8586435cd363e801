package asset

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"asset-registry/assetsvc/internal/record"
)

// text is the kind of strings; integers and booleans are cast (contract, section 1).
func text(w *walk, path string, _, sent record.Value) record.Value {
	switch v := sent.(type) {
	case string:
		return v
	case bool:
		return string(record.Append(nil, v))
	case record.Number:
		if !strings.ContainsAny(string(v), ".eE") {
			return string(v)
		}
	}
	w.wrong(path, "Couldn't interpret '%s' as string.", quote(sent))
	return nil
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
			w.breaks(path, "%s", notOneOf(list))
		}
		return value
	}
}

func notOneOf(choices []string) string {
	return "Value must be one of ['" + strings.Join(choices, "', '") + "']."
}

// registeredType is the kind of assetType (contract, decision 3).
func registeredType(w *walk, path string, old, sent record.Value) record.Value {
	value := text(w, path, old, sent)
	if s, ok := value.(string); ok && !slices.Contains(w.rules.Types, s) {
		w.breaks(path, notImplemented)
	}
	return value
}

// unregistered notes that no type was sent.
func unregistered(w *walk, _ record.Value) record.Value {
	w.breaks("assetType", notImplemented)
	return nil
}

const notImplemented = "Not implemented"

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

// decimalOf is the kind of decimals with up to that many fraction digits.
func decimalOf(places int) kind {
	return func(w *walk, path string, _, sent record.Value) record.Value {
		var written string
		switch v := sent.(type) {
		case string:
			written = v
		case record.Number:
			written = string(v)
		}
		number, ok := parseDecimal(written, places)
		if !ok {
			w.wrong(path, "Number '%s' failed to convert to a decimal.", quote(sent))
			return nil
		}
		return number
	}
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
	urlForm = regexp.MustCompile(`^(?i:https?)://` +
		`(?:(?:[\pL\pN](?:[\pL\pN-]{0,61}[\pL\pN])?\.)+[\pL][\pL\pN-]{0,61}[\pL\pN]\.?` +
		`|(?i:localhost)` +
		`|(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d))` +
		`(?::\d{1,5})?(?:[/?#][^\s\pC]*)?$`)
	emailForm = regexp.MustCompile(`^[^@\s\pC]{1,64}@(?:[\pL\pN](?:[\pL\pN-]{0,61}[\pL\pN])?\.)+[\pL][\pL\pN-]{0,61}[\pL\pN]$`)
	mediaForm = regexp.MustCompile(`^[a-zA-Z0-9!#$&^_.+-]+/[a-zA-Z0-9!#$&^_.+-]+$`)
)

const noMatch = "String value did not match validation regex."

var (
	webAddress   = textThat(urlForm.MatchString, "Not a well formed URL.")
	emailAddress = textThat(emailForm.MatchString, "Not a well formed email address.")
	mediaType    = textThat(mediaForm.MatchString, noMatch)
)
