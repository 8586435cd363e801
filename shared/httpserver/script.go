package httpserver

import (
	"iter"
	"regexp"
	"unicode/utf16"
	"unicode/utf8"

	"asset-registry/shared/fault"
)

// callbackName is the form of a callback: a JavaScript name, possibly with dots. Other texts are not allowed, because
// with them a caller could make the registry serve any script.
var callbackName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$.]{0,99}$`)

// CheckCallback returns a fault of kind Invalid if opt_jsonp is not the name of a function (docs/contract.md,
// "Requests and answers"). It accepts an empty name, which means no callback.
func CheckCallback(name string) error {
	if name == "" || callbackName.MatchString(name) {
		return nil
	}
	return fault.New(fault.Invalid, fault.Query, "opt_jsonp", "This must be the name of a JavaScript function.")
}

// Script returns JSON as a script that calls a function with it. The script is ASCII, so it means the same in
// each encoding, and also to engines that treat U+2028 and U+2029 as ends of lines. Script counts the bytes of the
// script first, so it allocates once.
func Script(callback string, json []byte) (contentType string, script []byte) {
	size := len(callback) + len("();")
	for unit := range units(json) {
		if size++; unit >= utf8.RuneSelf {
			size += len(`\u0456`) - 1
		}
	}
	const digits = "0123456789abcdef"
	script = append(append(make([]byte, 0, size), callback...), '(')
	for unit := range units(json) {
		if unit < utf8.RuneSelf {
			script = append(script, byte(unit))
			continue
		}
		script = append(script, '\\', 'u', digits[unit>>12], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
	}
	return "application/javascript; charset=utf-8", append(script, ");"...)
}

// units returns the UTF-16 units of a text in UTF-8.
func units(text []byte) iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		var room [2]uint16
		for len(text) > 0 {
			r, size := utf8.DecodeRune(text)
			text = text[size:]
			for _, unit := range utf16.AppendRune(room[:0], r) {
				if !yield(unit) {
					return
				}
			}
		}
	}
}
