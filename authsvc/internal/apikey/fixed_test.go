package apikey

import (
	"fmt"
	"strings"
	"testing"

	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

func TestSandboxKeys(t *testing.T) {
	keys := Sandbox()
	for key, want := range map[string]identity.Identity{
		"broker":        {Broker: "broker", KeyID: "sandbox-broker", Role: identity.Broker, Levels: "1234"},
		"broker3":       {Broker: "broker3", KeyID: "sandbox-broker3", Role: identity.Broker, Levels: "3"},
		"broker3t":      {Broker: "broker3t", KeyID: "sandbox-broker3t", Role: identity.Broker, Levels: "3t"},
		"concierge":     {Broker: "concierge", KeyID: "sandbox-concierge", Role: identity.Concierge},
		"administrator": {Broker: "administrator", KeyID: "sandbox-administrator", Role: identity.Administrator},
	} {
		if got, known := keys[authapi.Hash(key)]; !known || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", key, got, known, want)
		}
	}
	for _, hash := range []string{"", "broker", authapi.Hash(""), authapi.Hash("broker5"), authapi.Hash("Broker")} {
		if got, known := keys[hash]; known {
			t.Errorf("%q: got the key of %+v, want no key", hash, got)
		}
	}
}

func TestNewKeysAreUniqueAndEndInAChecksum(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		key := New()
		if seen[key] || !strings.HasPrefix(key, "ark_") || len(key) != 36 {
			t.Fatalf("got %q, want a new key of 36 characters that starts with ark_", key)
		}
		seen[key] = true
		expect.Equal(t, key[30:], checksum(key[:30]), "%q, checksum", key)
	}
}

func TestReadKeys(t *testing.T) {
	hash := authapi.Hash("k")
	const line = "- {id: k1, broker: Брокер, role: broker, levels: \"13\", sha256: %s}\n"
	keys, err := read(strings.NewReader(fmt.Sprintf(line, strings.ToUpper(hash))))
	expect.OK(t, err)
	want := identity.Identity{Broker: "Брокер", KeyID: "k1", Role: identity.Broker, Levels: "13"}
	if got, known := keys[hash]; !known || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if keys, err := read(strings.NewReader("")); err != nil || len(keys) != 0 {
		t.Errorf("an empty file: got %v, %v; want no keys", keys, err)
	}
}

func TestNamesOfKeysStayAsWritten(t *testing.T) {
	sum := strings.Repeat("12", 32)
	keys, err := read(strings.NewReader("- {id: 0123, broker: 1.50, role: broker, levels: 01, sha256: " + sum + "}\n"))
	want := identity.Identity{Broker: "1.50", KeyID: "0123", Role: identity.Broker, Levels: "01"}
	if got := keys[sum]; err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestReadKeysTellsEveryFault(t *testing.T) {
	hash := authapi.Hash("k")
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"malformed YAML":   {"{", []string{"1:"}},
		"an unknown field": {"- {id: a, colour: blue}", []string{"colour"}},
		"faults in every field": {
			"- {role: king, levels: x, sha256: abc}\n- {}",
			[]string{"key 1: id", "broker is missing", "king", "levels", "sha256", "key 2"},
		},
		"malformed ids": {
			fmt.Sprintf("- {id: \"{x}\", broker: b, role: broker, sha256: %s}\n- {id: %s}", hash, strings.Repeat("x", 201)),
			[]string{"key 1: the id of a key must have", "key 2: the id of a key must have"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(strings.NewReader(c.text))
			for _, says := range c.says {
				expect.Says(t, err, says, "")
			}
		})
	}
}
