package ratelimit

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

func TestTheTablesThereAreAreValid(t *testing.T) {
	for _, c := range []struct {
		name  string
		table Table
	}{{"production", Production()}, {"sandbox", Sandbox()}} {
		expect.Err(t, c.table.Validate(1<<20), nil, "%s", c.name)
		var named Table
		if err := named.UnmarshalJSON([]byte(c.name)); err != nil || !reflect.DeepEqual(named, c.table) {
			t.Errorf("%s by name: got %+v, %v; want %+v", c.name, named, err, c.table)
		}
	}
}

func TestValidateTellsWhatIsWrongWithATable(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"a valid table", `[{"name": "a", "by": "key", "costs": {"read": 1}, "windows": {"1s": 1}}]`, ""},
		{"an empty table", `[]`, ""},
		{"an unknown table's name", `staging`, "no policies named"},
		{"an unknown field", `[{"name": "a", "for": "key"}]`, "for"},
		{"two policies of one name", `[{"name": "a", "by": "key", "costs": {"read": 1}, "windows": {"1s": 1}}, ` +
			`{"name": "a", "by": "key", "costs": {"read": 1}, "windows": {"1s": 1}}]`, "two policies"},
		{"a name with a space",
			`[{"name": "a b", "by": "key", "costs": {"read": 1}, "windows": {"1s": 1}}]`, "small letters"},
		{"no by", `[{"name": "a", "costs": {"read": 1}, "windows": {"1s": 1}}]`, "count by"},
		{"no costs", `[{"name": "a", "by": "key", "windows": {"1s": 1}}]`, "no costs"},
		{"no windows", `[{"name": "a", "by": "key", "costs": {"read": 1}}]`, "no windows"},
		{"an unknown class", `[{"name": "a", "by": "key", "costs": {"look": 1}, "windows": {"1s": 1}}]`, "look"},
		{"a cost of 0", `[{"name": "a", "by": "key", "costs": {"read": 0}, "windows": {"1s": 1}}]`, "at least 1"},
		{"a cost above the limit", `[{"name": "a", "by": "key", "costs": {"read": 5}, "windows": {"1s": 4}}]`,
			"no less than what a request costs"},
		{"a cost above seven eighths of the limit",
			`[{"name": "a", "by": "key", "costs": {"read": 16}, "windows": {"1s": 16}}]`,
			"no less than what a request costs"},
		{"a failed cost by key", `[{"name": "a", "by": "key", "costs": {"failed": 1}, "windows": {"1s": 1}}]`, "failed"},
		{"valid costs of bytes",
			`[{"name": "a", "by": "tenant", "costs": {"write": 4, "bytes": 1}, "windows": {"1m": 2000000}}]`, ""},
		{"bytes without write",
			`[{"name": "a", "by": "tenant", "costs": {"bytes": 1}, "windows": {"1m": 2000000}}]`, "a cost of write"},
		{"a cost of 2 for bytes",
			`[{"name": "a", "by": "tenant", "costs": {"write": 4, "bytes": 2}, "windows": {"1m": 3000000}}]`,
			"at 1 for bytes"},
		{"bytes with read",
			`[{"name": "a", "by": "tenant", "costs": {"read": 1, "write": 4, "bytes": 1}, "windows": {"1m": 2000000}}]`,
			"no other"},
		{"bytes by address",
			`[{"name": "a", "by": "address", "costs": {"write": 4, "bytes": 1}, "windows": {"1m": 2000000}}]`,
			"by key or tenant"},
		{"bytes of files", `[{"name": "a", "by": "key", "costs": {"file-bytes": 1}, "windows": {"1h": 200000000}}]`, ""},
		{"bytes of files and writes",
			`[{"name": "a", "by": "tenant", "costs": {"write": 4, "file-bytes": 1}, "windows": {"1h": 200000000}}]`,
			"no other cost"},
		{"a cost of 2 for bytes of files",
			`[{"name": "a", "by": "tenant", "costs": {"file-bytes": 2}, "windows": {"1h": 400000000}}]`, "at 1 for file-bytes"},
		{"bytes with read instead of write",
			`[{"name": "a", "by": "tenant", "costs": {"read": 1, "bytes": 1}, "windows": {"1m": 2000000}}]`,
			"a cost of write"},
		{"bytes of files by address",
			`[{"name": "a", "by": "address", "costs": {"file-bytes": 1}, "windows": {"1h": 200000000}}]`, "by key or tenant"},
		{"a limit below the largest file",
			`[{"name": "a", "by": "tenant", "costs": {"file-bytes": 1}, "windows": {"1h": 100000000}}]`, "up to 105906176"},
		{"a limit below the largest body",
			`[{"name": "a", "by": "tenant", "costs": {"write": 4, "bytes": 1}, "windows": {"1m": 1100000}}]`,
			"up to 1048580"},
		{"a window of half a second", `[{"name": "a", "by": "key", "costs": {"read": 1}, "windows": {"500ms": 1}}]`,
			"whole seconds"},
		{"a window of a second and a half", `[{"name": "a", "by": "key", "costs": {"read": 1}, "windows": {"1500ms": 1}}]`,
			"whole seconds"},
		{"a window of no length", `[{"name": "a", "by": "key", "costs": {"read": 1}, "windows": {"0s": 1}}]`, "0s"},
		{"a window of negative length", `[{"name": "a", "by": "key", "costs": {"read": 1}, "windows": {"-1s": 1}}]`, "-1s"},
		{"a malformed window", `[{"name": "a", "by": "key", "costs": {"read": 1}, "windows": {"hour": 1}}]`, "hour"},
		{"a window of two days", `[{"name": "a", "by": "key", "costs": {"read": 1}, "windows": {"48h": 1}}]`, "48h"},
		{"a negative limit", `[{"name": "a", "by": "key", "costs": {"read": 1}, "windows": {"1s": -1}}]`, "limit -1"},
		{"the highest limit", `[{"name": "a", "by": "key", "costs": {"read": 1}, "windows": {"1s": 1099511627776}}]`, ""},
		{"a higher limit", `[{"name": "a", "by": "key", "costs": {"read": 1}, "windows": {"1s": 1099511627777}}]`,
			"limit 1099511627777"},
		{"a limit of 0 without costs", `[{"name": "a", "by": "key", "windows": {"1s": 0}}]`, "limit 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var table Table
			err := table.UnmarshalJSON([]byte(c.text))
			if err == nil {
				err = table.Validate(1 << 20)
			}
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q in it, or no error if that is empty", err, c.says)
			}
		})
	}
}

