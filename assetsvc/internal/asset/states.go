package asset

import "slices"

// state says who may change an asset in it at all, and who may take it where.
type state struct {
	writers []Role
	to      map[Status][]Role
}

// states is the table of contract section 2.1. Nobody changes what is not in it.
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

// mayChange tells whether a role may change an asset in this state.
func (s Status) mayChange(by Role) bool { return slices.Contains(states[s].writers, by) }

// mayBecome tells whether a role may take an asset to another state; to stay
// is no step.
func (s Status) mayBecome(to Status, by Role) bool {
	return s == to || slices.Contains(states[s].to[to], by)
}
