package ratelimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ulule/limiter/v3"
)

// Class is what a request is for.
type Class string

// The classes of requests.
const (
	List   Class = "list"   // pages of the feed
	Read   Class = "read"   // single assets, and all else that changes nothing
	Write  Class = "write"  // all that changes something
	Failed Class = "failed" // an API key that is none: counts beside what it was sent with
)

// Bytes stands among the costs of a policy for each byte of a write's body. Such
// a policy counts bytes: a write costs so many of them before its body, for what
// is stored beside it, and one for each byte of it.
const Bytes Class = "bytes"

// By is whose requests a policy counts together.
type By string

// What policies count by. Who has a valid key is counted by key and tenant,
// all others by address.
const (
	ByAddress By = "address" // an IPv4 address, the /64 of an IPv6 one
	ByKey     By = "key"     // an API key
	ByTenant  By = "tenant"  // a broker, with all its keys
)

// Policy is one row of the table: what the classes of requests cost, or a write
// and the bytes of its body, and how much may be used in any window of each length.
type Policy struct {
	Name    string           `json:"name"`
	By      By               `json:"by"`
	Costs   map[Class]int64  `json:"costs"`
	Windows map[string]int64 `json:"windows"` // length ("1s", "1m") to limit
}

// Table is all policies. One that names a class of a request that is made by
// whom it counts applies; a request must have what it costs under each.
type Table []Policy

// What a tenant may write in production and in a sandbox: writeBytes for each
// write, which the smallest one takes on a disk, and its body.
const (
	writeBytes   = 4 << 10
	bytesAMinute = 100 << 20
	bytesADay    = 1 << 30
	bytesPolicy  = "tenant-bytes"
)

// longestWindow bounds what is remembered of a client.
const longestWindow = 24 * time.Hour

// Production returns the policies of a registry at work.
func Production() Table {
	return Table{
		{"address-list", ByAddress, map[Class]int64{List: 1}, map[string]int64{"1s": 100, "1m": 3_000}},
		{"address-read", ByAddress, map[Class]int64{Read: 1}, map[string]int64{"1s": 1_000, "1m": 30_000}},
		{"address-write", ByAddress, map[Class]int64{Write: 1}, map[string]int64{"1s": 50, "1m": 600}},
		{"address-failed", ByAddress, map[Class]int64{Failed: 1}, map[string]int64{"1m": 60, "1h": 600}},
		{"key-list", ByKey, map[Class]int64{List: 1}, map[string]int64{"1s": 100, "1m": 3_000}},
		{"key-read", ByKey, map[Class]int64{Read: 1}, map[string]int64{"1s": 1_000, "1m": 30_000}},
		{"key-write", ByKey, map[Class]int64{Write: 1}, map[string]int64{"1s": 200, "1m": 6_000}},
		{"tenant", ByTenant, map[Class]int64{List: 5, Read: 1, Write: 5}, map[string]int64{"1s": 2_000, "1m": 60_000}},
		{bytesPolicy, ByTenant, map[Class]int64{Write: writeBytes, Bytes: 1}, map[string]int64{"1m": bytesAMinute, "24h": bytesADay}},
	}
}

// Sandbox returns the policies of a registry to try things out with.
func Sandbox() Table {
	return Table{
		{"address-list", ByAddress, map[Class]int64{List: 1}, map[string]int64{"1s": 50, "1m": 1_000}},
		{"address-read", ByAddress, map[Class]int64{Read: 1}, map[string]int64{"1s": 200, "1m": 5_000}},
		{"address-write", ByAddress, map[Class]int64{Write: 1}, map[string]int64{"1s": 20, "1m": 300}},
		{"address-failed", ByAddress, map[Class]int64{Failed: 1}, map[string]int64{"1m": 60, "1h": 600}},
		{"key-list", ByKey, map[Class]int64{List: 1}, map[string]int64{"1s": 50, "1m": 1_000}},
		{"key-read", ByKey, map[Class]int64{Read: 1}, map[string]int64{"1s": 200, "1m": 5_000}},
		{"key-write", ByKey, map[Class]int64{Write: 1}, map[string]int64{"1s": 50, "1m": 1_000}},
		{"tenant", ByTenant, map[Class]int64{List: 5, Read: 1, Write: 5}, map[string]int64{"1s": 400, "1m": 10_000}},
		{bytesPolicy, ByTenant, map[Class]int64{Write: writeBytes, Bytes: 1}, map[string]int64{"1m": bytesAMinute, "24h": bytesADay}},
	}
}

