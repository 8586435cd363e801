package ratelimit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// inOrder moves the rules that count bytes behind the others.
func inOrder(rules []rule) {
	place := func(r rule) int {
		if r.inBytes() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(rules, func(a, b rule) int { return place(a) - place(b) })
}

// hasOwn reports whether a client has limits that differ from the table's. If there is no table, nobody has limits.
// Only a client with a key can have such limits, and the rules for addresses do not apply to this client.
func (l *Limiter) hasOwn(c Client) bool {
	return len(l.rules) > 0 && (c.Raise > 1 || len(c.Limits) > 0)
}

// planOf returns the plan for a request. If the client's limits differ from the table's, planOf makes a new plan
// each time.
func (l *Limiter) planOf(r Request) *plan {
	of := planOf{r.Class, !r.Client.Identity.IsAnonymous()}
	if !l.hasOwn(r.Client) {
		return l.plans[of]
	}
	return planFor(l.rulesFor(r.Client), of)
}

// rulesFor returns the rules for a client: the rules of the table, raised for its broker, and the limits of its
// key. Limits that differ from the table's are counted separately. So when these limits begin or end, a client
// may use up the old and the new limits within one window.
func (l *Limiter) rulesFor(c Client) []rule {
	if !l.hasOwn(c) {
		return l.rules
	}
	rules := slices.Clone(l.rules)
	if c.Raise > 1 {
		for i := range rules {
			rules[i] = rules[i].raised(c.Raise)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(c.Limits)) {
		p := Policy{
			Name: "limits-" + class, By: ByKey, Costs: map[Class]int64{Class(class): 1}, Windows: c.Limits[class],
		}
		rules = append(rules, rule{Policy: p, rates: p.rates(), mark: markOf(p.Windows)})
	}
	inOrder(rules)
	return rules
}

// raised returns the rule with its limits multiplied by the argument `times`.
func (r rule) raised(times int64) rule {
	r.rates = slices.Clone(r.rates)
	for i := range r.rates {
		r.rates[i].Limit *= times
	}
	r.mark = fmt.Sprintf("~%d", times)
	return r
}

// markOf returns the mark of a key's limits. Different limits have different marks. Requests under
// different marks are counted separately, because a counter must keep the same limits as long as it exists.
func markOf(windows map[string]int64) string {
	var mark strings.Builder
	for _, window := range slices.Sorted(maps.Keys(windows)) {
		fmt.Fprintf(&mark, "~%s=%d", window, windows[window])
	}
	return mark.String()
}
