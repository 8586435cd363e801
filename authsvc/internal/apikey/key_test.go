package apikey

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func kept() Key {
	return Key{
		ID: "key-1", Broker: "b", Created: now, Modified: now,
		Settings: Settings{
			Name: "n", Role: identity.Broker, Levels: "13", Limits: authapi.Limits{"write": {"1s": 5}},
			Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		},
		Secrets: []Secret{
			{Number: 2, Hash: "second", Created: now},
			{Number: 1, Hash: "first", Created: now, Until: now.Add(time.Hour)},
		},
	}
}

func TestAdmit(t *testing.T) {
	expire := func(in time.Duration) func(*Key, *Broker) {
		return func(k *Key, _ *Broker) { k.Settings.Expires = now.Add(in) }
	}
	for name, c := range map[string]struct {
		hash    string
		change  func(*Key, *Broker)
		at      time.Duration
		levels  string // levels that the key gives; "": the key is refused
		goodFor time.Duration
		state   string
	}{
		"the newest secret":           {"second", nil, 0, "13", 0, adminapi.Active},
		"an old secret within grace":  {"first", nil, time.Minute, "13", 59 * time.Minute, adminapi.Active},
		"an old secret after grace":   {"first", nil, time.Hour, "", 0, adminapi.Active},
		"an unknown secret":           {"third", nil, 0, "", 0, adminapi.Active},
		"no secret":                   {"", nil, 0, "", 0, adminapi.Active},
		"a key before its expiry":     {"second", expire(time.Second), 0, "13", time.Second, adminapi.Active},
		"an expiry before grace ends": {"first", expire(time.Second), 0, "13", time.Second, adminapi.Active},
		"an expiry after grace ends":  {"first", expire(2 * time.Hour), 0, "13", time.Hour, adminapi.Active},
		"a key at its expiry":         {"second", expire(0), 0, "", 0, adminapi.Expired},
		"a revoked key":               {"second", func(k *Key, _ *Broker) { k.Revoked = now }, 0, "", 0, adminapi.Revoked},
		"a key of a blocked broker":   {"second", func(_ *Key, b *Broker) { b.Blocked = true }, 0, "", 0, adminapi.Blocked},
		"a key for test assets": {
			"second", func(k *Key, _ *Broker) { k.Settings.Test = true }, 0, "13t", 0, adminapi.Active,
		},
		"a revoked and expired key of a blocked broker": {
			"second", func(k *Key, b *Broker) { k.Revoked, k.Settings.Expires, b.Blocked = now, now, true },
			0, "", 0, adminapi.Revoked,
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, b := kept(), Broker{Name: "b"}
			if c.change != nil {
				c.change(&k, &b)
			}
			got, ok := k.Admit(c.hash, b, now.Add(c.at))
			if ok != (c.levels != "") || got.Levels != c.levels || got.GoodFor != c.goodFor {
				t.Errorf("got %+v, %v; want levels %q for %v, %v", got, ok, c.levels, c.goodFor, c.levels != "")
			}
			if ok && (got.Broker != "b" || got.KeyID != "key-1" || got.Limits["write"]["1s"] != 5 ||
				!got.Allows(netip.MustParseAddr("192.0.2.9")) || got.Allows(netip.MustParseAddr("198.51.100.1"))) {
				t.Errorf("got %+v, want the id, broker, limits and addresses of %+v", got, k)
			}
			expect.Equal(t, k.State(b, now.Add(c.at)), c.state, "state")
		})
	}
}

