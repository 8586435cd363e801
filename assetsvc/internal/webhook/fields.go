package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// testMode is the mode of endpoints that get changes of test assets only.
const testMode = "test"

// Modes returns the modes that an endpoint can have (docs/contract.md, "Feed").
func Modes() []string { return []string{"", testMode, "_all_"} }

// Fields returns the names of the fields of a webhook, in the order in which they are shown. Clients may send
// back the fields that they cannot write.
func Fields() []string {
	return []string{
		"id", "dateCreated", "broker", "byAdministrator", "url", "version", "mode", "opt_fields", "filters", "state",
		"reason", "offset", "behind", "failures", "lastError", "next", "succeeded", "publicKey",
	}
}

// SetOnce returns the names of the fields that only a creation can set.
func SetOnce() []string { return []string{"version", "mode", "opt_fields", "filters"} }

// fields has the checked values of a creation.
type fields struct {
	url, mode string
	filters   string // in the form of Endpoint.Filters
	whole     bool
	paused    bool
	offset    int64 // 0: the newest change
}

// patch has the checked values of a change. An empty field here leaves the same field of the webhook unchanged.
type patch struct {
	url   string
	state State
}

// reader reads the fields that a client sent, and collects their faults.
type reader struct {
	sent   record.Object
	faults []fault.Detail
}

// newReader returns a reader. The reader already has a fault for each sent field that a webhook does not have.
func newReader(sent record.Object) *reader {
	r := &reader{sent: sent}
	for _, m := range sent {
		if !slices.Contains(Fields(), m.Name) {
			r.wrong(m.Name, "Rogue field")
		}
	}
	return r
}

// maxFaults is the maximum number of faults that one answer lists.
const maxFaults = 500

func (r *reader) wrong(name, format string, args ...any) {
	if len(r.faults) < maxFaults {
		d := fault.Detail{Location: fault.Body, Name: name, Description: fmt.Sprintf(format, args...)}
		r.faults = append(r.faults, d)
	}
}

// text returns the value of a string field, or "" if the field is absent or null.
func (r *reader) text(name string) string {
	switch value := r.sent.Get(name).(type) {
	case nil:
		return ""
	case string:
		return value
	default:
		r.wrong(name, "This must be a string.")
		return ""
	}
}

// url returns the address, or "" if the field is absent. The function `check` returns an error that says what is
// wrong with an address.
func (r *reader) url(check func(string) error) string {
	url := r.text("url")
	if url != "" {
		if err := check(url); err != nil {
			r.wrong("url", "%s", err)
		}
	}
	return url
}

// state returns the state that the client asks for, or "" if the client asks for no state. Clients cannot ask
// for Unverified, but may send it back.
func (r *reader) state() State {
	_, isText := r.sent.Get("state").(string)
	switch state := State(r.text("state")); {
	case state == Active, state == Disabled:
		return state
	case state == Unverified, !isText: // the method `text` has already reported a value that is not a string
		return ""
	}
	r.wrong("state", `The state must be "active" or "disabled".`)
	return ""
}

// offset returns the position that the field `offset` stands for, or 0 if the field is absent.
func (r *reader) offset() int64 {
	text := r.text("offset")
	if text == "" {
		return 0
	}
	t, err := asset.ParseOffset(text)
	if err != nil {
		r.wrong("offset", "Send an ISO 8601 timestamp, such as 2026-11-22T09:30:00Z: this is %s.", err)
		return 0
	}
	return max(t.UnixMicro(), 1)
}

