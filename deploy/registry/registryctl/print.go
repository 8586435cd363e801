package registryctl

import (
	"bytes"
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
			if cell == "" {
				cell = "-"
			}
			cells[i] = plain(cell)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
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
	_, err := fmt.Fprintln(p.out, strings.Join(lines(fmt.Sprintf(format, args...)), "\n"))
	return err
}

// stamp formats a time in UTC. It returns "" for nil and for the zero time.
func stamp(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}