func TestRotate(t *testing.T) {
	k := kept()
	rotated, err := k.Rotate("third", 30*time.Minute, now)
	expect.OK(t, err)
	s := rotated.Secrets
	got, want := fmt.Sprint(s[0].Number, s[1].Until.Sub(now), s[2].Until.Sub(now)), "3 30m0s 30m0s"
	expect.Equal(t, got, want, "the newest number and the graces")
	if !k.Secrets[0].Until.IsZero() || len(k.Secrets) != 2 {
		t.Errorf("the original key: got secrets %+v, want no change", k.Secrets)
	}
	if old := k.Secrets[1].Until; !old.Equal(now.Add(time.Hour)) {
		t.Errorf("the former secret of the original key: got end %v, want no change", old)
	}
	for range MaxSecrets - 3 {
		rotated, err = rotated.Rotate("more", time.Hour, now)
		expect.OK(t, err)
	}
	expect.FaultOf(t, fault.Conflict, "one secret too many")(rotated.Rotate("too many", time.Hour, now))
	later, err := rotated.Rotate("later", time.Hour, now.Add(30*time.Minute))
	if err != nil || len(later.Secrets) != MaxSecrets {
		t.Errorf("after the oldest secrets end: got %d secrets, %v; want %d", len(later.Secrets), err, MaxSecrets)
	}
	leaked, err := rotated.Rotate("without grace", 0, now)
	if err != nil || !slices.Equal(validAt(leaked, now), []int{MaxSecrets + 1}) {
		t.Errorf("without grace: got valid secrets %v, %v; want the newest, %d", validAt(leaked, now), err, MaxSecrets+1)
	}
	revoked, err := k.Revoke(now)
	expect.OK(t, err)
	_, again := revoked.Revoke(now)
	_, rotating := revoked.Rotate("x", 0, now)
	_, setting := revoked.Set(k.Settings, now)
	for _, err := range []error{again, rotating, setting} {
		if fault.KindOf(err) != fault.Conflict {
			t.Errorf("a revoked key: got %v, want a fault of kind Conflict", err)
		}
	}
	for _, grace := range []time.Duration{-1, MaxGrace + 1} {
		expect.FaultOf(t, fault.Invalid, "grace %v", grace)(k.Rotate("x", grace, now))
	}
}

// validAt returns the numbers of the secrets that a key admits at the given time.
func validAt(k Key, at time.Time) (numbers []int) {
	for _, s := range k.Secrets {
		if _, ok := k.Admit(s.Hash, Broker{Name: "b"}, at); ok {
			numbers = append(numbers, s.Number)
		}
	}
	return numbers
}

// TestAKeyIsLimitedByItsValidSecrets rotates a key whose oldest secret is still valid, although some newer secrets
// have ended. Earlier versions stored such keys. Only the valid secrets must count for MaxSecrets.
func TestAKeyIsLimitedByItsValidSecrets(t *testing.T) {
	k := kept()
	k.Secrets = []Secret{{Number: MaxSecrets, Hash: "5", Created: now}}
	for n := MaxSecrets - 1; n > 1; n-- {
		k.Secrets = append(k.Secrets, Secret{Number: n, Hash: fmt.Sprint(n), Created: now, Until: now})
	}
	k.Secrets = append(k.Secrets, Secret{Number: 1, Hash: "1", Created: now, Until: now.Add(MaxGrace)})
	for want := [][]int{{6, 5, 1}, {7, 6, 5, 1}, {8, 7, 6, 5, 1}}; len(want) > 0; want = want[1:] {
		var err error
		k, err = k.Rotate(fmt.Sprint(want[0][0]), time.Hour, now)
		expect.OK(t, err)
		if got := validAt(k, now); !slices.Equal(got, want[0]) || len(k.Secrets) != MaxSecrets {
			t.Errorf("got valid secrets %v of %d, want %v of %d", got, len(k.Secrets), want[0], MaxSecrets)
		}
	}
	_, err := k.Rotate("9", time.Minute, now)
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), now.Add(time.Hour).Format(time.RFC3339)) {
		t.Errorf("one secret too many: got %v, want a fault of kind Conflict with the first end, in an hour", err)
	}
	if k, err = k.Rotate("9", 0, now); err != nil || !slices.Equal(validAt(k, now), []int{9}) {
		t.Errorf("without grace: got valid secrets %v, %v; want the newest, 9", validAt(k, now), err)
	}
}

// TestNoFormerSecretOutlastsTheShortestGraceSince tries every sequence of five rotations. Each rotation has no grace, a
// very short, a short or the longest grace. The grace of a rotation limits all older secrets. So each older secret must
// end at the earliest of the ends that the rotations since then have set.
func TestNoFormerSecretOutlastsTheShortestGraceSince(t *testing.T) {
	graces := []time.Duration{0, 1, 90 * time.Second, MaxGrace}
	for order := range 1 << (2 * MaxSecrets) {
		k, at, ends, did := kept(), now, []time.Time{{}}, []time.Duration{}
		k.Secrets = k.Secrets[:1]
		for i := range MaxSecrets {
			grace := graces[order>>(2*i)&3]
			at, did = at.Add(time.Minute), append(did, grace)
			rotated, err := k.Rotate(fmt.Sprint(did), grace, at)
			if err != nil {
				continue // TestAKeyIsLimitedByItsValidSecrets tests this case
			}
			k = rotated
			for j := range ends {
				if end := at.Add(grace); ends[j].IsZero() || ends[j].After(end) {
					ends[j] = end
				}
			}
			ends = append(ends, time.Time{})
			for _, s := range k.Secrets {
				if want := ends[s.Number-kept().Secrets[0].Number]; !s.Until.Equal(want) {
					t.Fatalf("secret %d after rotations with %v: got end %v, want %v", s.Number, did, s.Until, want)
				}
			}
		}
	}
}

