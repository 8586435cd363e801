package site

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/isotime"
)

// kyiv is the time zone of all times on pages.
var kyiv = isotime.Kyiv()

// months are the names of months after the day of the month.
var months = [...]text{
	{"січня", "January"}, {"лютого", "February"}, {"березня", "March"}, {"квітня", "April"}, {"травня", "May"},
	{"червня", "June"}, {"липня", "July"}, {"серпня", "August"}, {"вересня", "September"}, {"жовтня", "October"},
	{"листопада", "November"}, {"грудня", "December"},
}

// shortMonths are the names of months in charts.
var shortMonths = [...]text{
	{"січ", "Jan"}, {"лют", "Feb"}, {"бер", "Mar"}, {"кві", "Apr"}, {"тра", "May"}, {"чер", "Jun"},
	{"лип", "Jul"}, {"сер", "Aug"}, {"вер", "Sep"}, {"жов", "Oct"}, {"лис", "Nov"}, {"гру", "Dec"},
}

// moment returns a time in words: 23 листопада 2026, 11:20.
func moment(l Lang, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return day(l, at.In(kyiv)) + at.In(kyiv).Format(", 15:04")
}

// second returns a time with its seconds, for lists in which several changes may have the same minute.
func second(l Lang, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return moment(l, at) + at.In(kyiv).Format(":05")
}

// day returns the date of a time in words, in the time zone that the time has.
func day(l Lang, at time.Time) string {
	return strconv.Itoa(at.Day()) + " " + months[at.Month()-1].in(l) + " " + strconv.Itoa(at.Year())
}

// month returns the short form of a month that is written as 2026-11: лис 2026.
func month(l Lang, name string) string {
	at, err := time.Parse("2006-01", name)
	if err != nil {
		return name
	}
	return shortMonths[at.Month()-1].in(l) + " " + strconv.Itoa(at.Year())
}

// timeOf returns the time of a timestamp. It is zero if the text is not a timestamp.
func timeOf(stamp client.Timestamp) time.Time {
	at, err := stamp.Time()
	if err != nil {
		return time.Time{}
	}
	return at
}

// plain matches a decimal number without an exponent.
var plain = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// decimal returns a decimal number with separated thousands: 12 345,5 or 12,345.5. It keeps all digits. A text
// that is not a number is returned unchanged.
func decimal(l Lang, number string) string {
	if !plain.MatchString(number) {
		return number
	}
	separator, point := "\u00a0", ","
	if l == English {
		separator, point = ",", "."
	}
	sign := ""
	if strings.HasPrefix(number, "-") {
		sign, number = "−", number[1:]
	}
	whole, fraction, hasFraction := strings.Cut(number, ".")
	var said strings.Builder
	said.WriteString(sign)
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			said.WriteString(separator)
		}
		said.WriteRune(digit)
	}
	if hasFraction {
		said.WriteString(point + fraction)
	}
	return said.String()
}

// size returns a number of bytes in a unit that people read: 1,2 МБ. It returns "" for a text that is not a
// number of bytes.
func size(l Lang, bytes string) string {
	n, err := strconv.ParseInt(bytes, 10, 64)
	switch {
	case err != nil || n < 0:
		return ""
	case n < 1000:
		return counted(l, "byte", n)
	case n < 1e6:
		return count(l, (n+500)/1000) + "\u00a0" + texts["size.kilo"].in(l)
	}
	return decimal(l, strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64)) + "\u00a0" + texts["size.mega"].in(l)
}

// count returns a whole number with separated thousands.
func count(l Lang, n int64) string { return decimal(l, strconv.FormatInt(n, 10)) }

// counted returns a number with the right form of a noun: 3 активи.
func counted(l Lang, name string, n int64) string {
	return count(l, n) + "\u00a0" + nouns[name].after(l, n)
}

// lasted returns a duration in its largest unit: 3 дні.
func lasted(l Lang, d time.Duration) string {
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if n := int64(d / unit.size); n > 0 {
			return counted(l, unit.name, n)
		}
	}
	return texts["time.moment"].in(l)
}
