package admin

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

// The orders of keys in FindKeys.
const (
	ByCreated = "created" // the newest first
	ByUsed    = "used"    // the key that was used last comes first; keys that were never used come last
	ByName    = "name"
	ByBroker  = "broker"
	ByExpiry  = "expires" // the key that expires first comes first; keys that do not expire come last
)

// KeyOrders returns every order of FindKeys. If a KeyQuery names no order, FindKeys uses the first one.
func KeyOrders() []string { return []string{ByCreated, ByUsed, ByName, ByBroker, ByExpiry} }

// MaxFound is the maximum number of keys or brokers that one search reads.
const MaxFound = 10_000

// KeyQuery selects a page of keys in some order.
type KeyQuery struct {
	Broker  string   // broker of the key; "": any
	States  []string // states of the key (adminapi.States); none: any
	Text    string   // part of a name, broker or id; upper and lower case are equal; "": any
	Order   string   // one of KeyOrders; "": the first
	Reverse bool     // reverses the order
	Skip    int      // number of keys before the page; if it is too large, FindKeys returns the last page
	Limit   int      // maximum number of keys of the page
}

// KeyPage is the answer to a KeyQuery.
type KeyPage struct {
	Keys   []adminapi.Key
	Skip   int            // keys before the page
	Total  int            // number of keys that match
	States map[string]int // for each state: the number of its keys that match Broker and Text
	Cut    bool           // the registry has more than MaxFound keys, and only the newest ones were read
}

// FindKeys returns a page of keys. It reads the newest MaxFound keys.
func (s *Service) FindKeys(ctx context.Context, q KeyQuery) (p KeyPage, err error) {
	f := Filter{Text: q.Text}
	p.States = map[string]int{}
	var found []apikey.Key
	states, read := s.newStates(), 0
	err = eachKeyBack(ctx, s.store, func(k apikey.Key) error {
		if read++; read > MaxFound {
			p.Cut = true
			return errPageFull
		}
		if q.Broker != "" && k.Broker != q.Broker || !f.matches(k.ID, k.Broker, k.Settings.Name) {
			return nil
		}
		state, err := states.of(ctx, k)
		if err != nil {
			return err
		}
		p.States[state]++
		if len(q.States) == 0 || slices.Contains(q.States, state) {
			found = append(found, k)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return p, err
	}
	if err := s.sort(ctx, found, q); err != nil {
		return p, err
	}
	p.Total = len(found)
	var page []apikey.Key
	page, p.Skip = cut(found, q.Skip, q.Limit)
	p.Keys, err = s.showAll(ctx, page)
	return p, err
}

// cut returns one page of a list, and the number of elements before the page.
func cut[T any](found []T, skip, limit int) (page []T, before int) {
	if skip >= len(found) { // the last page
		skip = max(0, len(found)-1) / limit * limit
	}
	return found[skip:min(len(found), skip+limit)], skip
}

// sort sorts keys in the order of a query. Keys that this order does not distinguish keep the order of their
// creation.
func (s *Service) sort(ctx context.Context, keys []apikey.Key, q KeyQuery) error {
	var used map[string]time.Time
	if q.Order == ByUsed {
		var err error
		if used, err = s.lastUses(ctx, keys); err != nil {
			return err
		}
	}
	newest := func(a, b apikey.Key) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID)) }
	order := map[string]func(a, b apikey.Key) int{
		ByCreated: newest,
		ByUsed:    func(a, b apikey.Key) int { return used[b.ID].Compare(used[a.ID]) },
		ByName:    func(a, b apikey.Key) int { return compareFold(a.Settings.Name, b.Settings.Name) },
		ByBroker:  func(a, b apikey.Key) int { return compareFold(a.Broker, b.Broker) },
		ByExpiry:  func(a, b apikey.Key) int { return end(a).Compare(end(b)) },
	}[cmp.Or(q.Order, ByCreated)]
	if order == nil {
		return fault.New(fault.Invalid, fault.Query, "sort", "Sort by one of %s.", strings.Join(KeyOrders(), ", "))
	}
	slices.SortFunc(keys, func(a, b apikey.Key) int {
		if q.Reverse {
			return cmp.Or(order(b, a), newest(a, b))
		}
		return cmp.Or(order(a, b), newest(a, b))
	})
	return nil
}