func TestKeysAndBrokersAreStoredAsTheyAre(t *testing.T) {
	k := kept()
	k.Settings.Expires, k.Revoked, k.Settings.Test = now.Add(time.Hour), now.Add(time.Minute), true
	text, err := k.Encode()
	expect.OK(t, err)
	got, err := DecodeKey(text)
	expect.OK(t, err)
	if diff := cmp.Diff(k, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("got the lines with +, want those with -:\n%s", diff)
	}
	b := Broker{"Бр <&>", "t", "c", true, 5, now, now, now}
	text, err = b.Encode()
	expect.OK(t, err)
	expect.Value(t, b, "")(DecodeBroker(text))
}

// TestAnUnreadableKeyIsAnError encodes times that JSON does not have, and decodes texts that are no JSON. A key
// or broker with empty fields instead of an error could have rights that it should not have.
func TestAnUnreadableKeyIsAnError(t *testing.T) {
	k, b := kept(), Broker{Created: now.AddDate(10_000, 0, 0)}
	k.Settings.Expires = now.AddDate(10_000, 0, 0)
	for name, f := range map[string]func() error{
		"encode a key":    func() error { _, err := k.Encode(); return err },
		"encode a broker": func() error { _, err := b.Encode(); return err },
		"decode a key":    func() error { _, err := DecodeKey([]byte(`{"id":"k","role":"operator"`)); return err },
		"decode a broker": func() error { _, err := DecodeBroker([]byte(`{"name":"b"`)); return err },
	} {
		expect.Fails(t, f(), "%s", name)
	}
}

// TestAKeyIsShownWithoutItsHashes compares the form of a key in the admin API and the audit log with its settings.
func TestAKeyIsShownWithoutItsHashes(t *testing.T) {
	k := kept()
	k.Settings.Expires, k.Revoked, k.Settings.Test = now.Add(time.Hour), now.Add(time.Minute), true
	until := k.Secrets[1].Until
	want := adminapi.Key{
		ID: "key-1", Broker: "b", Created: now, Modified: now, Revoked: &k.Revoked,
		KeySettings: adminapi.KeySettings{
			Name: "n", Role: "broker", Levels: "13", Test: true, Expires: &k.Settings.Expires, Limits: k.Settings.Limits,
			Allow: []string{"192.0.2.0/24"},
		},
		Secrets: []adminapi.Secret{
			{Number: 2, Fingerprint: k.Secrets[0].Fingerprint(), Created: now},
			{Number: 1, Fingerprint: k.Secrets[1].Fingerprint(), Created: now, Until: &until},
		},
	}
	expect.NoDiff(t, cmp.Diff(want, k.View()), "the shown key")
}

func TestCheckTellsEveryFault(t *testing.T) {
	limits := authapi.Limits{"dance": {"1ms": 0}}
	k := Key{Settings: Settings{Name: strings.Repeat("я", maxText+1), Role: "king", Levels: "5", Limits: limits}}
	err := k.Check()
	for _, says := range []string{
		"body/name", "body/role", "body/levels", `"dance"`, `"1ms"`, "A limit must be between 1",
	} {
		expect.Says(t, err, says, "unknown values")
	}
	k = kept()
	k.Settings.Levels, k.Settings.Allow = "01234", slices.Repeat(k.Settings.Allow, maxAllow)
	windows := map[string]int64{}
	for n := range maxWindows {
		windows[fmt.Sprint(n+1, "s")] = 1
	}
	k.Settings.Limits = authapi.Limits{"list": windows, "read": windows}
	expect.Err(t, k.Check(), nil, "the largest settings")
	k.Settings.Levels, k.Settings.Allow, windows["1m"] = "121", append(k.Settings.Allow, k.Settings.Allow[0]), 1
	k.Settings.Limits["write"] = map[string]int64{strings.Repeat("0", maxText) + "1s": 1}
	err = k.Check()
	for _, says := range []string{"each once", "At most 100 addresses", "At most 8 limits", "no length of a window"} {
		expect.Says(t, err, says, "repeated levels, lists too long")
	}
	expect.Says(t, (Broker{Name: "b", Title: "a\xffb"}).Check(), "body/title", "a title that is not UTF-8")
	err = Broker{Name: "a/b", Title: "line\nend"}.Check()
	if err == nil || !strings.Contains(err.Error(), "slash") || !strings.Contains(err.Error(), "body/title") {
		t.Errorf("a name with a slash, a title with a newline: got %v, want an error about both", err)
	}
}
