package apikey

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

func TestSetReplacesTheSettings(t *testing.T) {
	later := now.Add(time.Hour)
	other := Settings{Name: "other", Role: identity.Concierge, Levels: "2"}
	k := kept()
	k.Unaudited = true
	got, err := k.Set(other, later)
	if err != nil || got.Settings.Name != "other" || got.Settings.Role != identity.Concierge || got.Settings.Levels != "2" ||
		len(got.Settings.Allow) != 0 || !got.Modified.Equal(later) || got.Unaudited {
		t.Errorf("got %+v, %v; want the other settings, at %v", got, err, later)
	}
	revoked := kept()
	revoked.Revoked = now
	if got, err := revoked.Set(other, later); fault.KindOf(err) != fault.Conflict || got.Settings.Name != "n" {
		t.Errorf("a revoked key: got %+v, %v; want no change and kind Conflict", got, err)
	}
}

// Promises: rotation
func TestBoundsOfSettings(t *testing.T) {
	for _, c := range []struct {
		window   string
		requests int64
		want     bool
	}{
		{"1s", 1, true}, {"24h", maxLimit, true}, {"90m", 7, true},
		{"999ms", 1, false}, {"0s", 1, false}, {"-1s", 1, false}, {"1500ms", 1, false}, {"24h1s", 1, false}, {"", 1, false},
		{"1s", 0, false}, {"1s", maxLimit + 1, false},
	} {
		k := kept()
		k.Settings.Limits = authapi.Limits{"read": {c.window: c.requests}}
		if err := k.Check(); (err == nil) != c.want {
			t.Errorf("%d requests in %q: got %v, want them accepted: %t", c.requests, c.window, err, c.want)
		}
	}
	long := strings.Repeat("я", maxText)
	for _, c := range []struct {
		of   Broker
		want string // text of the fault; "": no fault
	}{
		{Broker{Name: long, Title: long, Contact: long}, ""},
		{Broker{}, "body/name: This field is required."},
		{Broker{Name: "b", Contact: long + "я"}, "body/contact"},
		{Broker{Name: "b", Contact: " b"}, "body/contact"},
		{Broker{Name: "b\x00"}, "body/name"},
		{Broker{Name: "b", Raise: 100, RaisedUntil: now.Add(maxRaisedTime), Modified: now}, ""},
		{Broker{Name: "b", Raise: 2, RaisedUntil: now.Add(-time.Hour), Modified: now}, ""},
		{Broker{Name: "b", Raise: 2, RaisedUntil: now.Add(maxRaisedTime + 1), Modified: now}, "body/raised_until"},
		{Broker{Name: "b", Raise: 2}, "body/raised_until"},
		{Broker{Name: "b", RaisedUntil: now, Modified: now}, "body/raised_until"},
		{Broker{Name: "b", Raise: 1, RaisedUntil: now, Modified: now}, "body/raise"},
		{Broker{Name: "b", Raise: 101, RaisedUntil: now, Modified: now}, "body/raise"},
		{Broker{Name: "b", Raise: -1, RaisedUntil: now, Modified: now}, "body/raise"},
	} {
		err := c.of.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q: got %v, want %q", c.of.Name, err, c.want)
		}
	}
	for id, want := range map[string]bool{
		strings.Repeat("a", 200): true, strings.Repeat("a", 201): false, "": false, "a{b": false, "a\x00": false, "\xff": false,
	} {
		expect.Equal(t, IsID(id), want, "the id %.20q of %d bytes", id, len(id))
	}
	expect.ErrOf(t, nil, "the longest grace")(kept().Rotate("third", MaxGrace, now))
	expect.FaultOf(t, fault.Invalid, "a longer grace")(kept().Rotate("third", MaxGrace+1, now))
}

// recorder is a Recorder that notes how many uses and counts it gets, or fails.
type recorder struct {
	uses, counts int
	err          error
}

