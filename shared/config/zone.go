package config

import (
	"fmt"
	"time"
)

// Zone returns the constant offset that text names, "+02:00" say. Zones with
// summer time are no offsets: at its end the order of printed times would not
// be the order of times (contract, decision 15).
func Zone(text string) (*time.Location, error) {
	t, err := time.Parse("-07:00", text)
	if err != nil {
		return nil, fmt.Errorf("zone %q is no offset such as +02:00", text)
	}
	_, seconds := t.Zone()
	if seconds == 0 {
		return time.UTC, nil
	}
	return time.FixedZone(text, seconds), nil
}
