package bulk

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"asset-registry/deploy/registry/bulk/sheet"
	"asset-registry/shared/cells"
)

// tidy returns a text of an office without blanks around it, and composed (NFC).
func tidy(text string) string {
	return norm.NFC.String(strings.TrimFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\u200b\u200c\u200d\u2060\ufeff", r)
	}))
}

// straight replaces quotes and apostrophes of print by those of a keyboard.
var straight = strings.NewReplacer("’", "'", "ʼ", "'", "‘", "'", "`", "'",
	"“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`)

// heading returns the name of a column in the form in which names are compared: quotes, blanks and line breaks do not
// count.
func heading(name string) string {
	return straight.Replace(strings.Join(strings.Fields(tidy(name)), " "))
}

// columnName returns the name of a column without a heading.
func columnName(index int) string { return "column " + cells.Letters(index+1) }

// WriteReference returns a reference as the registry takes it: in visible ASCII, with other characters and % as in
// URLs (RFC 3986). It leaves a reference as it is that the registry takes.
func WriteReference(text string) string {
	if strings.TrimFunc(text, isVisible) == "" {
		return text
	}
	var written strings.Builder
	for _, b := range []byte(strings.Join(strings.Fields(tidy(text)), " ")) {
		if isVisible(rune(b)) && b != '%' {
			written.WriteByte(b)
		} else {
			fmt.Fprintf(&written, "%%%02X", b)
		}
	}
	return written.String()
}

// ReadReference returns the reference of which WriteReference has made the argument.
func ReadReference(written string) string {
	if text, err := url.PathUnescape(written); err == nil && WriteReference(text) == written {
		return text
	}
	return written
}

func isVisible(r rune) bool { return r > ' ' && r <= '~' }

// slot matches the name of a column in the pattern of a file.
var slot = regexp.MustCompile(`\{[^{}]+\}`)

// pattern returns a pattern of files for a row: each {name} becomes the text of the column, or of the reference.
func (m *maker) pattern(text string) string {
	return slot.ReplaceAllStringFunc(text, func(name string) string {
		cell := ""
		if at := slices.Index(m.header, heading(name[1:len(name)-1])); at >= 0 {
			cell = tidy(m.cells[at].Text)
		}
		return literal.Replace(cell)
	})
}

// literal replaces the signs that have a meaning in a pattern.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// documents returns the documents of a row: a cell of several files makes several, and so does a pattern. The names are
// those of the mapping's elements, for each document in the value and in the result.
func (m *maker) documents(value any, names []string, files *Folder) (found []Document, of []string) {
	for i, d := range documentsOf(value) {
		each := []string{d.File}
		switch {
		case strings.Contains(d.File, "*"):
			if each = files.matching(d.File); len(each) == 0 {
				m.find(Warning, documents, "no file is like "+quoted(d.File))
			}
		case m.Files != "" && d.File != "":
			each = slices.DeleteFunc(strings.Split(d.File, m.Files), func(name string) bool { return tidy(name) == "" })
		}
		for _, name := range each {
			found = append(found, Document{tidy(name), d.Fields})
			if i < len(names) {
				of = append(of, names[i])
			}
		}
	}
	return found, of
}

// total matches the first words of a row of totals.
var total = regexp.MustCompile(`(?i)^(разом|всього|усього|підсумок|сума|итого|total)([ :.]|$)`)

// isTotal reports whether a row has the word of a total, and else numbers only.
func isTotal(cells []sheet.Cell, words string) bool {
	return total.MatchString(words) && !slices.ContainsFunc(cells, func(c sheet.Cell) bool {
		text := heading(c.Text)
		return text != words && strings.Trim(text, "0123456789., ") != ""
	})
}

// isSkipped reports whether the mapping skips a row: by its first words, or because it has no data, or only a total.
func (t *table) isSkipped(cells []sheet.Cell, words string) bool {
	for _, begin := range t.mapping.Skip {
		hasData := begin != everyRest
		for _, at := range t.data {
			hasData = hasData || tidy(cells[at].Text) != "" && !isTotal(cells, words)
		}
		rest, begins := strings.CutPrefix(strings.ToLower(words), strings.ToLower(heading(begin)))
		next, _ := utf8.DecodeRuneInString(rest)
		if !hasData || begin != everyRest && begins && !unicode.IsLetter(next) && !unicode.IsDigit(next) {
			return true
		}
	}
	return false
}

// dataColumns returns the columns with titles, areas and files, or that with the reference if there are none.
func (t *table) dataColumns() (found []int) {
	for i, name := range t.header {
		for path := range strings.SplitSeq(t.mapping.Columns[name], ",") {
			field := strings.TrimSpace(path[strings.LastIndex(path, ".")+1:])
			if field == "title" || field == "quantity" || field == fileField {
				found = append(found, i)
			}
		}
	}
	if len(found) == 0 && t.reference >= 0 {
		found = append(found, t.reference)
	}
	return found
}