// filters returns the filters in the form of Endpoint.Filters.
func (r *reader) filters() string {
	var sent record.Object
	switch value := r.sent.Get("filters").(type) {
	case nil:
		return ""
	case record.Object:
		sent = value
	default:
		r.wrong("filters", "This must be an object, such as {\"region\": [\"Одеська\"]}.")
		return ""
	}
	values, size := map[assetfilter.Name][]string{}, 0
	for _, m := range sent {
		path := record.Join("filters", m.Name)
		f, known := assetfilter.Find(assetfilter.Name(m.Name))
		if !known {
			r.wrong(path, "Rogue field: the filters are %s.", strings.Join(assetfilter.Names(), ", "))
			continue
		}
		list, ok := texts(m.Value)
		if !ok {
			r.wrong(path, "This must be a list of strings.")
			continue
		}
		read, fault := f.Read(list)
		switch {
		case fault != "":
			r.wrong(path, "%s", fault)
		case len(read) == 0 && m.Value != nil:
			r.wrong(path, "A filter needs a value. Leave the filter out to get all assets.")
		}
		for _, value := range read {
			size += utf8.RuneCountInString(value)
		}
		values[f.Name] = read
	}
	if size > assetfilter.MaxTotal {
		r.wrong("filters", "All values together may have %d characters.", assetfilter.MaxTotal)
	}
	text, err := assetfilter.Encode(values)
	if err != nil { // only a text that is not UTF-8 causes an error, and all texts here are UTF-8
		r.wrong("filters", "This cannot be stored.")
	}
	return text
}

// texts returns the strings of a list. A single string counts as a list with one element.
func texts(value any) (list []string, ok bool) {
	switch value := value.(type) {
	case nil:
		return nil, true
	case string:
		return []string{value}, true
	case record.List:
		for _, one := range value {
			text, isText := one.(string)
			if !isText {
				return nil, false
			}
			list = append(list, text)
		}
		return list, true
	default:
		return nil, false
	}
}

func (r *reader) fault() error {
	if len(r.faults) == 0 {
		return nil
	}
	return &fault.Error{Kind: fault.Invalid, Details: r.faults}
}

func parseCreation(sent record.Object, check func(string) error) (f fields, err error) {
	r := newReader(sent)
	f.url, f.mode, f.offset, f.paused = r.url(check), r.text("mode"), r.offset(), r.state() == Disabled
	if sent.Get("url") == nil || sent.Get("url") == "" {
		r.wrong("url", "This field is required.")
	}
	if !slices.Contains(Modes(), f.mode) {
		r.wrong("mode", `The mode must be "", "test" or "_all_".`)
	}
	switch r.text("opt_fields") {
	case "":
	case "*":
		f.whole = true
	default:
		r.wrong("opt_fields", `This must be "*", for whole assets, or "".`)
	}
	f.filters = r.filters()
	return f, r.fault()
}

func parseChange(sent record.Object, check func(string) error) (p patch, err error) {
	r := newReader(sent)
	p.url, p.state = r.url(check), r.state()
	return p, r.fault()
}

func parseReplay(sent record.Object) (offset int64, err error) {
	r := newReader(sent)
	return r.offset(), r.fault()
}

func parseRotate(sent record.Object) error { return newReader(sent).fault() }

// Creation asks for a new endpoint.
type Creation struct {
	Fields  record.Object // the fields that the client sent
	Version string        // version of the API that the client uses; messages show assets in this version
	// Seeds are secrets that the gateway derives from an API key and an Idempotency-Key: one seed for each secret of
	// the registry, with the seed of the current secret first. With seeds, a repeated creation returns the same
	// endpoint. Without seeds, it creates another endpoint (docs/contract.md, "Idempotency").
	Seeds [][]byte
}

const (
	repeatable = 24 * time.Hour // how long a creation can be repeated; later the same key creates another endpoint
	maxUses    = MaxOfBroker + 1
)

// Create creates an endpoint, and returns it with its symmetric secret. Until the endpoint has answered a
// challenge, only challenges are sent to it.
func (s *Service) Create(ctx context.Context, by identity.Identity, in Creation) (
	created Shown, secret string, err error,
) {
	if by.Role != identity.Broker && by.Role != identity.Administrator {
		return created, "", forbidden("only a broker's or an administrator's API key makes webhooks")
	}
	f, err := parseCreation(in.Fields, s.c.CheckURL)
	if err != nil {
		return created, "", err
	}
	if by.TestOnly() && f.mode != testMode {
		const text = "This API key is test-only (level t): send mode test."
		return created, "", fault.New(fault.Forbidden, fault.Body, "mode", text)
	}
	e, err := s.create(ctx, by, in, f)
	if err != nil {
		return created, "", err
	}
	if created, err = s.showOne(ctx, e); err != nil {
		return created, "", err
	}
	secret, _, err = s.c.Seals.Secret(e.Seal)
	return created, secret, err
}

