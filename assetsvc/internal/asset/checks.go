package asset

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/isotime"
)

// checkClassification checks the id of an item's classification. The id must be a code of the scheme, and must name a
// class or something more exact (docs/contract.md, "Codes").
func checkClassification(w *walk, path string, o record.Object) {
	if !w.isCode(path, o, classificationSchemes) || !isCoarse(o.Text("id")) {
		return
	}
	_, accepted := w.rules.codes(o.Text("scheme"))
	const coarse = "At least %s classification class (XXXX0000-Y) should be specified more precisely%s"
	w.breaks(record.Join(path, "id"), coarse, o.Text("scheme"), w.nearest(o.Text("id"), accepted))
}

// coarseEnd is the end of a code of a division or a group, without the check digit.
const coarseEnd = "00000-"

// isCoarse reports whether a code names a division or a group.
func isCoarse(code string) bool { return strings.LastIndex(code, coarseEnd) > 0 }

// checkAdditionalClassification checks that the id is a code of the scheme.
func checkAdditionalClassification(w *walk, path string, o record.Object) {
	w.isCode(path, o, additionalSchemes)
}

// isCode reports whether the id of a classification is a code of its scheme. If it is not, isCode adds a fault
// to the walk. The code must be in the list of the scheme, if there is a list, and have the form of the
// scheme's codes.
func (w *walk) isCode(path string, o record.Object, schemes schemeList) bool {
	scheme, id := o.Text("scheme"), o.Text("id")
	path = record.Join(path, "id")
	all, accepted := w.rules.codes(scheme)
	switch {
	case all != nil && !all.has(id):
		w.refuse(path, id, accepted)
		return false
	case !schemes.fit(scheme, id):
		w.breaks(path, "%s An id of %s has the form %s.", noMatch, scheme, schemes.forms[scheme])
		return false
	}
	return true
}

// isFilled reports whether a field has a value, for rules over several fields. An empty text does not count as
// a value, because an optional text may be stored empty.
func isFilled(value record.Value) bool { return value != nil && value != "" }

func checkRegistration(w *walk, path string, o record.Object) {
	if o.Text("status") == registrationComplete {
		return
	}
	for _, name := range []string{"registrationID", "registrationDate"} {
		if isFilled(o.Get(name)) {
			w.breaks(record.Join(path, name), "You can fill %s only when status is complete", name)
		}
	}
}

func checkContact(w *walk, path string, o record.Object) {
	if o.Text("email") == "" && o.Text("telephone") == "" {
		w.breaks(record.Join(path, "email"), "telephone or email should be present")
	}
}

func checkPeriod(w *walk, path string, o record.Object) {
	start, startErr := ParseTime(o.Text("startDate"), w.rules.Zone)
	end, endErr := ParseTime(o.Text("endDate"), w.rules.Zone)
	if startErr != nil || endErr != nil {
		return // a date is absent, or it is malformed and was reported before
	}
	if end.Before(start) {
		w.breaks(record.Join(path, "startDate"), "period should begin before its end")
	}
}

// checkDocument checks the fields that depend on the type of a document. A document that describes where to see the
// asset must have accessDetails. All others must have a url (docs/contract.md, "Document").
func checkDocument(w *walk, path string, o record.Object) {
	if o.Text("documentType") != familiarization {
		if o.Text("url") == "" {
			w.breaks(record.Join(path, "url"), required)
		}
		return
	}
	for _, name := range []string{"url", "hash"} {
		if isFilled(o.Get(name)) {
			w.breaks(record.Join(path, name), "This field is not required.")
		}
	}
	if o.Text("accessDetails") == "" {
		w.breaks(record.Join(path, "accessDetails"), required)
	}
}

// firstInforms checks the type of an asset's first document (docs/contract.md, "Document"). The text of the
// fault lacks a blank on purpose, because the contract requires exactly this text.
func firstInforms(w *walk, path string, l record.List) {
	if first, _ := l[0].(record.Object); first.Text("documentType") != informationDetails {
		w.breaks(path, "First document should be document with %sdocumentType", informationDetails)
	}
}

// uniqueIDs returns a check that no two elements have the same id (docs/contract.md, "Identifiers"). The argument
// `otherwise` is the text of the fault.
func uniqueIDs(otherwise string) listCheck {
	return func(w *walk, path string, l record.List) {
		seen := make(map[string]bool, len(l))
		for _, element := range l {
			object, _ := element.(record.Object)
			id := object.Text("id")
			if seen[id] {
				w.breaks(path, "%s", otherwise)
				return
			}
			seen[id] = true
		}
	}
}

var (
	uniqueItems     = uniqueIDs("Item id should be uniq for all items")
	uniqueDecisions = uniqueIDs("Decision id should be unique for all decisions")
)

func atMostOne(w *walk, path string, l record.List) {
	if len(l) > 1 {
		w.breaks(path, "Please provide no more than 1 item.")
	}
}

// hasLot reports whether an asset has a related lot. An active asset needs one (docs/contract.md, "Related
// process").
func hasLot(o record.Object) bool { return anyOf(o.List(processesField), "type", relatedLot) }

// hasCancellation reports whether an asset has a document that cancels it. An asset needs one to be deleted
// (docs/contract.md, "Change").
func hasCancellation(o record.Object) bool {
	return anyOf(o.List("documents"), "documentType", cancellationDetails)
}

