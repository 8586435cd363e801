package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

// Filter is what is looked for among keys or brokers, from where on, and how
// much of it.
type Filter struct {
	Broker string // of the key; "": all
	State  string // of the key, in the words of adminapi; "": all
	Text   string // somewhere in a name, a title or an id, in whatever case
	After  string
	Limit  int
}

const scanPage = 200 // records read at a time when looking for some

func (f Filter) matches(texts ...string) bool {
	wanted := strings.ToLower(f.Text)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), wanted) })
}

// Key returns a key, with its last uses.
func (s *Service) Key(ctx context.Context, id string) (adminapi.Key, error) {
	k, err := s.key(ctx, id)
	if err != nil {
		return adminapi.Key{}, err
	}
	return s.show(ctx, k)
}

func (s *Service) show(ctx context.Context, k apikey.Key) (adminapi.Key, error) {
	shown, err := s.showAll(ctx, []apikey.Key{k})
	if err != nil {
		return adminapi.Key{}, err
	}
	return shown[0], nil
}

// showAll adds to keys what is kept apart from them: their state and uses.
func (s *Service) showAll(ctx context.Context, keys []apikey.Key) ([]adminapi.Key, error) {
	ids, shown, brokers := make([]string, len(keys)), make([]adminapi.Key, len(keys)), map[string]apikey.Broker{}
	for i, k := range keys {
		ids[i] = k.ID
		state, err := s.state(ctx, k, brokers)
		if err != nil {
			return nil, err
		}
		shown[i] = viewKey(k)
		shown[i].State = state
	}
	uses, err := s.store.Uses(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, k := range shown {
		for i := range k.Secrets {
			k.Secrets[i].Uses = uses[k.ID][k.Secrets[i].Number]
		}
	}
	return shown, nil
}

// state tells a key's state; brokers are those already loaded.
func (s *Service) state(ctx context.Context, k apikey.Key, brokers map[string]apikey.Broker) (string, error) {
	broker, loaded := brokers[k.Broker]
	if !loaded && k.Broker != "" {
		var err error
		if broker, err = s.store.Broker(ctx, k.Broker); err != nil && !errors.Is(err, ErrNotFound) {
			return "", err
		}
		brokers[k.Broker] = broker
	}
	return k.State(broker, s.now()), nil
}

// Keys returns the keys that a filter lets through, and what the next page is
// after; "" when there is none.
func (s *Service) Keys(ctx context.Context, f Filter) (keys []adminapi.Key, next string, err error) {
	var found []apikey.Key
	brokers := map[string]apikey.Broker{}
	for after := f.After; ; {
		page, err := s.store.Keys(ctx, after, scanPage)
		if err != nil {
			return nil, "", err
		}
		for _, k := range page {
			after = k.ID
			state, err := s.state(ctx, k, brokers)
			if err != nil {
				return nil, "", err
			}
			if f.Broker != "" && k.Broker != f.Broker || f.State != "" && state != f.State || !f.matches(k.ID, k.Broker, k.Settings.Name) {
				continue
			}
			if len(found) == f.Limit {
				keys, err := s.showAll(ctx, found)
				return keys, found[len(found)-1].ID, err
			}
			found = append(found, k)
		}
		if len(page) < scanPage {
			keys, err := s.showAll(ctx, found)
			return keys, "", err
		}
	}
}

// Brokers returns the brokers that a filter lets through, and what the next page
// is after; "" when there is none.
func (s *Service) Brokers(ctx context.Context, f Filter) (brokers []adminapi.Broker, next string, err error) {
	brokers = []adminapi.Broker{}
	for after := f.After; ; {
		page, err := s.store.Brokers(ctx, after, scanPage)
		if err != nil {
			return nil, "", err
		}
		for _, b := range page {
			after = b.Name
			if !f.matches(b.Name, b.Title, b.Contact) {
				continue
			}
			if len(brokers) == f.Limit {
				return brokers, brokers[len(brokers)-1].Name, nil
			}
			brokers = append(brokers, viewBroker(b))
		}
		if len(page) < scanPage {
			return brokers, "", nil
		}
	}
}

// Usage returns how often a key was used on each of the last days, today
// included. The key may also be one that is not kept here.
func (s *Service) Usage(ctx context.Context, id string, days int) ([]adminapi.Day, error) {
	if days < 1 || days > UsageDays {
		return nil, fault.New(fault.Invalid, fault.Query, "days", "The number of days must be between 1 and %d.", UsageDays)
	}
	return s.store.Counts(ctx, id, lastDays(s.now(), days))
}

// lastDays names the last days, the one of now included, in order.
func lastDays(now time.Time, days int) []string {
	names := make([]string, days)
	for i := range names {
		names[i] = now.UTC().AddDate(0, 0, i-days+1).Format(time.DateOnly)
	}
	return names
}

// Head returns where the audit log ends.
func (s *Service) Head(ctx context.Context) (adminapi.Head, error) { return s.store.Head(ctx) }

// Entries returns entries of the audit log that follow number after.
func (s *Service) Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	return s.store.Entries(ctx, after, limit)
}
