package token

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

const lifetime = 90 * 24 * time.Hour

const asset = "00112233445566778899aabbccddeeff"

// memory is a Store in memory. A test can clear it, replace its records, and make its calls fail. The field
// `works` says how many calls succeed. All calls after these return the error in the field `err`.
type memory struct {
	records   map[string]Record
	transfers map[string]Transfer
	err       error
	works     int
	once      bool     // only one call fails, and the next ones work again
	sweeps    []string // the cursors of the calls of SweepTransfers
}

func (m *memory) fails() error {
	if m.err != nil && m.works > 0 {
		m.works--
		return nil
	}
	err := m.err
	if m.once {
		m.err = nil
	}
	return err
}

func (m *memory) Load(_ context.Context, id string) (Record, error) {
	r, found := m.records[id]
	err := m.fails()
	if !found && err == nil {
		return r, ErrNotFound
	}
	return r, err
}

func (m *memory) Save(_ context.Context, r Record) (Record, error) {
	err := m.fails()
	if standing := m.records[r.AssetID]; standing.Generation >= r.Generation || err != nil {
		return standing, err
	}
	m.records[r.AssetID] = r
	return r, nil
}

func (m *memory) CreateTransfer(_ context.Context, t Transfer) error {
	err := m.fails()
	if err == nil {
		m.transfers[t.ID] = t
	}
	return err
}

func (m *memory) LoadTransfer(_ context.Context, id string) (Transfer, error) {
	t, found := m.transfers[id]
	err := m.fails()
	if !found && err == nil {
		return t, ErrNotFound
	}
	return t, err
}

func (m *memory) ClaimTransfer(ctx context.Context, id string, c Claim) (Transfer, error) {
	t, err := m.LoadTransfer(ctx, id)
	if err == nil {
		t = t.Claimed(c)
		m.transfers[id] = t
	}
	return t, err
}

func (m *memory) SettleTransfer(ctx context.Context, id string, c Claim, used bool) (Transfer, error) {
	t, err := m.LoadTransfer(ctx, id)
	if err == nil {
		t = t.Settled(c, used)
		m.transfers[id] = t
	}
	return t, err
}

// SweepTransfers removes all expired transfers in the first step, and returns a cursor for a second step.
func (m *memory) SweepTransfers(_ context.Context, cursor string, now time.Time) (string, error) {
	m.sweeps = append(m.sweeps, cursor)
	for id, t := range m.transfers {
		if t.Expired(now) {
			delete(m.transfers, id)
		}
	}
	if cursor == "" {
		return "half", m.fails()
	}
	return "", m.fails()
}

func (m *memory) Ready(context.Context) error { return m.err }
func (m *memory) Close() error                { return nil }

func newService(t *testing.T, secret string) (*Service, *memory, *Sealer) {
	t.Helper()
	sealer, err := NewSealer(keyring.Ring{[]byte(strings.Repeat(secret, 32))})
	expect.OK(t, err)
	store := &memory{records: map[string]Record{}, transfers: map[string]Transfer{}}
	return NewService(store, sealer, lifetime), store, sealer
}

func TestIssuedTokensAreRandomAndUnknownToAllButTheirHolder(t *testing.T) {
	s, store, sealer := newService(t, "a")
	form := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := map[string]bool{}
	for range 100 {
		issued, err := s.Issue(asset, "broker")
		expect.OK(t, err)
		for _, token := range []string{issued.Token, issued.Transfer} {
			if !form.MatchString(token) || seen[token] {
				t.Fatalf("got token %q, want a new one of 32 hexadecimal digits", token)
			}
			seen[token] = true
			if strings.Contains(issued.Sealed, token) {
				t.Errorf("got sealed record %q, want no token in it", issued.Sealed)
			}
		}
		want := Record{
			AssetID: asset, Broker: "broker", Generation: 1,
			OwnerHash: authapi.Hash(issued.Token), TransferHash: authapi.Hash(issued.Transfer),
		}
		expect.Value(t, want, "")(sealer.Unseal(issued.Sealed))
	}
	expect.ErrorIf(t, len(store.records) != 0, "got stored records %v, want none", store.records)
}

func TestVerify(t *testing.T) {
	s, _, _ := newService(t, "a")
	issued, err := s.Issue(asset, "broker")
	expect.OK(t, err)
	for name, c := range map[string]struct {
		broker, token string
		want          bool
	}{
		"the owner with the token":              {"broker", issued.Token, true},
		"another broker with the token":         {"other", issued.Token, false},
		"the owner with another token":          {"broker", strings.Repeat("0", 32), false},
		"the owner without a token":             {"broker", "", false},
		"the owner with the transfer token":     {"broker", issued.Transfer, false},
		"the owner with the token in uppercase": {"broker", strings.ToUpper(issued.Token), false},
	} {
		got, err := s.Verify(t.Context(), authapi.VerifyTokenRequest{
			AssetID: asset, Broker: c.broker, TokenHash: authapi.Hash(c.token), Sealed: issued.Sealed,
		})
		if err != nil || got.Valid != c.want || got.Sealed != "" {
			t.Errorf("%s: got %+v, %v; want Valid %v and no new record", name, got, err, c.want)
		}
	}
}

