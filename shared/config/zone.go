package config

import (
	"fmt"
	"time"
)

// Zone returns the time zone of a constant offset such as "+02:00". It refuses
// the names of zones. In a zone with summer time, printed times would not keep
// their order when summer time ends (docs/contract.md, "Timestamps").
func Zone(text string) (*time.Location, error) {
	t, err := time.Parse("-07:00", text)
	if err != nil {
		return nil, fmt.Errorf("zone %q must be an offset such as +02:00", text)
	}
	_, seconds := t.Zone()
	if seconds == 0 {
		return time.UTC, nil
	}
	return time.FixedZone(text, seconds), nil
}
