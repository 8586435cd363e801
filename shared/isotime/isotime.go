// Package isotime reads the forms of ISO 8601 that the registry accepts.
package isotime

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // a container image may have no files with time zones
)

// Parse reads an ISO 8601 timestamp of the years 1 to 9999. The timestamp is a date. T or a blank, and a time of day,
// may follow the date. The time of day has hours and minutes. It may also have seconds, a fraction of any length (cut
// to microseconds), and an offset: Z, +hh, +hhmm or +hh:mm. The result keeps the offset. If the text has no offset,
// the result is in the given zone. Parse returns ErrRange for other years, and ErrForm for any other text.
func Parse(text string, zone *time.Location) (time.Time, error) {
	s := scanner{rest: text}
	year, month, day := s.number(4), s.after("-"), s.after("-")
	var hour, minute, second, micro int
	if s.skip("Tt ") {
		hour, minute = s.number(2), s.after(":")
		if s.skip(":") {
			second = s.number(2)
			if s.skip(".,") {
				micro = s.fraction()
			}
		}
		zone = s.zone(zone)
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, micro*1000, zone)
	if s.bad || s.rest != "" || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59 || t.Day() != day {
		return time.Time{}, ErrForm
	}
	if utc := t.UTC().Year(); year < 1 || utc < 1 || utc > 9999 {
		return time.Time{}, ErrRange
	}
	return t, nil
}

// offsetForm matches an offset: a date, and optionally a time of day and a zone. Its groups are, in order: the year;
// a hyphen or nothing; the month; a hyphen or nothing; the day; the hour; a colon or nothing; the minute; a colon or
// nothing; the second; the fraction; the zone.
var offsetForm = regexp.MustCompile(
	`^(\d{4})(-?)(\d\d)(-?)(\d\d)(?:[Tt ](\d\d)(?:(:?)(\d\d)(?:(:?)(\d\d)([.,]\d+)?)?)?([Zz]|[-+ ]\d\d(?::?\d\d)?)?)?$`)

// ParseOffset reads an offset in the feed (docs/contract.md, "Offsets"). Besides all that Parse accepts, it
// accepts the basic format without hyphens and colons, and a time of day without minutes. A blank before the
// zone counts as a '+' that the client did not escape. If the text has no zone, the result is in the given
// zone. ParseOffset returns the errors of Parse.
func ParseOffset(text string, zone *time.Location) (time.Time, error) {
	f := offsetForm.FindStringSubmatch(text)
	if f == nil || f[2] != f[4] || f[10] != "" && f[7] != f[9] {
		return time.Time{}, ErrForm
	}
	extended := f[1] + "-" + f[3] + "-" + f[5] + "T" + cmp.Or(f[6], "00") + ":" + cmp.Or(f[8], "00") + ":" +
		cmp.Or(f[10], "00") + f[11] + strings.Replace(f[12], " ", "+", 1)
	return Parse(extended, zone)
}

// The errors of Parse.
var (
	ErrForm  = errors.New("not an ISO 8601 timestamp")
	ErrRange = errors.New("date value out of range")
)

// IsDate reports whether a text that ParseOffset accepts is a date without a time of day.
func IsDate(text string) bool { return !strings.ContainsAny(text, "Tt ") }

// scanner reads the parts of a timestamp from left to right. Its methods set the
// field `bad` if a part is malformed.
type scanner struct {
	rest string // not read yet
	bad  bool
}

// skip reads the next byte if the argument `set` contains this byte. It reports whether it has read a byte.
func (s *scanner) skip(set string) bool {
	if s.rest == "" || !strings.Contains(set, s.rest[:1]) {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// number reads a number that has exactly the given count of digits.
func (s *scanner) number(digits int) int {
	if len(s.rest) < digits {
		s.bad = true
		return 0
	}
	n := 0
	for _, c := range []byte(s.rest[:digits]) {
		s.bad = s.bad || c < '0' || c > '9'
		n = n*10 + int(c-'0')
	}
	s.rest = s.rest[digits:]
	return n
}

// The method `after` reads a separator and a number of two digits.
func (s *scanner) after(separator string) int {
	s.bad = !s.skip(separator) || s.bad
	return s.number(2)
}

// fraction reads one digit or more, and returns the first six as microseconds.
func (s *scanner) fraction() int {
	digits := s.rest[:len(s.rest)-len(strings.TrimLeft(s.rest, "0123456789"))]
	s.rest = s.rest[len(digits):]
	s.bad = s.bad || digits == ""
	six := scanner{rest: (digits + "000000")[:6]}
	return six.number(6)
}

// zone reads a zone: Z or a difference to UTC. If the text has no zone, it returns the argument `fallback`.
func (s *scanner) zone(fallback *time.Location) *time.Location {
	if s.skip("Zz") {
		return time.UTC
	}
	east := 1
	switch {
	case s.skip("+"):
	case s.skip("-"):
		east = -1
	default:
		return fallback
	}
	hour, minute := s.number(2), 0
	if s.skip(":") || s.rest != "" {
		minute = s.number(2)
	}
	s.bad = s.bad || hour > 23 || minute > 59
	return time.FixedZone("", east*(hour*60+minute)*60)
}

// Kyiv returns the time zone of pages and of files for people.
var Kyiv = sync.OnceValue(func() *time.Location {
	zone, err := time.LoadLocation("Europe/Kyiv")
	if err != nil { // cannot happen: the program contains the time zones
		panic(fmt.Sprintf("isotime: %v", err))
	}
	return zone
})