func (s *Service) create(ctx context.Context, by identity.Identity, in Creation, f fields) (Endpoint, error) {
	e := Endpoint{
		ID: newID(), Broker: by.Broker, ByAdmin: by.Role == identity.Administrator, KeyID: by.KeyID,
		URL: f.url, Version: in.Version, Mode: f.mode, Whole: f.whole, Filters: f.filters,
		Created:  s.c.Now().UTC().Truncate(time.Millisecond), // stores keep milliseconds
		Progress: Progress{State: Unverified},
	}
	if f.paused {
		e.State, e.Reason = Disabled, Paused
	}
	for range changeTries {
		if len(in.Seeds) > 0 {
			before, found, err := s.created(ctx, in)
			if found || err != nil {
				return before, err
			}
			sums := in.fingerprint(in.Seeds[0])
			e.ID, e.Request, e.Same = before.ID, sums.Bytes, sums.Canonical
		}
		var err error
		if e.Position, err = s.start(ctx, f.offset); err != nil {
			return e, err
		}
		if e.Seal, err = s.c.Seals.New(); err != nil {
			return e, err
		}
		switch err := s.c.Store.Put(ctx, e); {
		case err == nil:
			return e, nil
		case errors.Is(err, ErrBrokerFull):
			return e, forbidden(fmt.Sprintf("the broker has %d webhooks, the most it may have; remove one first", MaxOfBroker))
		case errors.Is(err, ErrFull):
			const says = "the registry has %d webhooks, the most it can have; ask its operator"
			return e, forbidden(fmt.Sprintf(says, MaxEndpoints))
		case !errors.Is(err, ErrStale): // ErrStale: another process has created this endpoint at the same moment
			return e, unavailable("create a webhook", err)
		}
	}
	return e, unavailable("create a webhook", ErrStale)
}

// created returns the endpoint that an earlier run of the same creation has made. If no run has made an
// endpoint, found is false, and e has only the id for the new endpoint.
func (s *Service) created(ctx context.Context, in Creation) (e Endpoint, found bool, err error) {
	free := ""
	for i, seed := range in.Seeds {
		for use := 0; ; use++ {
			if use == maxUses {
				const text = "This key was used %d times; make a new one."
				return e, false, fault.New(fault.Invalid, fault.Header, "Idempotency-Key", text, maxUses)
			}
			id := derivedID(seed, use)
			e, err = s.c.Store.Endpoint(ctx, id)
			if errors.Is(err, ErrNotFound) {
				if i == 0 {
					free = id
				}
				break
			}
			if err != nil {
				return e, false, unavailable("read webhook "+id, err)
			}
			if s.c.Now().Sub(e.Created).Abs() >= repeatable {
				continue
			}
			if !in.fingerprint(seed).Match(record.Sums{Canonical: e.Same, Bytes: e.Request}) {
				const text = "Another request was made with this key within 24 hours."
				return e, false, fault.New(fault.Invalid, fault.Header, "Idempotency-Key", text)
			}
			return e, true, nil
		}
	}
	return Endpoint{ID: free}, false, nil
}

// newID returns a random id of the form that all ids of the registry have (docs/contract.md, "Identifiers").
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // Read never fails
	return hex.EncodeToString(id[:])
}

// derivedID returns the id of an endpoint that is created with a seed.
func derivedID(seed []byte, use int) string {
	return hex.EncodeToString(derive(seed, "webhook "+strconv.Itoa(use))[:16])
}

func derive(seed []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, seed)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// fingerprint identifies a creation with a seed. Stores keep fingerprints for a day, so a new release must also
// compute the fingerprints of the old release.
func (c Creation) fingerprint(seed []byte) record.Sums {
	keyed := func() hash.Hash { return hmac.New(sha256.New, derive(seed, "webhook fingerprint")) }
	return record.SumsOf(keyed, c.Version+" ", c.Fields)
}
