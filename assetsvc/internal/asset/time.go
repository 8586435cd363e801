package asset

import (
	"errors"
	"time"
)

// timeForm is how timestamps are written: always six fraction digits and a
// numeric offset, so that the text order of timestamps of one offset is their
// time order (contract, decision 15).
const timeForm = "2006-01-02T15:04:05.000000-07:00"

// FormatTime returns t as the interface document has timestamps, in zone.
func FormatTime(t time.Time, zone *time.Location) string { return t.In(zone).Format(timeForm) }

// AppendTime appends what FormatTime returns.
func AppendTime(dst []byte, t time.Time, zone *time.Location) []byte {
	return t.In(zone).AppendFormat(dst, timeForm)
}

// ParseTime reads an ISO 8601 timestamp of the years 1 to 9999: a date, then
// optionally T or a blank with hours and minutes, seconds, a fraction of any
// length (cut to microseconds), and Z, +hh, +hhmm or +hh:mm. Without an offset
// zone's holds; the time returned has the offset it was written with. It
// returns ErrTimeRange for other years, and ErrTimeForm for any other text.
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

// What ParseTime refuses.
var (
	ErrTimeForm  = errors.New("no ISO 8601 timestamp")
	ErrTimeRange = errors.New("date value out of range")
)

// excerptLength is how many characters of what was sent an error quotes.
const excerptLength = 64

// excerpt shortens what a client sent for quoting it in an error.
func excerpt(text string) string {
	n := 0
	for i := range text {
		if n++; n > excerptLength {
			return text[:i] + "…"
		}
	}
	return text
}
