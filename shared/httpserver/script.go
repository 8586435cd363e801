package httpserver

import (
	"encoding/binary"
	"math/bits"
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
	script = make([]byte, 0, len(callback)+len("();")+scriptSize(json))
	script = append(append(script, callback...), '(')
	for len(json) > 0 {
		read, made := escapeQuick(script[len(script):cap(script)], json)
		script, json = script[:len(script)+made], json[read:]
		r, size := utf8.DecodeRune(json)
		switch {
		case size == 0:
		case r < utf8.RuneSelf:
			script = append(script, json[0])
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			script = appendEscape(appendEscape(script, high), low)
		default:
			script = appendEscape(script, r)
		}
		json = json[size:]
	}
	return "application/javascript; charset=utf-8", append(script, ");"...)
}

// escapeSize is the number of bytes of an escape sequence of JavaScript, such as \u0456.
const escapeSize = 6

func appendEscape(dst []byte, unit rune) []byte {
	return binary.LittleEndian.AppendUint64(dst, escapeOf(uint32(unit)))[:len(dst)+escapeSize]
}

// escapeOf returns the escape sequence of a UTF-16 unit, the first byte in the lowest bits.
func escapeOf(unit uint32) uint64 {
	return '\\' | 'u'<<8 | uint64(hexDigits[unit>>8&0xFF])<<16 | uint64(hexDigits[unit&0xFF])<<32
}

// hexDigits has the two hexadecimal digits of each byte, the first one in the lower half.
var hexDigits = func() (pairs [256]uint16) {
	const digits = "0123456789abcdef"
	for i := range pairs {
		pairs[i] = uint16(digits[i>>4]) | uint16(digits[i&15])<<8
	}
	return pairs
}()

// escapes has the escape sequence of each character that UTF-8 writes with two bytes, such as Cyrillic ones.
var escapes = func() (all [0x800]uint64) {
	for unit := range all {
		all[unit] = escapeOf(uint32(unit))
	}
	return all
}()

// tops has the highest bit of each byte of a word.
const tops = 0x8080808080808080

// escapeQuick writes the beginning of a text to dst: ASCII as it is, and other characters as escape sequences. It reads
// and writes up to eight bytes at once, so it stops near the ends of dst and of the text, and at bytes that are not
// UTF-8. It returns how many bytes it has read and made.
func escapeQuick(dst, text []byte) (read, made int) {
	for read+8 <= len(text) && made+2*8 <= len(dst) {
		word := binary.LittleEndian.Uint64(text[read:])
		others := word & tops
		if others == 0 {
			binary.LittleEndian.PutUint64(dst[made:], word)
			read, made = read+8, made+8
			continue
		}
		if plain := bits.TrailingZeros64(others) / 8; plain > 0 {
			binary.LittleEndian.PutUint64(dst[made:], word)
			read, made = read+plain, made+plain
			continue
		}
		more, escaped := escapeRun(dst[made:], text[read:])
		if more == 0 {
			break
		}
		read, made = read+more, made+escaped
	}
	return read, made
}

// escapeRun writes characters beyond ASCII to dst, and single ASCII characters that follow one of two bytes, mostly
// blanks. It works like escapeQuick.
func escapeRun(dst, text []byte) (read, made int) {
	for read+4 <= len(text) && made+2*8 <= len(dst) {
		word, out := binary.LittleEndian.Uint32(text[read:]), dst[made:made+2*8]
		switch {
		case word&0xC0E0 == 0x80C0: // two bytes
			binary.LittleEndian.PutUint64(out, escapes[word&0x1F<<6|word>>8&0x3F])
			read, made = read+2, made+escapeSize
			if word >>= 16; word&0xC0E0 == 0x80C0 {
				binary.LittleEndian.PutUint64(out[escapeSize:], escapes[word&0x1F<<6|word>>8&0x3F])
				read, made = read+2, made+escapeSize
			} else if word&0x80 == 0 {
				out[escapeSize] = byte(word)
				read, made = read+1, made+1
			}
		case word&0xC0C0F0 == 0x8080E0: // three bytes
			binary.LittleEndian.PutUint64(out, escapeOf(word&0xF<<12|word>>8&0x3F<<6|word>>16&0x3F))
			read, made = read+3, made+escapeSize
		case word&0xC0C0C0F8 == 0x808080F0: // four bytes
			unit := word&0x7<<18 | word>>8&0x3F<<12 | word>>16&0x3F<<6 | word>>24&0x3F - 0x10000
			binary.LittleEndian.PutUint64(out, escapeOf(0xD800|unit>>10&0x3FF))
			binary.LittleEndian.PutUint64(out[escapeSize:], escapeOf(0xDC00|unit&0x3FF))
			read, made = read+4, made+2*escapeSize
		default:
			return read, made
		}
	}
	return read, made
}

// scriptSize returns the number of bytes that a text in UTF-8 has in a script: one for an ASCII character, and
// escapeSize for each UTF-16 unit of any other. It counts eight bytes at a time.
func scriptSize(text []byte) int {
	others, further, long := 0, 0, 0 // bytes beyond ASCII; those that do not begin a character; first ones of four
	count := func(word uint64) {
		others += bits.OnesCount64(word & tops)
		further += bits.OnesCount64(word & ^(word << 1) & tops)
		long += bits.OnesCount64(word & (word << 1) & (word << 2) & (word << 3) & tops)
	}
	rest := text
	for ; len(rest) >= 8; rest = rest[8:] {
		count(binary.LittleEndian.Uint64(rest))
	}
	for _, b := range rest {
		count(uint64(b))
	}
	return len(text) - others + escapeSize*(others-further+long)
}