// anyOf reports whether any object of a list has the given value in the named field.
func anyOf(l record.List, name, value string) bool {
	return slices.ContainsFunc(l, func(element record.Value) bool {
		object, _ := element.(record.Object)
		return object.Text(name) == value
	})
}

// Kinds of text that must match a form. All of them accept the empty string.
var (
	webAddress      = textThat(urlForm, shownURL, notURL).upTo(addressLength)
	documentAddress = textThat(documentForm, shownURL, notURL).upTo(addressLength)
	emailAddress    = textThat(emailForm, shownEmail, "Not a well formed email address.").upTo(codeLength)
	mediaType       = textThat(mediaForm, mediaForm.String(), noMatch).upTo(codeLength)
)

// The forms that the description of the fields shows. They accept more than urlForm and emailForm, which use
// classes of letters that many validators do not know.
const (
	shownURL   = `^[hH][tT][tT][pP][sS]?://[^\s/?#]+([/?#]\S*)?$`
	shownEmail = `^[^@\s]+@[^@\s]+\.[^@\s]+$`
)

const notURL = "Not a well formed URL."

// The forms that the rules use. They list letters in both cases, because (?i:s) would also accept ſ. Host names
// may have letters of any script.
var (
	urlForm      = regexp.MustCompile(`^` + web + `(?:` + publicHost + `)` + afterHost + `$`)
	documentForm = regexp.MustCompile(`^` + web + `(?:` + publicHost + `|` + innerHost + `)` + afterHost + `$`)

	emailForm = regexp.MustCompile(`^[^@\s\pC]{1,64}@` + domain + `$`)
	mediaForm = regexp.MustCompile(`^[a-zA-Z0-9!#$&^_.+-]+/[a-zA-Z0-9!#$&^_.+-]+$`)
)

// Parts of the forms. The address of a document may also have a host in a private network (innerHost): a name
// without a dot, or an IPv6 address.
const (
	web        = `[hH][tT][tT][pP][sS]?://`
	domain     = `(?:[\pL\pN](?:[\pL\pN-]{0,61}[\pL\pN])?\.)+[\pL][\pL\pN-]{0,61}[\pL\pN]`
	publicHost = domain + `\.?` +
		`|[lL][oO][cC][aA][lL][hH][oO][sS][tT]` +
		`|(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)`
	innerHost = `(?:\pN[\pL\pN_-]{0,31})?\pL(?:[\pL\pN_-]{0,61}[\pL\pN])?|\[[0-9a-fA-F:.]{2,45}\]`
	afterHost = `(?::\d{1,5})?(?:[/?#][^\s\pC]*)?`
)

// The bounds of decimals (docs/contract.md, "Numbers").
const (
	decimalDigits  = 34  // maximum number of digits of a decimal in plain notation
	decimalLength  = 200 // maximum number of characters of a decimal that a client sends
	quantityPlaces = 4   // fraction digits of a quantity
)

// decimalForm is the form of a decimal that a client may send. parseDecimal also limits the size of the number,
// because a short text such as 1e999999999 may stand for a huge number.
var decimalForm = regexp.MustCompile(`^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?$`)

// parseDecimal returns a decimal in plain notation, without trailing zeros. The decimal is rounded half-up; the
// argument `places` is the number of fraction digits that remain. parseDecimal returns false for a text that is
// not a decimal or exceeds the bounds.
func parseDecimal(written string, places int) (record.Number, bool) {
	if len(written) > decimalLength || !decimalForm.MatchString(written) {
		return "", false
	}
	d, err := decimal.NewFromString(written)
	if err != nil {
		return "", false
	}
	// The first digit has the place value 10^(magnitude-1). The magnitude is checked first, because Round and
	// String would write out a huge number.
	switch magnitude := d.NumDigits() + int(d.Exponent()); {
	case d.IsZero() || magnitude < -places:
		return "0", true
	case magnitude > decimalDigits:
		return "", false
	}
	plain := d.Round(int32(places)).String()
	if digits := len(strings.Trim(plain, "-")) - strings.Count(plain, "."); digits > decimalDigits {
		return "", false
	}
	return record.Number(plain), true
}

// timeForm is the form in which timestamps are printed (docs/contract.md, "Timestamps"). It always has six fraction
// digits. So if texts of timestamps with the same offset are sorted, the times are sorted too.
const timeForm = "2006-01-02T15:04:05.000000-07:00"

// FormatTime returns the time t as a timestamp in a zone, with microseconds.
func FormatTime(t time.Time, zone *time.Location) string { return t.In(zone).Format(timeForm) }

// AppendTime appends t in the form of FormatTime.
func AppendTime(dst []byte, t time.Time, zone *time.Location) []byte {
	return t.In(zone).AppendFormat(dst, timeForm)
}

// ParseTime is an alias of isotime.Parse.
func ParseTime(text string, zone *time.Location) (time.Time, error) { return isotime.Parse(text, zone) }

// ParseOffset reads an offset in the feed (docs/contract.md, "Offsets"). An offset without a zone is in UTC.
func ParseOffset(text string) (time.Time, error) { return isotime.ParseOffset(text, time.UTC) }

// The errors of ParseTime and ParseOffset.
var (
	ErrTimeForm  = isotime.ErrForm
	ErrTimeRange = isotime.ErrRange
)

// excerptLength is the maximum number of characters of a sent value that an error quotes.
const excerptLength = 64

// excerpt returns the beginning of a text, for an error to quote.
func excerpt(text string) string {
	n := 0
	for i := range text {
		if n++; n > excerptLength {
			return text[:i] + "…"
		}
	}
	return text
}
