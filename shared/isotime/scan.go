package isotime

import (
	"strings"
	"time"
)

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