func (r *recorder) AddUsage(_ context.Context, uses []authapi.Use, counts []authapi.Count) error {
	r.uses, r.counts = r.uses+len(uses), r.counts+len(counts)
	return r.err
}

func TestReportsOfUseAreChecked(t *testing.T) {
	use := authapi.Use{KeyID: "k", Addr: netip.MustParseAddr("192.0.2.1")}
	count := authapi.Count{KeyID: "k", Day: "2026-11-21", Class: "read"}
	for _, c := range []struct {
		name   string
		change func(*authapi.ReportUsageRequest)
		want   bool
	}{
		{"the largest report", func(*authapi.ReportUsageRequest) {}, true},
		{"too many uses", func(r *authapi.ReportUsageRequest) { r.Uses = append(r.Uses, use) }, false},
		{"too many counts", func(r *authapi.ReportUsageRequest) { r.Counts = append(r.Counts, count) }, false},
		{"a use of no key", func(r *authapi.ReportUsageRequest) { r.Uses[1].KeyID = "" }, false},
		{"a use from no address", func(r *authapi.ReportUsageRequest) { r.Uses[1].Addr = netip.Addr{} }, false},
		{"a use from a zone", func(r *authapi.ReportUsageRequest) { r.Uses[1].Addr = netip.MustParseAddr("fe80::1%x") }, false},
		{"a count of no day", func(r *authapi.ReportUsageRequest) { r.Counts[1].Day = "x" }, false},
		{"a negative count", func(r *authapi.ReportUsageRequest) { r.Counts[1].Requests = -1 }, false},
		{"a count of {", func(r *authapi.ReportUsageRequest) { r.Counts[1].KeyID = "{" }, false},
	} {
		to := &recorder{}
		report := authapi.ReportUsageRequest{
			Uses:   slices.Repeat([]authapi.Use{use}, authapi.MaxReport),
			Counts: slices.Repeat([]authapi.Count{count}, authapi.MaxReport),
		}
		c.change(&report)
		err := NewMeter(to, time.Now).Report(t.Context(), report)
		if isFault := fault.KindOf(err) == fault.Invalid; isFault == c.want || (to.uses > 0) != c.want {
			t.Errorf("%s: got %v and %d stored uses, want it stored: %t", c.name, err, to.uses, c.want)
		}
	}
	newer := &recorder{}
	report := authapi.ReportUsageRequest{
		Uses:   []authapi.Use{use},
		Counts: []authapi.Count{count, {KeyID: "k", Day: "2026-11-21", Class: "of a newer gateway"}},
	}
	if err := NewMeter(newer, time.Now).Report(t.Context(), report); err != nil || newer.uses != 1 || newer.counts != 1 {
		t.Errorf("an unknown class: got %d uses and %d counts, %v; want 1 and 1", newer.uses, newer.counts, err)
	}
	down := errors.New("down")
	expect.Err(t, NewMeter(&recorder{err: down}, time.Now).Report(t.Context(), authapi.ReportUsageRequest{}), down,
		"a store that is down")
}

func TestAKeysFileHasEachKeyAndIDOnce(t *testing.T) {
	entry := func(id, digit string) string {
		return "- {id: " + id + ", broker: b, role: broker, levels: '3', sha256: '" + digit + "'}\n"
	}
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"two keys", entry("one", a) + entry("two", b), true},
		{"a key twice", entry("one", a) + entry("two", a), false},
		{"a key twice, in capitals", entry("one", a) + entry("two", strings.ToUpper(a)), false},
		{"an id twice", entry("one", a) + entry("one", b), false},
		{"a short sum", entry("one", a[:62]), false},
		{"a sum that is not hexadecimal", entry("one", a[:63]+"x"), false},
	} {
		if keys, err := read(strings.NewReader(c.text)); (err == nil) != c.want {
			t.Errorf("%s: got %d keys, %v; want them accepted: %t", c.name, len(keys), err, c.want)
		}
	}
}
