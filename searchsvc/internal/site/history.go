package site

import (
	"context"
	"errors"
	"time"

	"asset-registry.example/client"
)

// history is a part of the public changes of a record, the newest first.
type history struct {
	Changes []change
	Older   int64 // revision to go on from; 0: there are no older ones
	State   historyState
}

// historyState says how much of the changes a page has.
type historyState string

// The states of a history. They end the names of texts.
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
	Status   client.Status // after the change; "": unknown
	Edits    []edit
	More     int64 // edits that are left out
	Erased   bool  // the content was destroyed
	Unknown  bool  // the content before is not known
}

// history reads a page of the public changes of a record, from a revision down; 0 stands
// for the newest one. It keeps two states of the record at a time. A page does without the
// changes that cannot be read.
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
		s.config.Log.Warn("a page lacks the changes of a record", "asset", id, "error", err)
		h.State = failed
		return h
	}
	size := newer.Size
	for reads := 0; ; {
		older, err := s.before(ctx, id, newer, &reads)
		if err != nil || size+older.Size > maxHistory {
			h.State = cutOff
			h.Changes = append(h.Changes, newChange(l, past{}, newer))
			return h // the rest of the page has the record
		}
		h.Changes = append(h.Changes, newChange(l, older, newer))
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

// before returns the public change before another one. Its Revision is 0 if there is none.
// Changes that were not public have no leaf, and are passed over.
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

// newChange compares two public states of a record.
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

// step is a state of a record on the line of time.
type step struct {
	Status client.Status
	At     time.Time
	Until  time.Time // zero: it lasts
}

// steps returns the states of a record, the newest first. Changes that are not known leave
// a gap: the first step to pending is in the record itself.
func steps(record *value, h history) []step {
	var line []step // the oldest first
	add := func(status client.Status, at time.Time) {
		if last := len(line) - 1; status != "" && !at.IsZero() && (last < 0 || line[last].Status != status) {
			line = append(line, step{Status: status, At: at})
		}
	}
	add(client.Pending, stampOf(record.get("rectificationPeriod"), "startDate"))
	if h.Older == 0 && h.State == allThere {
		line = nil // the changes have all
	}
	for i := len(h.Changes) - 1; i >= 0; i-- {
		c := h.Changes[i]
		if i == len(h.Changes)-1 && (c.Unknown || h.Older > 0) { // its state may be older than the change
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
