package apikey

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// found is a store for tests. It finds the same key for each secret, or it fails.
type found struct {
	key Key
	err error
}

func (f found) FindSecret(context.Context, string) (Found, error) {
	return Found{Key: f.key}, f.err
}

// TestOnlyAKeyThatTheStoreHasOpensTheRegistry verifies secrets against several stores. If the store fails, the result
// must be its error and not a refusal.
func TestOnlyAKeyThatTheStoreHasOpensTheRegistry(t *testing.T) {
	operator := kept()
	operator.Broker, operator.Settings.Role = "", Operator
	fixed := Fixed{"fixed": identity.Identity{Broker: "f", KeyID: "f1", Role: identity.Broker}}
	down := errors.New("down")
	for _, c := range []struct {
		name, hash string
		store      found
		want       string // broker in the answer; "": none
		err        error  // the error of the store; nil: no error, or the fault of Refusal
	}{
		{"a stored key", "second", found{key: kept()}, "b", nil},
		{"a fixed key, while the store is down", "fixed", found{err: down}, "f", nil},
		{"an unknown key", "third", found{err: ErrNotFound}, "", nil},
		{"no key", "", found{err: ErrNotFound}, "", nil},
		{"a key of the admin API", "second", found{key: operator}, "", nil},
		{"a store that is down", "second", found{err: down}, "", down},
	} {
		got, err := NewVerifier(fixed, c.store, func() time.Time { return now }).Verify(t.Context(), c.hash)
		if got.Broker != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got the broker %q, %v; want %q", c.name, got.Broker, err, c.want)
		}
		switch refused := err != nil && fault.KindOf(err) == fault.Unauthorized; {
		case c.err != nil && (refused || !errors.Is(err, c.err)):
			t.Errorf("%s: got %v, want %v, which is no refusal", c.name, err, c.err)
		case c.err == nil && refused != (c.want == ""):
			t.Errorf("%s: got %v, want a refusal: %t", c.name, err, c.want == "")
		}
	}
}

