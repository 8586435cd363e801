// Package httpwire reads and writes the plain part of HTTP/1.1: heads whose lines can be read in only one way.
// Package lean does so as a server, and package upstream as a client. Both leave all other heads to net/http.
package httpwire

import (
	"net/http"
	"net/textproto"
	"strings"
)

// Fields returns the header fields in lines. Each line must end with CR LF. A plain line has a name, a colon, and a
// value of printable ASCII, spaces and tabs. Fields returns false if a line is not plain, if the canonical name of a
// field is in the argument `refuse`, or if the field Connection has a value other than keep-alive. The result equals
// what net/http returns.
func Fields(lines string, refuse map[string]bool) (http.Header, bool) {
	n := strings.Count(lines, "\n")
	header, values := make(http.Header, n), make([]string, n)
	for lines != "" {
		line, rest, found := strings.Cut(lines, "\r\n")
		name, value, colon := strings.Cut(line, ":")
		if !found || !colon || !isToken(name) || !IsPrintable(value) {
			return nil, false
		}
		lines = rest
		name, value = textproto.CanonicalMIMEHeaderKey(name), trim(value)
		if refuse[name] || name == "Connection" && !strings.EqualFold(value, "keep-alive") {
			return nil, false
		}
		if have := header[name]; have != nil {
			header[name] = append(have, value)
			continue
		}
		values[0] = value
		header[name], values = values[:1:1], values[1:]
	}
	return header, true
}

// AppendField adds the lines of a field to b. As in net/http, it drops a field whose name is not a token, and
// replaces line ends in a value by spaces. So no value can add a field.
func AppendField(b []byte, name string, values []string) []byte {
	if !isToken(name) {
		return b
	}
	for _, value := range values {
		b = append(append(b, name...), ": "...)
		if strings.IndexByte(value, '\r') >= 0 || strings.IndexByte(value, '\n') >= 0 {
			value = lineEnds.Replace(value)
		}
		b = append(append(b, trim(value)...), "\r\n"...)
	}
	return b
}

// trim removes spaces and tabs around a value.
func trim(value string) string {
	for value != "" && isSpace(value[0]) {
		value = value[1:]
	}
	for value != "" && isSpace(value[len(value)-1]) {
		value = value[:len(value)-1]
	}
	return value
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' }

var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")

// IsTarget reports whether s is the target of a plain request: a path of printable ASCII
// without spaces.
func IsTarget(s string) bool {
	return strings.HasPrefix(s, "/") && IsPrintable(s) && !strings.ContainsAny(s, " \t")
}

// IsHost reports whether s consists of the characters of host names, addresses and ports.
func IsHost(s string) bool { return s != "" && consistsOf(s, &hosts) }

func isToken(s string) bool { return s != "" && consistsOf(s, &tokens) }

var (
	tokens = characters("!#$%&'*+-.^_`|~" + digits + letters) // RFC 9110, section 5.6.2
	hosts  = characters("-.:[]" + digits + letters)
)

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

func characters(all string) (set [256]bool) {
	for i := range len(all) {
		set[all[i]] = true
	}
	return set
}

func consistsOf(s string, set *[256]bool) bool {
	for i := range len(s) {
		if !set[s[i]] {
			return false
		}
	}
	return true
}

// IsPrintable reports whether s consists of printable ASCII, spaces and tabs.
func IsPrintable(s string) bool {
	for i := range len(s) {
		if (s[i] < ' ' || s[i] > '~') && s[i] != '\t' {
			return false
		}
	}
	return true
}