func compareFold(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) }

// end returns when a key expires; if it does not, a time after all others.
func end(k apikey.Key) time.Time {
	if k.Settings.Expires.IsZero() {
		return time.Unix(1<<40, 0)
	}
	return k.Settings.Expires
}

// lastUses returns when each key was last used. The map does not have keys that were never used.
func (s *Service) lastUses(ctx context.Context, keys []apikey.Key) (map[string]time.Time, error) {
	last := map[string]time.Time{}
	for some := range slices.Chunk(keys, page) {
		ids := make([]string, len(some))
		for i, k := range some {
			ids[i] = k.ID
		}
		uses, err := s.store.Uses(ctx, ids)
		if err != nil {
			return nil, err
		}
		for id, secrets := range uses {
			for _, of := range secrets {
				for _, use := range of {
					if use.Time.After(last[id]) {
						last[id] = use.Time
					}
				}
			}
		}
	}
	return last, nil
}

// BrokerPage is a page of brokers in the order of their names.
type BrokerPage struct {
	Brokers []adminapi.Broker
	Skip    int  // brokers before the page
	Total   int  // number of brokers that match
	Cut     bool // the registry has more than MaxFound brokers, and only the first ones were read
}

// FindBrokers returns a page of the brokers with a text in their name, title or contact. The argument `limit` is the
// maximum number of brokers of the page, and skip is the number of brokers before it. FindBrokers reads the first
// MaxFound brokers.
func (s *Service) FindBrokers(ctx context.Context, text string, skip, limit int) (p BrokerPage, err error) {
	f, read := Filter{Text: text}, 0
	var found []adminapi.Broker
	err = eachBroker(ctx, s.store, "", func(b apikey.Broker) error {
		if read++; read > MaxFound {
			p.Cut = true
			return errPageFull
		}
		if f.matches(b.Name, b.Title, b.Contact) {
			found = append(found, b.View())
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return p, err
	}
	p.Total = len(found)
	p.Brokers, p.Skip = cut(found, skip, limit)
	return p, nil
}

// MaxSummed is the maximum number of keys whose usage BrokerUsage adds up.
const MaxSummed = 200

// MaxSummedDays is the largest number of days for which BrokerUsage adds up usage.
const MaxSummedDays = 90

// BrokerUsage returns how many requests used the broker's keys on each of the last days, up to today. It adds up the
// usage of the newest MaxSummed keys. The result `cut` reports that the broker has more keys.
func (s *Service) BrokerUsage(ctx context.Context, broker string, days int) (sum []adminapi.Day, cut bool, err error) {
	if days < 1 || days > MaxSummedDays {
		return nil, false, fault.New(fault.Invalid, fault.Query, "days",
			"The number of days must be between 1 and %d.", MaxSummedDays)
	}
	found, err := s.FindKeys(ctx, KeyQuery{Broker: broker, Limit: MaxSummed})
	if err != nil {
		return nil, false, err
	}
	names := lastDays(s.now(), days)
	by := map[string]map[string]int64{}
	for _, k := range found.Keys {
		counts, err := s.store.Counts(ctx, k.ID, names)
		if err != nil {
			return nil, false, err
		}
		for _, day := range counts {
			if by[day.Day] == nil {
				by[day.Day] = map[string]int64{}
			}
			for class, n := range day.Counts {
				by[day.Day][class] += n
			}
		}
	}
	sum = []adminapi.Day{}
	for _, name := range names {
		if counts := by[name]; counts != nil {
			sum = append(sum, adminapi.Day{Day: name, Counts: counts})
		}
	}
	return sum, found.Cut || found.Total > MaxSummed, nil
}

// Assets asks the asset services and the search service (assetclient.Client).
type Assets interface {
	Asset(ctx context.Context, keyID string, by url.Values) (adminapi.Asset, error)
	Titles(ctx context.Context, words string, limit int) (found []adminapi.Asset, more, asked bool, err error)
	Owned(ctx context.Context, keyID, broker, state string, limit int, named bool) ([]adminapi.Asset, bool, error)
}

// WithAssets returns a service that knows the assets too.
func (s *Service) WithAssets(assets Assets) *Service {
	with := *s
	with.assets = assets
	return &with
}

// longestSought is the maximum number of bytes of a text for Find.
const longestSought = 600

var assetID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Find returns what a text names (docs/contract.md, "Admin API"). It does not fail if the search service fails.
func (s *Service) Find(ctx context.Context, by Actor, text string) (f adminapi.Found, err error) {
	f = adminapi.Found{Assets: []adminapi.Asset{}, Brokers: []adminapi.Broker{}, Keys: []adminapi.Key{}}
	if text = strings.TrimSpace(text); text == "" || len(text) > longestSought {
		return f, fault.New(fault.Invalid, fault.Query, "q", "Send a text of 1 to %d bytes.", longestSought)
	}
	switch one, err := s.findAsset(ctx, by, text); {
	case err == nil:
		f.Assets = append(f.Assets, one)
		return f, nil
	case fault.KindOf(err) != fault.NotFound:
		return f, err
	}
	keys, err := s.FindKeys(ctx, KeyQuery{Text: text, Limit: adminapi.MaxFound})
	if err != nil {
		return f, err
	}
	brokers, err := s.FindBrokers(ctx, text, 0, adminapi.MaxFound)
	if err != nil {
		return f, err
	}
	f.Keys, f.Brokers = append(f.Keys, keys.Keys...), append(f.Brokers, brokers.Brokers...)
	f.Cut = keys.Total > len(f.Keys) || keys.Cut || brokers.Total > len(f.Brokers) || brokers.Cut
	if len(f.Keys) == 1 && f.Keys[0].ID == text && f.Keys[0].Broker != "" {
		b, err := s.Broker(ctx, f.Keys[0].Broker)
		f.Brokers = append(f.Brokers, b)
		return f, err
	}
	if s.assets == nil {
		return f, nil
	}
	found, more, asked, err := s.assets.Titles(ctx, text, adminapi.MaxFound)
	if err != nil {
		s.log.Warn("titles are not searched", "error", err)
	}
	f.Assets, f.Cut, f.Titles = append(f.Assets, found...), f.Cut || more, asked
	return f, nil
}

// findAsset returns the asset that has the text as its id or number, or whose broker and reference the text names with
// a space between them. A draft is found for operators only.
func (s *Service) findAsset(ctx context.Context, by Actor, text string) (adminapi.Asset, error) {
	none := fault.New(fault.NotFound, fault.Query, "q", "There is no such asset.")
	if s.assets == nil {
		return adminapi.Asset{}, none
	}
	last := strings.LastIndexByte(text, ' ')
	query := url.Values{}
	switch {
	case assetID.MatchString(strings.ToLower(text)):
		query.Set("id", strings.ToLower(text))
	case strings.HasPrefix(strings.ToUpper(text), "UA-AR-"):
		query.Set("number", strings.ToUpper(text))
	case last < 0:
		return adminapi.Asset{}, none
	default:
		b, err := s.Broker(ctx, strings.TrimSpace(text[:last]))
		if err != nil {
			return adminapi.Asset{}, err
		}
		query.Set("broker", b.Name)
		query.Set("reference", text[last+1:])
	}
	found, err := s.assets.Asset(ctx, by.KeyID(), query)
	if err == nil && found.Status == "draft" {
		found.Title = "" // who reads a draft has an entry in the audit log (Console.noteReading)
		if by.Role != apikey.Operator {
			err = none
		}
	}
	return found, err
}