func TestTheNewerRecordCounts(t *testing.T) {
	s, store, sealer := newService(t, "a")
	first := Record{AssetID: asset, Broker: "old", OwnerHash: authapi.Hash("old"), Generation: 1}
	second := Record{AssetID: asset, Broker: "new", OwnerHash: authapi.Hash("new"), Generation: 2}
	seal := func(r Record) string {
		t.Helper()
		sealed, err := sealer.Seal(r)
		expect.OK(t, err)
		return sealed
	}
	for name, c := range map[string]struct {
		stored, sealed Record
		told           bool   // the response has a newer record for the asset
		left           Record // the store's record afterwards
		owner          string
	}{
		"the store is empty":                     {Record{}, first, false, first, "old"},
		"the store has the same record":          {first, first, false, first, "old"},
		"the store has an older record":          {first, second, false, second, "new"},
		"the asset has an older record":          {second, first, true, second, "new"},
		"the store is empty after a later owner": {Record{}, second, false, second, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			clear(store.records)
			if c.stored.Generation > 0 {
				store.records[asset] = c.stored
			}
			for _, who := range []string{"old", "new"} {
				got, err := s.Verify(t.Context(), authapi.VerifyTokenRequest{
					AssetID: asset, Broker: who, TokenHash: authapi.Hash(who), Sealed: seal(c.sealed),
				})
				if err != nil || got.Valid != (who == c.owner) {
					t.Errorf("%s: got %+v, %v; want Valid %v", who, got, err, who == c.owner)
				}
				if told := got.Sealed != ""; told != c.told {
					t.Errorf("%s: got a newer record: %v, want %v", who, told, c.told)
				}
			}
			expect.Equal(t, store.records[asset], c.left, "stored record")
		})
	}
}

func TestForgedRecordsAreRefused(t *testing.T) {
	s, _, _ := newService(t, "a")
	stranger, _, _ := newService(t, "b")
	issued, err := s.Issue(asset, "broker")
	expect.OK(t, err)
	strange, err := stranger.Issue(asset, "broker")
	expect.OK(t, err)
	for name, c := range map[string]struct{ id, sealed string }{
		"no record":                  {asset, ""},
		"a record of another asset":  {strings.Repeat("0", 32), issued.Sealed},
		"a record sealed elsewhere":  {asset, strange.Sealed},
		"a changed record":           {asset, "x" + issued.Sealed},
		"a record without signature": {asset, issued.Sealed[:strings.LastIndexByte(issued.Sealed, '.')+1]},
	} {
		got, err := s.Verify(t.Context(), authapi.VerifyTokenRequest{
			AssetID: c.id, Broker: "broker", TokenHash: authapi.Hash(issued.Token), Sealed: c.sealed,
		})
		expect.ErrorIf(t, !errors.Is(err, ErrForged) || got.Valid, "%s: got %+v, %v; want ErrForged", name, got, err)
	}
}

