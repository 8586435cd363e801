package registryctl

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

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

// printJSON prints a value as JSON that ends in a newline. It is one line if indent
// is empty.
func (p *program) printJSON(value any, indent string) error {
	encoder := json.NewEncoder(p.out)
	encoder.SetIndent("", indent)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// plain replaces control characters, those that change the direction of text among them, so that
// a terminal does not interpret them.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return '?'
		}
		return r
	}, text)
}

// note prints a line with a table. JSON output has no notes.
func (p *program) note(format string, args ...any) error {
	if p.output == asJSON {
		return nil
	}
	_, err := fmt.Fprintf(p.out, format+"\n", args...)
	return err
}

// stamp formats a time in UTC, "" for nil and the zero time.
func stamp(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}
