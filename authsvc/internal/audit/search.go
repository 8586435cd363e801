package audit

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

// Query selects entries of the log. A field that is zero does not restrict the search.
type Query struct {
	Who    string    // part of the caller's name, id or address; upper and lower case are equal
	About  string    // part of the subject, or of the name or title in the entry; upper and lower case are equal
	Broker string    // the entry is about this broker, one of its keys or one of its webhooks
	Action string    // such as "key.rotate"
	Since  time.Time // the entry is not older than this
}

// Matches reports whether a query selects an entry.
func (q Query) Matches(e adminapi.Entry) bool {
	if q.Action != "" && e.Action != q.Action || e.Time.Before(q.Since) ||
		!has(e.Who, q.Who) && !has(e.From, q.Who) {
		return false
	}
	if q.About == "" && q.Broker == "" {
		return true
	}
	before, after := nameOf(e.Before), nameOf(e.After)
	name, ofBroker := BrokerOf(e.Subject)
	if q.Broker != "" && !(ofBroker && name == q.Broker) && before.Broker != q.Broker && after.Broker != q.Broker {
		return false
	}
	texts := []string{e.Subject, before.Name, before.Title, after.Name, after.Title}
	return slices.ContainsFunc(texts, func(text string) bool { return has(text, q.About) })
}

func has(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// named has the names in the state of a broker, key or webhook.
type named struct{ Name, Title, Broker string }

// nameOf returns the names in a state. They are empty if the state cannot be decoded.
func nameOf(state json.RawMessage) (n named) {
	if len(state) == 0 || json.Unmarshal(state, &n) != nil {
		return named{}
	}
	return n
}

// MaxRead is the maximum number of entries that one Search reads.
const MaxRead = 10_000

// Reader is the part of Log that reads entries.
type Reader interface {
	Lister
	Head(ctx context.Context) (adminapi.Head, error)
}

// Search returns up to limit entries that a query selects, the newest first. The argument `before` is the number of an
// entry, and Search looks only at earlier entries; 0 stands for the end of the log. To continue, pass the result
// `older` as the argument `before` of the next search. If `older` is 0, no entries are left. Search reads at most
// MaxRead entries, so it may find fewer entries than the limit although more are left.
func Search(
	ctx context.Context, log Reader, q Query, before int64, limit int,
) (found []adminapi.Entry, older int64, err error) {
	head, err := log.Head(ctx)
	if err != nil {
		return nil, 0, err
	}
	if before <= 0 || before > head.Seq {
		before = head.Seq + 1
	}
	first, err := firstSince(ctx, log, q.Since, before-1)
	if err != nil {
		return nil, 0, err
	}
	for read := 0; before > first && read < MaxRead; {
		n := min(int64(page), before-first)
		entries, err := log.Entries(ctx, before-1-n, int(n))
		if err != nil {
			return nil, 0, err
		}
		for _, e := range slices.Backward(entries) {
			if e.Seq >= before || !q.Matches(e) {
				continue
			}
			if found = append(found, e); len(found) == limit {
				return found, left(e.Seq, first), nil
			}
		}
		before, read = before-n, read+int(n)
	}
	return found, left(before, first), nil
}

// left returns the argument `before` for the next search. It returns 0 if the search has already read the earliest
// entry that can match; the parameter `first` is the number of that entry.
func left(before, first int64) int64 {
	if before <= first {
		return 0
	}
	return before
}

// jitter is the maximum time by which an entry can seem older than the one before it. The clocks of the services differ
// by less than this.
const jitter = time.Hour

// firstSince returns the number of an entry, or last+1. All entries with smaller numbers than the result are older
// than the given time. It reads only a few entries.
func firstSince(ctx context.Context, log Lister, since time.Time, last int64) (int64, error) {
	low, high := int64(1), last+1
	if since.IsZero() {
		return low, nil
	}
	for low < high {
		middle := low + (high-low)/2
		entries, err := log.Entries(ctx, middle-1, 1)
		if err != nil {
			return 0, err
		}
		if len(entries) > 0 && entries[0].Time.Before(since.Add(-jitter)) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, nil
}

// MaxExported is the maximum number of entries that one Export reads.
const MaxExported = 100_000

// Export calls the function `visit` with each entry that a query selects, in order, until visit returns an error.
// If more than MaxExported entries are younger than Query.Since, it returns a fault of kind Invalid before any
// call of visit.
func Export(ctx context.Context, log Reader, q Query, visit func(adminapi.Entry) error) error {
	head, err := log.Head(ctx)
	if err != nil {
		return err
	}
	first, err := firstSince(ctx, log, q.Since, head.Seq)
	if err != nil {
		return err
	}
	if n := head.Seq - first + 1; n > MaxExported {
		return fault.New(fault.Invalid, fault.Query, "days", "The log has %d entries of that time, and an export "+
			"reads at most %d. Choose fewer days, or read the log with the admin API.", n, MaxExported)
	}
	err = Each(ctx, log, first-1, func(e adminapi.Entry) error {
		switch {
		case e.Seq > head.Seq: // appended after the export began
			return errEnd
		case q.Matches(e):
			return visit(e)
		}
		return nil
	})
	if errors.Is(err, errEnd) {
		return nil
	}
	return err
}

// errEnd ends an export after the entry that was the last one when the export began.
var errEnd = errors.New("the end of the export")