// TestAStoreThatDoesNotAnswerIsNoRefusal lets each call of the store fail in turn: only this call, or all calls
// from this one on. The error of the store must be returned.
func TestAStoreThatDoesNotAnswerIsNoRefusal(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(ctx context.Context, h *handover, changed authapi.ChangeOwnerResponse) error
		calls int // number of calls of the store
	}{
		{"a verification", func(ctx context.Context, h *handover, _ authapi.ChangeOwnerResponse) error {
			_, err := h.Verify(ctx, authapi.VerifyTokenRequest{AssetID: asset, Broker: "old", Sealed: h.issued.Sealed})
			return err
		}, 2},
		{"a verification of a new owner", func(
			ctx context.Context, h *handover, changed authapi.ChangeOwnerResponse,
		) error {
			_, err := h.Verify(ctx, authapi.VerifyTokenRequest{AssetID: asset, Broker: "new", Sealed: changed.Sealed})
			return err
		}, 4},
		{"a new transfer", func(ctx context.Context, h *handover, _ authapi.ChangeOwnerResponse) error {
			_, err := h.CreateTransfer(ctx, "new", now)
			return err
		}, 1},
		{"a transfer that is read", func(ctx context.Context, h *handover, _ authapi.ChangeOwnerResponse) error {
			_, err := h.Transfer(ctx, authapi.ReadTransferRequest{ID: h.made.ID}, now)
			return err
		}, 1},
		{"a claimed transfer that is read", func(
			ctx context.Context, h *handover, changed authapi.ChangeOwnerResponse,
		) error {
			_, err := h.Transfer(ctx, authapi.ReadTransferRequest{ID: h.made.ID, Sealed: changed.Sealed}, now)
			return err
		}, 6},
		{"a change of the owner", func(ctx context.Context, h *handover, _ authapi.ChangeOwnerResponse) error {
			_, err := h.ChangeOwner(ctx, h.request(), now)
			return err
		}, 4},
		{"a change of the owner with another token", func(
			ctx context.Context, h *handover, changed authapi.ChangeOwnerResponse,
		) error {
			r := h.request()
			r.TransferHash, r.Sealed = authapi.Hash("x"), h.issued.Sealed
			if _, err := h.ChangeOwner(ctx, r, now); fault.KindOf(err) != fault.Forbidden {
				return err
			}
			return nil
		}, 3},
		{"a sweep", func(ctx context.Context, h *handover, _ authapi.ChangeOwnerResponse) error {
			return h.Sweep(ctx, now)
		}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range 2 * (c.calls + 1) {
				works, down := i/2, errors.New("down")
				h := newHandover(t)
				changed, err := h.ChangeOwner(t.Context(), h.request(), now)
				expect.OK(t, err)
				clear(h.store.records)
				h.store.err, h.store.works, h.store.once = down, works, i%2 == 0
				err = c.do(t.Context(), h, changed)
				if want := works < c.calls; errors.Is(err, down) != want || !want && err != nil {
					t.Errorf("the store fails after %d calls, once: %v: got %v, want its error: %v", works, i%2 == 0, err, want)
				}
			}
		})
	}
}

// TestAKnownRecordIsReadOnce verifies a token again, on a store that allows one read and nothing else.
func TestAKnownRecordIsReadOnce(t *testing.T) {
	h := newHandover(t)
	expect.ErrorIf(t, !h.is(t, "old", h.issued.Token, h.issued.Sealed), "the first time: got invalid, want valid")
	h.store.err, h.store.works = errors.New("another call"), 1
	expect.ErrorIf(t, !h.is(t, "old", h.issued.Token, h.issued.Sealed), "again: got invalid, want valid")
}

func TestASweepGoesOnUntilItsEnd(t *testing.T) {
	h := newHandover(t)
	if err := h.Sweep(t.Context(), now); err != nil || !slices.Equal(h.store.sweeps, []string{"", "half"}) {
		t.Errorf("got steps from %q, %v; want them from the beginning and from the half", h.store.sweeps, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.store.sweeps = nil
	if err := h.Sweep(ctx, now); !errors.Is(err, context.Canceled) || len(h.store.sweeps) != 1 {
		t.Errorf("cancelled: got steps from %q, %v; want one, and the context's error", h.store.sweeps, err)
	}
}

func FuzzUnseal(f *testing.F) {
	sealer, err := NewSealer(keyring.Ring{[]byte(strings.Repeat("a", 32))})
	expect.OK(f, err)
	real, err := sealer.Seal(Record{AssetID: asset, Broker: "broker", Generation: 1})
	expect.OK(f, err)
	for _, seed := range []string{real, real[:len(real)-1], real[:9] + "\n" + real[9:], real + "\r", "a.b.c", "..", "", "eyJhbGciOiJub25lIn0.e30."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sealed string) {
		if got, err := sealer.Unseal(sealed); err == nil && sealed != real {
			t.Fatalf("%q: got %+v, want an error", sealed, got)
		}
	})
}

func TestTokensAreIssuedAgainToWhoHasTheSeed(t *testing.T) {
	s, store, sealer := newService(t, "a")
	form := regexp.MustCompile(`^[0-9a-f]{32}$`)
	const other = "ffeeddccbbaa99887766554433221100"
	seen := map[string]bool{}
	for _, c := range []struct{ asset, seed string }{{asset, "seed"}, {other, "seed"}, {asset, "another"}} {
		issued, err := s.IssueAgain(c.asset, "broker", []byte(c.seed))
		expect.OK(t, err)
		for _, token := range []string{issued.Token, issued.Transfer} {
			if !form.MatchString(token) || seen[token] || strings.Contains(issued.Sealed, token) {
				t.Errorf("%v: got token %q, want a new one of 32 hexadecimal digits outside the record", c, token)
			}
			seen[token] = true
		}
		expect.Value(t, issued, "the same seed again")(s.IssueAgain(c.asset, "broker", []byte(c.seed)))
		want := Record{
			AssetID: c.asset, Broker: "broker", Generation: 1,
			OwnerHash: authapi.Hash(issued.Token), TransferHash: authapi.Hash(issued.Transfer),
		}
		expect.Value(t, want, "")(sealer.Unseal(issued.Sealed))
	}
	expect.ErrorIf(t, len(store.records) != 0, "got stored records %v, want none", store.records)
}
