package bulk

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"asset-registry/deploy/registry/bulk/sheet"
	"asset-registry/shared/ukrainian"
)

// doubts are texts that a program has put in the place of a value, with what they mean. Those of typed kinds are known
// by the kind of the cell in XLSX.
var doubts = []struct {
	form  *regexp.Regexp
	typed bool
	says  string
}{
	{regexp.MustCompile(`^(?:#[\p{Lu}/0'’]{2,}[!?]?|#+)$`), true, "this is an error of a formula"},
	{regexp.MustCompile(`^(?i:true|false|істина|хиба|истина|ложь)$`), true, "this is a truth value"},
	{regexp.MustCompile(`^[+-]?\d([.,]\d+)?E[+-]?\d+$`), false,
		"a spreadsheet shows a long number so, and its digits are lost"},
	{regexp.MustCompile(`\p{L}\?\p{L}|\d\s?\p{L}{1,3}\?|\x{FFFD}`), false,
		"a letter or a sign was lost: ? stands in its place"},
}

// doubt returns why a cell was perhaps misread for a field, or "".
func doubt(field string, c sheet.Cell) string {
	switch {
	case c.Kind == sheet.Failed:
		return doubts[0].says
	case c.Kind == sheet.Truth:
		return doubts[1].says
	case c.Kind == sheet.Date && !isDay(field):
		return "the cell is a date, and this field is none"
	case c.Kind == sheet.Number && len(strings.Trim(c.Text, "-0.")) > 15:
		return "a spreadsheet keeps 15 digits of a number"
	}
	for _, d := range doubts {
		if (c.Kind == sheet.Shown || c.Kind == sheet.Text && !d.typed) && d.form.MatchString(strings.TrimSpace(c.Text)) &&
			!strings.Contains(c.Text, "://") {
			return d.says
		}
	}
	return ""
}

// numberForms are the forms of numbers with a decimal sign. Blanks may part thousands.
var numberForms = map[string]*regexp.Regexp{
	".": regexp.MustCompile(`^[+-]?(?:\d+|\d{1,3}(?: \d{3})+)(?:\.\d+)?$`),
	",": regexp.MustCompile(`^[+-]?(?:\d+|\d{1,3}(?: \d{3})+)(?:,\d+)?$`),
}

// number returns a number of a mapping's form as the API takes it, and what is wrong with its text, or "".
func (m Mapping) number(text string) (number, says string) {
	parted := strings.Join(strings.Fields(text), " ")
	if text != "" && !numberForms[m.Decimal].MatchString(parted) {
		const says = "%s is no number with the decimal sign %q, such as 1 104%[2]s5"
		return text, fmt.Sprintf(says, quoted(text), m.Decimal)
	}
	return strings.NewReplacer(" ", "", ",", ".").Replace(parted), ""
}

// isoDates is the form of dates without a setting.
const isoDates = "YYYY-MM-DD"

// day returns a date of the mapping's form as the API takes it, or the text itself.
func (m Mapping) day(text string) string {
	if m.Dates != dayFirst {
		return text
	}
	for _, form := range []string{"2.1.2006", "2.1.2006 15:04", "2.1.2006 15:04:05"} {
		if at, err := time.Parse(form, strings.Join(strings.Fields(text), " ")); err == nil {
			return strings.TrimSuffix(at.Format("2006-01-02T15:04:05"), "T00:00:00")
		}
	}
	return text
}

// doubtValue returns why a value in the form of the API is perhaps wrong, or "".
func doubtValue(field, text string) string {
	day, err := time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))])
	isFar := err == nil && (day.Year() < 1991 || day.After(time.Now().AddDate(10, 0, 0)))
	number, err := strconv.ParseFloat(text, 64)
	switch {
	case isDay(field) && isFar:
		return fmt.Sprintf("the date %s is far away", text)
	case field == "quantity" && err == nil && number <= 0:
		return fmt.Sprintf("the quantity is %s", text)
	}
	return ""
}

// examine looks for values that are perhaps wrong in an object that the node n makes. It adds the zeros that a
// spreadsheet has dropped from a code, if the mapping says so.
func (m *maker) examine(n *node, object map[string]any) {
	code, _ := object["code"].(string)
	if n.name == "unit" && code != "" && ukrainian.Unit(code) == "" {
		m.find(Warning, n.at("code", nil), "no search counts the unit "+quoted(code))
	}
	if object["scheme"] != "UA-EDR" {
		return
	}
	id, _ := object["id"].(string)
	if zeros := 8 - len(id); m.Digits != "" && zeros > 0 && isCode(strings.Repeat("0", zeros)+id) {
		id = strings.Repeat("0", zeros) + id
		object["id"] = id
	}
	says := ""
	switch _, err := strconv.ParseUint(id, 10, 64); {
	case id == "" || isCode(id):
		return
	case err == nil && len(id) == 10:
		says = "it has ten digits, so it is a person's tax number, which everybody could read"
	case err == nil && len(id) < 8 && m.Digits != "":
		says = "it has fewer than 8 digits, and with zeros before it its check digit is wrong"
	case err == nil && len(id) < 8:
		says = "it has fewer than 8 digits: a spreadsheet drops leading zeros, and digits: 8 in the mapping adds them"
	case err != nil || len(id) != 8:
		says = "a code is 8 digits, and nothing else"
	case id == "00000000":
		says = "it has zeros only"
	default:
		says = "its check digit is wrong"
	}
	m.find(Warning, n.at("id", nil), fmt.Sprintf("%s is no code of EDRPOU: %s", quoted(id), says))
}

// isCode reports whether a text is a code of EDRPOU, whose last digit checks the others.
func isCode(text string) bool {
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil || len(text) != 8 || number == 0 {
		return false
	}
	rest := func(more int) (sum int) {
		for i := range 7 {
			weight := i + 1
			if number >= 30_000_000 && number <= 60_000_000 {
				weight = (i+6)%7 + 1
			}
			sum += int(text[i]-'0') * (weight + more)
		}
		return sum % 11
	}
	check := rest(0)
	if check == 10 {
		check = rest(2) % 10
	}
	return check == int(text[7]-'0')
}

// named is the number of a row and its reference.
type named struct {
	number    int
	reference string
}

// same returns the number of an earlier row with the same values under another reference, or 0. Columns without a field
// do not count.
func (t *table) same(cells []sheet.Cell, reference string) int {
	hash := sha256.New()
	for i, c := range cells {
		if i != t.reference && i < len(t.header) && t.mapping.Columns[t.header[i]] != "" {
			fmt.Fprintf(hash, "%d %s", len(c.Text), c.Text)
		}
	}
	key := string(hash.Sum(nil)[:16])
	former, ok := t.values[key]
	if !ok {
		t.values[key] = named{t.row, reference}
	}
	if former.reference == reference {
		return 0
	}
	return former.number
}
