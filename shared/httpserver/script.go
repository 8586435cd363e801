package httpserver

import (
	"fmt"
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
// each encoding, and also to engines that treat U+2028 and U+2029 as ends of lines.
func Script(callback string, json []byte) (contentType string, script []byte) {
	script = make([]byte, 0, len(callback)+len(json)+len(json)/4)
	script = append(append(script, callback...), '(')
	for len(json) > 0 {
		r, size := utf8.DecodeRune(json)
		switch high, low := utf16.EncodeRune(r); {
		case r < utf8.RuneSelf:
			script = append(script, json[0])
		case r > 0xFFFF:
			script = fmt.Appendf(script, `\u%04x\u%04x`, high, low)
		default:
			script = fmt.Appendf(script, `\u%04x`, r)
		}
		json = json[size:]
	}
	return "application/javascript; charset=utf-8", append(script, ");"...)
}