// UnmarshalJSON takes a list of policies, or the name of a table that there is:
// production or sandbox.
func (t *Table) UnmarshalJSON(text []byte) error {
	switch name := strings.Trim(string(text), `" `); {
	case name == "production":
		*t = Production()
		return nil
	case name == "sandbox":
		*t = Sandbox()
		return nil
	case !strings.HasPrefix(name, "["):
		return fmt.Errorf("there are no policies named %.40q: they are production or sandbox, or a list of your own", name)
	}
	type rows Table // without this method
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode((*rows)(t)); err != nil {
		return fmt.Errorf("each policy has a name, by, costs and windows: %w", err)
	}
	return nil
}

// PerSecond returns the table with a policy of a class at so many requests a
// second instead of the one of that name, if there is any; 0 is no limit.
func (t Table) PerSecond(by By, class Class, limit int64) Table {
	p := Policy{string(by) + "-" + string(class), by, map[Class]int64{class: 1}, map[string]int64{"1s": limit}}
	t = slices.Clone(t)
	at := slices.IndexFunc(t, func(old Policy) bool { return old.Name == p.Name })
	switch {
	case limit == 0 && at >= 0:
		return slices.Delete(t, at, at+1)
	case limit == 0:
		return t
	case at >= 0:
		t[at] = p
		return t
	}
	return append(t, p)
}

// Validate reports everything that is wrong with the table, where a write's body
// may have up to maxBody bytes.
func (t Table) Validate(maxBody int64) error {
	var faults []error
	names := map[string]bool{}
	for _, p := range t {
		if names[p.Name] {
			faults = append(faults, fmt.Errorf("two policies are named %q", p.Name))
		}
		names[p.Name] = true
		faults = append(faults, p.validate(maxBody))
	}
	return errors.Join(faults...)
}

// policyName is what may stand in a header and in a key of a store as it is.
var policyName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

func (p Policy) validate(maxBody int64) error {
	var faults []error
	fail := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("policy %q: "+format, append([]any{p.Name}, args...)...))
	}
	if !policyName.MatchString(p.Name) {
		fail("the name must be small letters, digits and hyphens")
	}
	if !slices.Contains([]By{ByAddress, ByKey, ByTenant}, p.By) {
		fail("it must count by address, key or tenant, not by %q", p.By)
	}
	if len(p.Costs) == 0 || len(p.Windows) == 0 {
		fail("it has no costs or no windows")
	}
	for _, class := range slices.Sorted(maps.Keys(p.Costs)) {
		if !slices.Contains([]Class{List, Read, Write, Failed, Bytes}, class) {
			fail("there is no class %q", class)
		}
		if class == Failed && p.By != ByAddress {
			fail("failed requests have an address and nothing else to count by")
		}
		if p.Costs[class] < 1 {
			fail("the cost of %s must be above nought", class)
		}
	}
	if p.inBytes() && (p.By == ByAddress || len(p.Costs) != 2 || p.Costs[Write] == 0 || p.Costs[Bytes] != 1) {
		fail("one that counts bytes must do so by key or tenant, at 1 for bytes, a cost of write and no other")
	}
	dearest := p.dearest(maxBody)
	for _, length := range slices.Sorted(maps.Keys(p.Windows)) {
		period, err := time.ParseDuration(length)
		if err != nil || period < time.Second || period > longestWindow || period%time.Second != 0 {
			fail("%q is no length of a window: whole seconds, up to %v", length, longestWindow)
		}
		// What gateways keep apart is nothing to a request that costs more.
		if limit := p.Windows[length]; limit < 1 || limit-limit/keptPart < dearest || limit > 1<<40 {
			fail("the limit %d of %s must be above nought and, an eighth taken off, no less than what a request costs, up to %d", limit, length, dearest)
		}
	}
	return errors.Join(faults...)
}

// inBytes tells whether the policy counts bytes, not requests.
func (p Policy) inBytes() bool { return p.Costs[Bytes] > 0 }

// dearest is what a request costs at most.
func (p Policy) dearest(maxBody int64) int64 {
	if p.inBytes() {
		return p.Costs[Write] + maxBody
	}
	dearest := int64(0)
	for _, cost := range p.Costs {
		dearest = max(dearest, cost)
	}
	return dearest
}

// rates are the windows as the stores want them, the shortest first. The name
// of each is what clients are told.
func (p Policy) rates() []limiter.Rate {
	var rates []limiter.Rate
	for length, limit := range p.Windows {
		period, _ := time.ParseDuration(length) // validated
		rates = append(rates, limiter.Rate{Formatted: p.Name + "-" + length, Period: period, Limit: limit})
	}
	slices.SortFunc(rates, func(a, b limiter.Rate) int { return int(a.Period - b.Period) })
	return rates
}
