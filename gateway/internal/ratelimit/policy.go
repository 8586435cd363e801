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

	"asset-registry/shared/errs"
	"asset-registry/shared/routes"
)

// Class is something for which a policy sets a cost: a class of requests (package routes), Failed, Bytes or
// FileBytes.
type Class = routes.Class

// Classes of costs that are not classes of requests.
const (
	// Failed is a wrong API key. It counts in addition to the request that has the key.
	Failed Class = "failed"
	// Bytes is one byte of a write's body. A policy that sets this cost counts bytes, not requests. A write then
	// costs its body's bytes and the cost of class Write, which stands for what the write stores beyond its body.
	Bytes Class = "bytes"
	// FileBytes is one byte of an uploaded file. The upload also has the cost of class Write.
	FileBytes Class = "file-bytes"
)

// By says which requests a policy counts together.
type By string

// The values of By. A request with a valid key counts for its key and its tenant, any other request for its
// address.
const (
	ByAddress By = "address" // an IPv4 address, or the /64 of an IPv6 address
	ByKey     By = "key"     // an API key
	ByTenant  By = "tenant"  // all keys of a broker
)

// Policy limits how much a client may use in any window of time.
type Policy struct {
	Name    string           `json:"name"`
	By      By               `json:"by"`
	Costs   map[Class]int64  `json:"costs"`   // cost of each class; a class that is missing is not counted
	Windows map[string]int64 `json:"windows"` // maps the length of a window ("1s", "1m") to its limit
}

// Table is a set of policies. A request must be within the limits of every policy that counts it.
type Table []Policy

