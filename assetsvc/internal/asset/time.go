package asset

import (
	"time"

	"asset-registry/shared/isotime"
)

// timeForm is the form in which timestamps are printed (docs/contract.md, "Timestamps"). It always has six fraction
// digits. So if texts of timestamps with the same offset are sorted, the times are sorted too.
const timeForm = "2006-01-02T15:04:05.000000-07:00"

// FormatTime returns the time t as a timestamp in a zone, with microseconds.
func FormatTime(t time.Time, zone *time.Location) string {
	return string(AppendTime(make([]byte, 0, len(timeForm)), t, zone))
}

// AppendTime appends t in the form of FormatTime. It is faster than time.Time.AppendFormat. A page of the feed
// has a timestamp for each asset, so AppendFormat would take a fifth of the time for the page.
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

// appendTwo appends each number as two digits.
func appendTwo(dst []byte, numbers ...int) []byte {
	for _, n := range numbers {
		dst = append(dst, byte('0'+n/10), byte('0'+n%10))
	}
	return dst
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
