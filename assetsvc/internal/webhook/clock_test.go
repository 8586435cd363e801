package webhook

import (
	"testing"
	"time"
)

const year = 365 * 24 * time.Hour

// TestAClockThatWasWrongSilencesNoWebhook uses progress with times from clocks that were a year ahead or behind.
// These times must neither delay the next attempt nor disable the webhook.
func TestAClockThatWasWrongSilencesNoWebhook(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		next time.Time
		want time.Duration
	}{
		{"no time", time.Time{}, 0},
		{"a second from now", now.Add(time.Second), time.Second},
		{"the longest rest", now.Add(retryMost), retryMost},
		{"just above it", now.Add(retryMost + time.Second), 0},
		{"a clock a year ahead", now.Add(year), 0},
		{"a clock a year behind", now.Add(-year), 0},
		{"a clock a minute ahead", now.Add(time.Second + time.Minute), time.Second + time.Minute},
		{"a clock a minute behind", now.Add(time.Second - time.Minute), 0},
		{"a clock a day ahead", now.Add(24 * time.Hour), 0},
		{"a clock a day behind", now.Add(-24 * time.Hour), 0},
		{"a clock ten years ahead", now.Add(10 * year), 0},
		{"a clock ten years behind", now.Add(-10 * year), 0},
	} {
		if got := (Progress{Next: c.next}).rest(now); max(got, 0) != c.want {
			t.Errorf("%s: got a rest of %v, want %v", c.name, got, c.want)
		}
	}
	down := answer{fault: "the receiver answered 500", status: 500}
	for _, c := range []struct {
		name     string
		failures int
		failedAt time.Time
		disabled bool
	}{
		{"the first failure", 0, time.Time{}, false},
		{"two failures by a clock a year behind", 1, now.Add(-year), false},
		{"many failures by a clock a year behind", 80, now.Add(-year), false},
		{"a first failure by a clock a year ahead", 80, now.Add(year), false},
		{"a first failure by a clock a minute ahead", 80, now.Add(time.Minute), false},
		{"a first failure by a clock a day ahead", 80, now.Add(24 * time.Hour), false},
		{"a first failure by a clock ten years ahead", 80, now.Add(10 * year), false},
		{"a first failure by a clock a minute behind", 80, now.Add(-time.Minute), false},
		{"a first failure by a clock a day behind", 80, now.Add(-24 * time.Hour), false},
		{"a first failure by a clock ten years behind", 80, now.Add(-10 * year), false},
		{"three days of failures", 80, now.Add(-giveUp), true},
		{"three days of failures with long rests", 11, now.Add(-giveUp), true},
		{"almost three days", 80, now.Add(time.Minute - giveUp), false},
	} {
		p := Progress{State: Active, Failures: c.failures, FailedAt: c.failedAt}
		got := p.failed(now, down, 0, giveUp, Failing)
		if (got.State == Disabled) != c.disabled {
			t.Errorf("%s: got %s, want disabled: %t", c.name, got.State, c.disabled)
		}
		if since := now.Sub(got.FailedAt); since < 0 || since > giveUp {
			t.Errorf("%s: got a first failure %v ago, want none of a wrong clock", c.name, since)
		}
		if wait := got.Next.Sub(now); !c.disabled && (wait <= 0 || wait > waitMost) {
			t.Errorf("%s: got a rest of %v, want one up to %v", c.name, wait, waitMost)
		}
	}
}