// TestAKeyHasTheSettingsOfItsRole checks keys that mix settings of a broker's key with settings of a key of the admin
// API. Each wrong mix must be a fault.
func TestAKeyHasTheSettingsOfItsRole(t *testing.T) {
	const needs, none = "body/broker: A key with this role needs a broker.", "body/broker: A key of the admin API has no broker."
	const mixed = "body/role: A key of the admin API has no levels, no test mode and no limits."
	for _, c := range []struct {
		name   string
		broker string
		s      Settings
		want   string // text of the fault; "": no fault
	}{
		{"a broker's key", "b", Settings{Role: identity.Broker, Levels: "1"}, ""},
		{"a broker's key without its broker", "", Settings{Role: identity.Broker}, needs},
		{"an operator's key", "", Settings{Role: Operator}, ""},
		{"an auditor's key of a broker", "b", Settings{Role: Auditor}, none},
		{"an operator's key with levels", "", Settings{Role: Operator, Levels: "1"}, mixed},
		{"an operator's key for tests", "", Settings{Role: Operator, Test: true}, mixed},
		{"an operator's key with limits", "", Settings{Role: Operator, Limits: authapi.Limits{"read": {"1s": 1}}}, mixed},
		{"an unknown role", "b", Settings{Role: "king"},
			"body/role: The role must be one of broker, concierge, administrator, operator, auditor."},
		{"a window of the longest text", "b", Settings{Role: identity.Broker,
			Limits: authapi.Limits{"read": {strings.Repeat("0", maxText-2) + "1s": 1}}}, ""},
	} {
		c.s.Name = "n"
		err := Key{ID: "k", Broker: c.broker, Settings: c.s}.Check()
		expect.Equal(t, text(err), c.want, "%s", c.name)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestAKeyStaysOnItsSideOfTheAdminAPI changes the roles of keys. A change to a role on the other side (admin API or
// public API), or to an unknown role, must have exactly one fault.
func TestAKeyStaysOnItsSideOfTheAdminAPI(t *testing.T) {
	const other = "body/role: A key of a broker cannot become a key of the admin API, nor the reverse. Create another key."
	const unknown = "body/role: The role must be one of broker, concierge, administrator, operator, auditor."
	operator := Key{ID: "o", Settings: Settings{Name: "n", Role: Operator}}
	for _, c := range []struct {
		name string
		key  Key
		to   identity.Role
		want string // text of the fault; "": no fault
	}{
		{"a broker's key to a concierge's", kept(), identity.Concierge, ""},
		{"a broker's key to an operator's", kept(), Operator, other},
		{"a broker's key to an auditor's", kept(), Auditor, other},
		{"a broker's key to an unknown role", kept(), "king", unknown},
		{"an operator's key to an auditor's", operator, Auditor, ""},
		{"an operator's key to a broker's", operator, identity.Broker, other},
		{"an operator's key to an unknown role", operator, "king", unknown},
	} {
		s := c.key.Settings
		s.Role = c.to
		_, err := c.key.Set(s, now)
		expect.Equal(t, text(err), c.want, "%s", c.name)
	}
}

// TestLimitsAreRaisedUpToATime admits keys of brokers whose limits are raised, never were raised, or are no longer
// raised. Only in the first case may the key get raised limits. The test also checks that a secret with the longest
// grace period is still valid, and that a secret with a longer one is not.
func TestLimitsAreRaisedUpToATime(t *testing.T) {
	for _, c := range []struct {
		raise int
		left  time.Duration
		want  int
	}{{3, time.Hour, 3}, {3, 0, 0}, {3, -time.Second, 0}, {1, time.Hour, 0}, {0, time.Hour, 0},
		{3, maxRaisedTime + clockError, 3}, {3, maxRaisedTime + 24*time.Hour, 0}, {3, 10 * year, 0}, {3, -10 * year, 0}} {
		got, ok := kept().Admit("second", Broker{Raise: int64(c.raise), RaisedUntil: now.Add(c.left)}, now)
		if !ok || int(got.Raise) != c.want || (got.RaisedFor == c.left) != (c.want > 0) && c.left != 0 {
			t.Errorf("raised %d times for %v: got %d times for %v, %t; want %d",
				c.raise, c.left, got.Raise, got.RaisedFor, ok, c.want)
		}
	}
	longest := Secret{Until: now.Add(MaxGrace + clockError)}
	if longest.over(now) || !longest.over(now.Add(-time.Nanosecond)) {
		t.Error("got that the longest grace is over, or that a longer one is not")
	}
}

// TestAKeysFileIsRead reads keys files and checks their entries. A hash must have 64 hexadecimal digits and
// nothing else.
func TestAKeysFileIsRead(t *testing.T) {
	hash := authapi.Hash("k")
	path := filepath.Join(t.TempDir(), "keys.yaml")
	expect.ErrOf(t, os.ErrNotExist, "no file")(ReadFile(path))
	holder := identity.Identity{KeyID: "a", Broker: "b", Role: identity.Broker, Levels: "1"}
	for _, c := range []struct {
		hash string
		want bool
	}{{hash, true}, {hash + "zz", false}, {hash[:62], false}, {"", false}} {
		if err := CheckEntry(c.hash, holder); (err == nil) != c.want {
			t.Errorf("an entry with the hash %q: got %v, want it accepted: %t", c.hash, err, c.want)
		}
		entry := "- {id: a, broker: b, role: broker, levels: '1', sha256: '" + c.hash + "'}\n"
		expect.OK(t, os.WriteFile(path, []byte(entry), 0o600))
		var want Fixed
		if c.want {
			want = Fixed{hash: holder}
		}
		got, err := ReadFile(path)
		if diff := cmp.Diff(want, got); (err == nil) != c.want || diff != "" {
			t.Errorf("a file with the hash %q: got error %v; the keys differ (-want +got):\n%s", c.hash, err, diff)
		}
	}
	holder.Levels = "11"
	expect.Says(t, CheckEntry(hash, holder), "each level once", "an entry with a level twice")
}

// TestTheOldestDayOfAReportCounts reports the use of a key on the oldest and on the newest day that a report may
// name. The use must be counted on that day.
func TestTheOldestDayOfAReportCounts(t *testing.T) {
	for _, days := range []int{-UsageDays, 1} {
		to := &recorded{}
		day := now.AddDate(0, 0, days).Format(time.DateOnly)
		report := authapi.ReportUsageRequest{Counts: []authapi.Count{{KeyID: "k", Day: day, Class: "read", Requests: 1}}}
		if err := NewMeter(to, func() time.Time { return now }).Report(t.Context(), report); err != nil || to.counts[0].Day != day {
			t.Errorf("got the day %s, %v; want %s", to.counts[0].Day, err, day)
		}
	}
}