// UnmarshalJSON reads a list of policies, or the name of a built-in table: production or sandbox.
func (t *Table) UnmarshalJSON(text []byte) error {
	switch name := strings.Trim(string(text), `" `); {
	case name == "production":
		*t = Production()
		return nil
	case name == "sandbox":
		*t = Sandbox()
		return nil
	case !strings.HasPrefix(name, "["):
		return fmt.Errorf("there are no policies named %.40q: use production, sandbox, or a list of policies", name)
	}
	var rows []struct {
		Policy
		Name asWritten `json:"name"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rows); err != nil {
		return fmt.Errorf("each policy has a name, by, costs and windows: %w", err)
	}
	*t = make(Table, len(rows))
	for i, row := range rows {
		(*t)[i] = row.Policy
		(*t)[i].Name = string(row.Name)
	}
	return nil
}

// asWritten is a text that may be written without quotes in a file, even if it looks like a number.
type asWritten string

func (a *asWritten) UnmarshalJSON(text []byte) error {
	var number json.Number
	if json.Unmarshal(text, &number) == nil {
		*a = asWritten(number)
		return nil
	}
	return json.Unmarshal(text, (*string)(a))
}

// PerSecond returns a copy of the table in which a policy permits up to `limit` requests of one class a second. The
// policy has a name such as "key-read". It replaces a policy with the same name. If limit is 0, the copy has no
// policy with this name.
func (t Table) PerSecond(by By, class Class, limit int64) Table {
	p := Policy{
		Name: string(by) + "-" + string(class), By: by,
		Costs: map[Class]int64{class: 1}, Windows: map[string]int64{"1s": limit},
	}
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

// Validate returns every fault of the table. The argument maxBody is the maximum number of bytes of a request body.
func (t Table) Validate(maxBody int64) error {
	var faults []error
	names := map[string]bool{}
	for _, p := range t {
		faults = append(faults, errs.If(names[p.Name], "two policies are named %q", p.Name))
		names[p.Name] = true
		for _, fault := range p.faults(maxBody) {
			faults = append(faults, errs.In(fault, "policy %q", p.Name))
		}
	}
	return errors.Join(faults...)
}

// policyName matches names that need no escaping in headers and in keys of stores.
var policyName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

func (p Policy) faults(maxBody int64) []error {
	return append(append([]error{
		errs.If(!policyName.MatchString(p.Name), "the name must have 1 to 40 small letters, digits and hyphens"),
		errs.If(!slices.Contains([]By{ByAddress, ByKey, ByTenant}, p.By),
			"it must count by address, key or tenant, not by %q", p.By),
		errs.If(len(p.Costs) == 0 || len(p.Windows) == 0, "it has no costs or no windows"),
	}, p.costFaults()...), p.windowFaults(maxBody)...)
}

func (p Policy) costFaults() (faults []error) {
	for _, class := range slices.Sorted(maps.Keys(p.Costs)) {
		known := slices.Contains(append(routes.Classes(), Failed, Bytes, FileBytes), class)
		faults = append(faults, errs.If(!known, "there is no class %q", class),
			errs.If(class == Failed && p.By != ByAddress, "failed requests count by address only"),
			errs.If(p.Costs[class] < 1, "the cost of %s must be at least 1", class))
	}
	files, bytes := p.Costs[FileBytes], p.Costs[Bytes]
	return append(faults,
		errs.If(files > 0 && (p.By == ByAddress || len(p.Costs) != 1 || files != 1),
			"a policy that counts file-bytes must count by key or tenant, at 1 for file-bytes, with no other cost"),
		errs.If(bytes > 0 && (p.By == ByAddress || len(p.Costs) != 2 || p.Costs[routes.Write] == 0 || bytes != 1),
			"a policy that counts bytes must count by key or tenant, at 1 for bytes, with a cost of write and no other cost"))
}

// longestWindow is the longest window, and so the longest time for which stores remember a request.
const longestWindow = 24 * time.Hour

// maxLimit is low enough that sums of costs cannot overflow.
const maxLimit = 1 << 40

func (p Policy) windowFaults(maxBody int64) (faults []error) {
	highest := p.highestCost(maxBody)
	for _, length := range slices.Sorted(maps.Keys(p.Windows)) {
		period, err := time.ParseDuration(length)
		limit := p.Windows[length]
		// A request must fit into the part of the limit that the gateways do not reserve.
		faults = append(faults,
			errs.If(err != nil || period < time.Second || period > longestWindow || period%time.Second != 0,
				"the window %q must be of whole seconds, such as 1s or 10m, up to %v", length, longestWindow),
			errs.If(limit < 1 || limit-limit/reservePart < highest || limit > maxLimit, "the limit %d of %s must be at least "+
				"1, and seven eighths of it no less than what a request costs, up to %d", limit, length, highest))
	}
	return faults
}

// inBytes reports whether the policy counts bytes instead of requests.
func (p Policy) inBytes() bool { return p.Costs[Bytes]+p.Costs[FileBytes] > 0 }

// largestForm is a size in bytes: the default limit of a file's size, plus the form around the file. Every policy
// that counts uploads must permit an upload of this size.
const largestForm = 101 << 20

// highestCost returns the maximum that one request can cost.
func (p Policy) highestCost(maxBody int64) int64 {
	if p.Costs[FileBytes] > 0 {
		return largestForm
	}
	if p.inBytes() {
		return p.Costs[routes.Write] + maxBody
	}
	highest := int64(0)
	for _, cost := range p.Costs {
		highest = max(highest, cost)
	}
	return highest
}

// rates returns the windows of a valid policy as the library's type, the shortest first. The field Formatted of a
// rate is its name in headers.
func (p Policy) rates() []limiter.Rate {
	var rates []limiter.Rate
	for length, limit := range p.Windows {
		period, _ := time.ParseDuration(length) // the policy is valid, so this cannot fail
		rates = append(rates, limiter.Rate{Formatted: p.Name + "-" + length, Period: period, Limit: limit})
	}
	slices.SortFunc(rates, func(a, b limiter.Rate) int { return int(a.Period - b.Period) })
	return rates
}

// Charge counts what an answer cost beyond its request: the request counts `times` times more. Charge refuses nobody.
// A client that has used more than a limit waits before its next request. Policies that count bytes are not charged,
// because they limit what is stored.
func (l *Limiter) Charge(r Request, times int64) {
	p := l.planOf(r)
	s := l.pool.Get().(*scratch)
	defer l.pool.Put(s)
	s.fill(p, r.Client, 0)
	buckets := s.buckets[:0]
	for i, rule := range p.rules {
		if b := s.buckets[i]; !rule.inBytes() {
			b.Cost = min(b.Cost*times, maxLimit)
			buckets = append(buckets, b)
		}
	}
	if s.buckets = buckets; len(buckets) > 0 {
		l.store.Charge(buckets)
	}
}

func (m *Memory) Charge(buckets []Bucket) {
	now := m.clock.elapsed()
	var few [4]*entry
	entries := m.table.lock(buckets, now, few[:0])
	defer m.table.unlock(entries)
	commit(entries, buckets, now)
}

// Charge implements Store. The loans pay first. Redis learns the rest with a call that nobody waits for, or once it is
// back.
func (s *Borrower) Charge(buckets []Bucket) {
	if s.down.Load() && s.config.Fallback != FallbackLocal {
		return
	}
	now := s.clock.elapsed()
	var few [4]*entry
	entries := s.table.lock(buckets, now, few[:0])
	defer s.table.unlock(entries)
	commit(entries, buckets, now)
	for i := range buckets {
		e, l, cost := entries[i], &entries[i].loan, buckets[i].Cost
		if now < l.until {
			lent := min(l.left, cost)
			l.left, l.last, cost = l.left-lent, now, cost-lent
		}
		if cost == 0 {
			continue
		}
		e.useUnreported(now, cost)
		if l.renewal == nil && !s.down.Load() {
			s.enqueue(e.renew(now, redisKey(&buckets[i]), 0, s.config.Gateways))
		}
	}
}
