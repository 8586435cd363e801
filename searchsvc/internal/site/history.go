package site

import (
	"context"
	"errors"
	"fmt"
	"time"

	"asset-registry.example/client"
)

// history is a part of the public changes of a record, the newest change first.
type history struct {
	Changes []change
	Older   int64 // newest revision on the next page; 0: there are no older changes
	State   historyState
}

// historyState says which part of the changes a page has.
type historyState string

// All states of a history. The template has a text for each of them, except allThere.
const (
	allThere historyState = "there"
	noLog    historyState = "none"    // the registry keeps no log, or the record has no public change
	notYet   historyState = "waiting" // the log does not have the newest change yet
	cutOff   historyState = "cut"     // older changes are too large, or took too long
	failed   historyState = "failed"  // the newest change could not be read
)

// change is a public change of a record.
type change struct {
	Revision int64
	Kind     string
	At       time.Time
	Status   client.Status // status after the change; "": not known
	Edits    []edit
	More     int64 // number of edits that are left out
	Erased   bool  // the content of the record was destroyed
	Unknown  bool  // the content before the change is not known
}

// history reads a page of the public changes of a record. The page begins with the revision `from`, and continues with
// older revisions. Revision 0 stands for the newest revision. history keeps only two states of the record in memory.
// Changes that cannot be read are left out, and the field State says so.
func (s *Site) history(ctx context.Context, l Lang, id string, from int64) history {
	ctx, cancel := context.WithTimeout(ctx, pastWithin)
	defer cancel()
	h := history{State: allThere}
	newer, err := s.registry.past(ctx, id, from)
	for tries := 0; errors.Is(err, errNoLog) && from > 1 && tries < perPage; tries++ {
		from--
		newer, err = s.registry.past(ctx, id, from)
	}
	switch {
	case errors.Is(err, errNoLog):
		h.State = noLog
		return h
	case errors.Is(err, errNotYet):
		h.State = notYet
		return h
	case errors.Is(err, errLarge) || ctx.Err() != nil:
		h.State = cutOff
		return h
	case err != nil:
		s.lacking.Failed(fmt.Errorf("asset %s: %w", id, err))
		h.State = failed
		return h
	}
	size := newer.Size
	for reads := 0; ; {
		older, err := s.before(ctx, id, newer, &reads)
		if err != nil || size+older.Size > maxHistory {
			h.State = cutOff
			h.Changes = append(h.Changes, newChange(l, past{}, newer))
			return h // the rest of the page still shows the record
		}
		end, err := s.registry.turnFor(ctx, older.Size+newer.Size)
		if err != nil {
			h.State = cutOff
			return h
		}
		h.Changes = append(h.Changes, newChange(l, older, newer))
		end()
		if older.Revision == 0 {
			return h
		}
		if len(h.Changes) == perPage {
			h.Older = older.Revision
			return h
		}
		newer, size = older, size+older.Size
	}
}

// The method `before` returns the public change before the change `newer`. The result has Revision 0 if there is no
// earlier public change. Changes that were not public have no leaf in the log, and are skipped.
func (s *Site) before(ctx context.Context, id string, newer past, reads *int) (past, error) {
	if newer.Kind == "publish" || newer.Kind == "import" {
		return past{}, nil
	}
	for revision := newer.Revision - 1; revision >= 1; revision-- {
		if *reads++; *reads > 2*perPage {
			return past{}, errLarge
		}
		p, err := s.registry.past(ctx, id, revision)
		if !errors.Is(err, errNoLog) {
			return p, err
		}
	}
	return past{}, nil
}

// newChange compares the public states of a record before and after a change.
func newChange(l Lang, before, after past) change {
	c := change{Revision: after.Revision, Kind: after.Kind, At: after.At}
	switch {
	case after.Record == nil:
		c.Erased = after.Kind != "withdraw"
	case before.Record != nil:
		c.Edits, c.More = edits(l, before.Record, after.Record)
	default:
		c.Unknown = after.Kind == "change"
	}
	if after.Record != nil {
		c.Status = client.Status(after.Record.string("status"))
	}
	return c
}

// step is a state of a record and the time for which it lasted.
type step struct {
	Status client.Status
	At     time.Time
	Until  time.Time // zero: the state still lasts
}

// steps returns the states of a record, the newest first. The first step to pending is in the record itself. If
// some changes are not known, the states between this step and the known changes are missing.
func steps(record *value, h history) []step {
	var line []step // the oldest first
	add := func(status client.Status, at time.Time) {
		if last := len(line) - 1; status != "" && !at.IsZero() && (last < 0 || line[last].Status != status) {
			line = append(line, step{Status: status, At: at})
		}
	}
	add(client.Pending, stampOf(record.get("rectificationPeriod"), "startDate"))
	if h.Older == 0 && h.State == allThere {
		line = nil // all changes are known, and they contain the step to pending too
	}
	for i := len(h.Changes) - 1; i >= 0; i-- {
		c := h.Changes[i]
		// The asset may have had this state before the oldest change here. Then the change did not begin the state.
		if i == len(h.Changes)-1 && (c.Unknown || h.Older > 0) {
			continue
		}
		add(c.Status, c.At)
	}
	add(client.Status(record.string("status")), stampOf(record, "date"))
	for i := range line {
		if i+1 < len(line) {
			line[i].Until = line[i+1].At
		}
	}
	for i, j := 0, len(line)-1; i < j; i, j = i+1, j-1 {
		line[i], line[j] = line[j], line[i]
	}
	return line
}

func stampOf(v *value, name string) time.Time { return timeOf(client.Timestamp(v.string(name))) }
