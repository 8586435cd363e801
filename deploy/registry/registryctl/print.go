package registryctl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"asset-registry/shared/command"
)

// plain removes the characters of a text that a terminal could interpret as a command.
var plain = command.Plain

// row is one line of a table.
type row []string

// print prints an answer as JSON, or the rows as a table.
func (p *program) print(answer any, header row, rows ...row) error {
	if p.output == asJSON {
		return p.printJSON(answer, "  ")
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, r := range append([]row{header}, rows...) {
		cells := make([]string, len(r))
		for i, cell := range r {
			cells[i] = plain(cmp.Or(cell, "-"))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// table prints the answer as JSON, or a table whose rows are the cells of the objects.
func table[T any](p *program, answer any, header row, objects []T, cells func(T) row) error {
	var rows []row
	for _, o := range objects {
		rows = append(rows, cells(o))
	}
	return p.print(answer, header, rows...)
}

// printJSON prints a value as JSON with a newline at the end. If indent is empty, the JSON is on one line.
func (p *program) printJSON(value any, indent string) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", indent)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := p.out.Write(escaped(text.Bytes()))
	return err
}

// escaped returns a JSON text with escaped control characters. Line feeds between values stay as they are.
func escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, func(r rune) bool { return r >= '\u007f' && command.IsControl(r) }) {
		return text // no change is needed, because JSON itself escapes C0 characters in strings
	}
	var out []byte
	for _, r := range string(text) {
		if r >= '\u007f' && command.IsControl(r) {
			out = fmt.Appendf(out, "\\u%04x", r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// note prints text that comes with a table, without control characters. With JSON output it prints nothing.
func (p *program) note(format string, args ...any) error {
	if p.output == asJSON {
		return nil
	}
	_, err := fmt.Fprintln(p.out, strings.Join(lines(p.inWords(fmt.Sprintf(format, args...))), "\n"))
	return err
}

// stamp formats a time in UTC. It returns "" for nil and for the zero time.
func stamp(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

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
