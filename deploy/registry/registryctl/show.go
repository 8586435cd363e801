package registryctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// show prints an object with all its fields, one in each line. The fields of an inner object are indented, and
// each element of a list has a hyphen in front.
func (p *program) show(object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("show: %w", err)
	}
	s := &shower{decoder: json.NewDecoder(bytes.NewReader(text))}
	s.decoder.UseNumber()
	s.token() // the opening {
	s.fields("", "")
	_, err = p.out.Write(s.out.Bytes())
	return err
}

// shower prints valid JSON. It reads the JSON token by token, so that fields keep their order.
type shower struct {
	decoder *json.Decoder
	out     bytes.Buffer
}

// token returns the next token. A token always follows, because the JSON is valid.
func (s *shower) token() json.Token {
	t, _ := s.decoder.Token()
	return t
}

// fields prints the fields of an object up to its end. The argument `first` is printed before the first field, and
// the argument `indent` before each further field.
func (s *shower) fields(first, indent string) {
	for s.decoder.More() {
		fmt.Fprintf(&s.out, "%s%s:", first, plain(fmt.Sprint(s.token())))
		s.value(" ", "\n"+indent+"  ", indent+"  ")
		first = indent
	}
	s.token() // the closing }
}

// value prints the next value. The argument `inline` is printed before a scalar, and the argument `block` before the
// first field of an object. The argument `indent` is printed before each further line.
func (s *shower) value(inline, block, indent string) {
	switch t := s.token(); {
	case !s.decoder.More() && (t == json.Delim('{') || t == json.Delim('[')):
		s.token()
		s.out.WriteString(inline + "-\n")
	case t == json.Delim('{'):
		s.fields(block, indent)
	case t == json.Delim('['):
		s.out.WriteByte('\n')
		for s.decoder.More() {
			s.out.WriteString(indent + "-")
			s.value(" ", " ", indent+"  ")
		}
		s.token()
	default:
		s.out.WriteString(inline + strings.Join(lines(fmt.Sprint(t)), "\n"+indent) + "\n")
	}
}

// lines splits a text into lines, and removes the control characters.
func lines(text string) []string {
	all := strings.Split(text, "\n")
	for i := range all {
		all[i] = plain(all[i])
	}
	return all
}