// TestANameMayBeANumber reads names that look like numbers from a YAML file.
func TestANameMayBeANumber(t *testing.T) {
	for written, want := range map[string]string{`15`: "15", `-1`: "-1", `"0123"`: "0123", `"a"`: "a"} {
		var table Table
		const rest = `, "by": "key", "costs": {"read": 2}, "windows": {"1s": 3}}]`
		err := table.UnmarshalJSON([]byte(`[{"name": ` + written + rest))
		wanted := Table{{want, ByKey, map[Class]int64{routes.Read: 2}, map[string]int64{"1s": 3}}}
		if err != nil || !reflect.DeepEqual(table, wanted) {
			t.Errorf("%s: got %+v, %v; want %+v", written, table, err, wanted)
		}
	}
	for _, written := range []string{`true`, `["a"]`, `{}`} {
		expect.Fails(t, new(Table).UnmarshalJSON([]byte(`[{"name": `+written+`}]`)), "%s", written)
	}
}

func TestPerSecondReplacesAPolicy(t *testing.T) {
	table := Production()
	got := table.PerSecond(ByKey, routes.Read, 5).PerSecond(ByAddress, routes.List, 0).
		PerSecond(ByTenant, routes.Read, 7).PerSecond(ByTenant, routes.List, 0)
	rates := map[string]int64{}
	for _, p := range got {
		rates[p.Name] = p.Windows["1s"]
	}
	if _, there := rates["address-list"]; there || rates["key-read"] != 5 || rates["tenant-read"] != 7 ||
		rates["key-write"] != 200 || len(got) != len(table) {
		t.Errorf("got %v; want key-read 5, tenant-read 7, key-write 200, no address-list, and %d policies",
			rates, len(table))
	}
	if first := table.PerSecond(ByAddress, routes.List, 3); len(first) != len(table) || first[0].Windows["1s"] != 3 {
		t.Errorf("the first policy: got %+v first of %d, want 3 requests a second first of %d", first[0], len(first),
			len(table))
	}
	if !reflect.DeepEqual(table, Production()) {
		t.Errorf("got the receiver changed to %v, want it unchanged", table)
	}
}

func TestATableReadsAsItWasWritten(t *testing.T) {
	text, err := json.Marshal(Production())
	expect.OK(t, err)
	var back Table
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, Production()) {
		t.Errorf("got %+v, %v from %s; want %+v", back, err, text, Production())
	}
}
