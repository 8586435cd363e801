package asset

import (
	"cmp"
	"errors"
	"regexp"
	"strings"
	"time"
)

// timeForm is the form in which timestamps are printed (docs/contract.md,
// "Timestamps"). It always has six fraction digits, so timestamps with the same
// offset sort as text in the order of time.
const timeForm = "2006-01-02T15:04:05.000000-07:00"

// FormatTime returns t as a timestamp in zone, with microseconds.
func FormatTime(t time.Time, zone *time.Location) string {
	return string(AppendTime(make([]byte, 0, len(timeForm)), t, zone))
}

// AppendTime appends t as FormatTime prints it. A page of the feed has a timestamp for each
// asset, and the general function would take a fifth of its time.
func AppendTime(dst []byte, t time.Time, zone *time.Location) []byte {
	t = t.In(zone)
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(dst, timeForm)
	}
	hour, minute, second := t.Clock()
	micro := t.Nanosecond() / 1000
	dst = appendTwo(dst, year/100, year%100)
	dst = appendTwo(append(dst, '-'), int(month))
	dst = appendTwo(append(dst, '-'), day)
	dst = appendTwo(append(dst, 'T'), hour)
	dst = appendTwo(append(dst, ':'), minute)
	dst = appendTwo(append(dst, ':'), second)
	dst = appendTwo(append(dst, '.'), micro/10_000, micro/100%100, micro%100)
	_, offset := t.Zone()
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	dst = appendTwo(append(dst, sign), offset/3600)
	return appendTwo(append(dst, ':'), offset/60%60)
}

// appendTwo appends numbers of two digits.
func appendTwo(dst []byte, numbers ...int) []byte {
	for _, n := range numbers {
		dst = append(dst, byte('0'+n/10), byte('0'+n%10))
	}
	return dst
}

// ParseTime reads an ISO 8601 timestamp of the years 1 to 9999: a date, and
// optionally T or a blank and a time of day. The time of day has hours and
// minutes, optionally seconds, a fraction of any length (cut to microseconds) and
// an offset: Z, +hh, +hhmm or +hh:mm. The result keeps the offset; without one it
// is in zone. ParseTime returns ErrTimeRange for other years, and ErrTimeForm for
// any other text.
func ParseTime(text string, zone *time.Location) (time.Time, error) {
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
		return time.Time{}, ErrTimeForm
	}
	if utc := t.UTC().Year(); year < 1 || utc < 1 || utc > 9999 {
		return time.Time{}, ErrTimeRange
	}
	return t, nil
}

// offsetForm is the form of an offset: a date, and perhaps a time of day, and its zone. The
// groups are the year, a hyphen or nothing, month, hyphen, day, hour, a colon or nothing,
// minute, colon, second, fraction, and the zone.
var offsetForm = regexp.MustCompile(
	`^(\d{4})(-?)(\d\d)(-?)(\d\d)(?:[Tt ](\d\d)(?:(:?)(\d\d)(?:(:?)(\d\d)([.,]\d+)?)?)?([Zz]|[-+ ]\d\d(?::?\d\d)?)?)?$`)

// ParseOffset reads an offset in the feed (docs/contract.md, "Offsets"). It takes what
// ParseTime takes, the basic format without hyphens and colons, and a time of day without
// minutes. A blank before the zone is a '+' that the client did not escape. Without a zone
// it is in UTC. ParseOffset returns the errors of ParseTime.
func ParseOffset(text string) (time.Time, error) {
	f := offsetForm.FindStringSubmatch(text)
	if f == nil || f[2] != f[4] || f[10] != "" && f[7] != f[9] {
		return time.Time{}, ErrTimeForm
	}
	extended := f[1] + "-" + f[3] + "-" + f[5] + "T" + cmp.Or(f[6], "00") + ":" + cmp.Or(f[8], "00") + ":" +
		cmp.Or(f[10], "00") + f[11] + strings.Replace(f[12], " ", "+", 1)
	return ParseTime(extended, time.UTC)
}

// The errors of ParseTime.
var (
	ErrTimeForm  = errors.New("not an ISO 8601 timestamp")
	ErrTimeRange = errors.New("date value out of range")
)

// excerptLength is the number of characters of a sent value that an error quotes.
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
