package asset

import (
	"slices"
	"strings"
)

// Status is the state of an asset (docs/contract.md, "States").
type Status string

// The states.
const (
	Draft        Status = "draft"
	Pending      Status = "pending"
	Verification Status = "verification"
	Active       Status = "active"
	Complete     Status = "complete"
	Deleted      Status = "deleted"
)

// Statuses lists all states in the order of an asset's life.
var Statuses = []Status{Draft, Pending, Verification, Active, Complete, Deleted}

// statusNames returns Statuses as strings.
func statusNames() []string {
	names := make([]string, len(Statuses))
	for i, s := range Statuses {
		names[i] = string(s)
	}
	return names
}

// state lists the roles that may change an asset in one state. For each next state, it lists the roles that may
// move the asset there.
type state struct {
	writers []Role
	to      map[Status][]Role
}

// states is the table in docs/contract.md, "States". An asset in a state that is not in the table never
// changes.
var states = map[Status]state{
	Draft: {
		writers: []Role{Owner, Administrator},
		to:      map[Status][]Role{Pending: {Owner, Administrator}},
	},
	Pending: {
		writers: []Role{Owner, Concierge, Administrator},
		to:      map[Status][]Role{Deleted: {Owner, Administrator}, Verification: {Concierge, Administrator}},
	},
	Verification: {
		writers: []Role{Concierge, Administrator},
		to:      map[Status][]Role{Active: {Concierge, Administrator}, Pending: {Concierge, Administrator}},
	},
	Active: {
		writers: []Role{Concierge, Administrator},
		to:      map[Status][]Role{Pending: {Concierge, Administrator}, Complete: {Concierge, Administrator}},
	},
}

// mayChange reports whether a role may change an asset in this state.
func (s Status) mayChange(by Role) bool { return slices.Contains(states[s].writers, by) }

// whoMay says who may change an asset in this state, or move it to another state.
func (s Status) whoMay(to Status) string {
	now, what := states[s], "changes it"
	roles := now.writers
	if s != to && len(roles) > 0 {
		if roles, what = now.to[to], "sets "+string(to); len(roles) == 0 {
			return "it can become " + orList(Statuses, func(next Status) bool { return now.to[next] != nil })
		}
	}
	if len(roles) == 0 {
		return "this state is final"
	}
	return "only the " + orList(roles, func(Role) bool { return true }) + " " + what
}

// orList joins the wanted names by "or".
func orList[T ~string](all []T, isWanted func(T) bool) string {
	var names []string
	for _, one := range all {
		if isWanted(one) {
			names = append(names, string(one))
		}
	}
	return strings.Join(names, " or ")
}

// mayBecome reports whether a role may move an asset from this state to another. An asset may always stay in
// its state.
func (s Status) mayBecome(to Status, by Role) bool {
	return s == to || slices.Contains(states[s].to[to], by)
}
