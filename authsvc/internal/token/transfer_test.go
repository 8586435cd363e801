package token

import (
	"errors"
	"testing"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// handover is an asset of "old", and a transfer that "new" has made.
type handover struct {
	*Service
	store  *memory
	sealer *Sealer
	issued authapi.IssueTokensResponse
	made   authapi.CreateTransferResponse
}

func newHandover(t *testing.T) *handover {
	t.Helper()
	s, store, sealer := newService(t, "a")
	issued, err := s.Issue(asset, "old")
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.CreateTransfer(t.Context(), "new", now)
	if err != nil {
		t.Fatal(err)
	}
	return &handover{s, store, sealer, issued, made}
}

// request is the one that is right.
func (h *handover) request() authapi.ChangeOwnerRequest {
	return authapi.ChangeOwnerRequest{AssetID: asset, Broker: "new", TransferID: h.made.ID, TransferHash: authapi.Hash(h.issued.Transfer), Sealed: h.issued.Sealed}
}

// is tells whether a token is an asset's, by a sealed record.
func (h *handover) is(t *testing.T, broker, token, sealed string) bool {
	t.Helper()
	got, err := h.Verify(t.Context(), authapi.VerifyTokenRequest{AssetID: asset, Broker: broker, TokenHash: authapi.Hash(token), Sealed: sealed})
	if err != nil {
		t.Fatal(err)
	}
	return got.Valid
}

func TestAnAssetChangesHands(t *testing.T) {
	h := newHandover(t)
	changed, err := h.ChangeOwner(t.Context(), h.request(), now)
	if err != nil || changed.Owner != "new" {
		t.Fatalf("got %+v, %v", changed, err)
	}
	if !h.is(t, "old", h.issued.Token, h.issued.Sealed) {
		t.Error("the old owner lost the asset before it was written")
	}
	if h.is(t, "old", h.issued.Token, changed.Sealed) || !h.is(t, "new", h.made.Token, changed.Sealed) || h.is(t, "old", h.made.Token, changed.Sealed) {
		t.Error("the record does not make the new broker the owner, and him alone")
	}
	if h.is(t, "old", h.issued.Token, h.issued.Sealed) {
		t.Error("the old token lives on with an old record")
	}
	if got, err := h.Transfer(t.Context(), h.made.ID, now); err != nil || got != (authapi.TransferResponse{ID: h.made.ID, Date: now.UnixMicro(), AssetID: asset}) {
		t.Errorf("the transfer is %+v, %v", got, err)
	}
}

func TestWhateverIsInterruptedIsHealedByARepeat(t *testing.T) {
	h := newHandover(t)
	first, err := h.ChangeOwner(t.Context(), h.request(), now)
	if err != nil {
		t.Fatal(err)
	}
	// The transfer is claimed, and the asset was not written.
	second, err := h.ChangeOwner(t.Context(), h.request(), now.Add(time.Hour))
	if err != nil || second != first {
		t.Errorf("got %+v, %v; want %+v", second, err, first)
	}
	// The asset was written, and nobody was told; Redis has forgotten all.
	clear(h.store.transfers)
	again := h.request()
	again.Sealed = first.Sealed
	if third, err := h.ChangeOwner(t.Context(), again, now); err != nil || third != first {
		t.Errorf("got %+v, %v; want %+v", third, err, first)
	}
}

func TestATransferThatNobodyClaimsExpires(t *testing.T) {
	last, over := now.Add(lifetime-time.Microsecond), now.Add(lifetime)
	h := newHandover(t)
	if _, err := h.Transfer(t.Context(), h.made.ID, last); err != nil {
		t.Errorf("in its last moment: got %v, want the transfer", err)
	}
	_, reading := h.Transfer(t.Context(), h.made.ID, over)
	_, claiming := h.ChangeOwner(t.Context(), h.request(), over)
	_, never := h.Transfer(t.Context(), "none", over)
	for _, err := range []error{reading, claiming} {
		if fault.KindOf(err) != fault.NotFound || err.Error() != never.Error() {
			t.Errorf("expired: got %v, want %v", err, never)
		}
	}
	if got := h.store.transfers[h.made.ID]; got.AssetID != "" {
		t.Errorf("an expired transfer was claimed: got %+v", got)
	}
	if err := h.Sweep(t.Context(), over); err != nil || len(h.store.transfers) != 0 {
		t.Errorf("swept: got %v, %v; want none left", h.store.transfers, err)
	}

	h = newHandover(t)
	first, err := h.ChangeOwner(t.Context(), h.request(), last)
	if err != nil {
		t.Fatalf("claimed in its last moment: got %v", err)
	}
	// The asset was not written. The same request comes again long after.
	if err := h.Sweep(t.Context(), over.Add(lifetime)); err != nil {
		t.Fatal(err)
	}
	if second, err := h.ChangeOwner(t.Context(), h.request(), over.Add(lifetime)); err != nil || second != first {
		t.Errorf("repeated: got %+v, %v; want %+v", second, err, first)
	}
}

func TestChangeOwnerRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, h *handover, r *authapi.ChangeOwnerRequest)
		kind  fault.Kind
		at    string
	}{
		"another token": {func(_ *testing.T, _ *handover, r *authapi.ChangeOwnerRequest) { r.TransferHash = authapi.Hash("x") }, fault.Forbidden, "body/transfer: Invalid transfer"},
		"the owner token": {func(_ *testing.T, h *handover, r *authapi.ChangeOwnerRequest) {
			r.TransferHash = authapi.Hash(h.issued.Token)
		}, fault.Forbidden, "body/transfer: Invalid transfer"},
		"a transfer of nobody": {func(_ *testing.T, _ *handover, r *authapi.ChangeOwnerRequest) { r.TransferID = "x" }, fault.NotFound, "url/transfer_id: Not Found"},
		"neither": {func(_ *testing.T, _ *handover, r *authapi.ChangeOwnerRequest) {
			r.TransferID, r.TransferHash = "x", "x"
		},
			fault.Forbidden, "body/transfer: Invalid transfer"},
		"a transfer of another broker": {func(_ *testing.T, _ *handover, r *authapi.ChangeOwnerRequest) { r.Broker = "third" }, fault.Forbidden, "body/transfer: Invalid transfer"},
		"a transfer that is used": {func(t *testing.T, h *handover, r *authapi.ChangeOwnerRequest) {
			if _, err := h.store.ClaimTransfer(t.Context(), h.made.ID, "another", 1); err != nil {
				t.Fatal(err)
			}
		}, fault.Forbidden, "body/transfer: Transfer already used"},
		"a token that was used": {func(t *testing.T, h *handover, r *authapi.ChangeOwnerRequest) {
			changed, err := h.ChangeOwner(t.Context(), *r, now)
			if err != nil {
				t.Fatal(err)
			}
			made, err := h.CreateTransfer(t.Context(), "new", now)
			if err != nil {
				t.Fatal(err)
			}
			r.Sealed, r.TransferID = changed.Sealed, made.ID
		}, fault.Forbidden, "body/transfer: Invalid transfer"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandover(t)
			r := h.request()
			c.spoil(t, h, &r)
			_, err := h.ChangeOwner(t.Context(), r, now)
			if fault.KindOf(err) != c.kind || err.Error() != c.at {
				t.Errorf("got %v; want %s", err, c.at)
			}
			if got, err := h.Transfer(t.Context(), h.made.ID, now); err != nil || got.AssetID == asset && name != "a token that was used" {
				t.Errorf("the transfer is %+v, %v", got, err)
			}
		})
	}
	h := newHandover(t)
	forged := h.request()
	forged.AssetID = "another"
	if _, err := h.ChangeOwner(t.Context(), forged, now); !errors.Is(err, ErrForged) {
		t.Errorf("another asset's record: %v", err)
	}
}
