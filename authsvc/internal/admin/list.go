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

// Filter selects a page of keys or brokers.
type Filter struct {
	Broker string // broker of the key; "": any
	State  string // state of the key, one of adminapi.States; "": any
	Text   string // part of a name, title, contact or id; upper and lower case are equal; "": any
	After  string // last id or name of the previous page; "": the first page
	Limit  int    // maximum number of keys or brokers of a page
}

func (f Filter) matches(texts ...string) bool {
	wanted := strings.ToLower(f.Text)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), wanted) })
}

// errPageFull ends a listing when the page has as many keys or brokers as its limit.
var errPageFull = errors.New("the page is full")

// Keys returns the keys that match a filter. The result `next` is the value of Filter.After for the next page; ""
// after the last page.
func (s *Service) Keys(ctx context.Context, f Filter) (keys []adminapi.Key, next string, err error) {
	var found []apikey.Key
	states := s.newStates()
	err = eachKey(ctx, s.store, f.After, func(k apikey.Key) error {
		state, err := states.of(ctx, k)
		if err != nil {
			return err
		}
		if f.Broker != "" && k.Broker != f.Broker || f.State != "" && state != f.State ||
			!f.matches(k.ID, k.Broker, k.Settings.Name) {
			return nil
		}
		if len(found) == f.Limit {
			return errPageFull
		}
		found = append(found, k)
		return nil
	})
	if errors.Is(err, errPageFull) {
		next, err = found[len(found)-1].ID, nil
	}
	if err != nil {
		return nil, "", err
	}
	keys, err = s.showAll(ctx, found)
	return keys, next, err
}

// Brokers returns the brokers that match a filter. The result `next` is the value of Filter.After for the next
// page; "" after the last page.
func (s *Service) Brokers(ctx context.Context, f Filter) (brokers []adminapi.Broker, next string, err error) {
	brokers = []adminapi.Broker{}
	err = eachBroker(ctx, s.store, f.After, func(b apikey.Broker) error {
		if !f.matches(b.Name, b.Title, b.Contact) {
			return nil
		}
		if len(brokers) == f.Limit {
			return errPageFull
		}
		brokers = append(brokers, b.View())
		return nil
	})
	if errors.Is(err, errPageFull) {
		return brokers, brokers[len(brokers)-1].Name, nil
	}
	if err != nil {
		return nil, "", err
	}
	return brokers, "", nil
}

func (s *Service) show(ctx context.Context, k apikey.Key) (adminapi.Key, error) {
	shown, err := s.showAll(ctx, []apikey.Key{k})
	if err != nil {
		return adminapi.Key{}, err
	}
	return shown[0], nil
}

// showAll returns keys with their state and last uses.
func (s *Service) showAll(ctx context.Context, keys []apikey.Key) ([]adminapi.Key, error) {
	ids, shown, states := make([]string, len(keys)), make([]adminapi.Key, len(keys)), s.newStates()
	for i, k := range keys {
		ids[i] = k.ID
		state, err := states.of(ctx, k)
		if err != nil {
			return nil, err
		}
		shown[i] = k.View()
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

// states works out the states of several keys. It loads each broker once.
type states struct {
	store   Directory
	now     time.Time
	brokers map[string]apikey.Broker
}

func (s *Service) newStates() *states {
	return &states{store: s.store, now: s.now(), brokers: map[string]apikey.Broker{}}
}

func (s *states) of(ctx context.Context, k apikey.Key) (string, error) {
	broker, loaded := s.brokers[k.Broker]
	if !loaded && k.Broker != "" {
		var err error
		if broker, err = s.store.Broker(ctx, k.Broker); err != nil && !errors.Is(err, apikey.ErrNotFound) {
			return "", err
		}
		s.brokers[k.Broker] = broker
	}
	return k.State(broker, s.now), nil
}

// Usage returns how many requests used a key on each of the last days, up to today. It also returns counts of
// keys that are in a keys file, not in the store.
func (s *Service) Usage(ctx context.Context, id string, days int) ([]adminapi.Day, error) {
	if days < 1 || days > apikey.UsageDays {
		return nil, fault.New(fault.Invalid, fault.Query, "days",
			"The number of days must be between 1 and %d.", apikey.UsageDays)
	}
	return s.store.Counts(ctx, id, lastDays(s.now(), days))
}

// lastDays returns the names of the last days up to now, in order.
func lastDays(now time.Time, days int) []string {
	names := make([]string, days)
	for i := range names {
		names[i] = now.UTC().AddDate(0, 0, i-days+1).Format(time.DateOnly)
	}
	return names
}
