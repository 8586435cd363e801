package token

import (
	"testing"

	"asset-registry/shared/authapi"
	"asset-registry/shared/testing/expect"
)

// TestARecoveryEndsTheOldTokens gives an asset new tokens. The new ones must become valid, and the old ones
// invalid, when the asset has its new record.
func TestARecoveryEndsTheOldTokens(t *testing.T) {
	h := newHandover(t)
	got, err := h.Recover(t.Context(), asset, h.issued.Sealed)
	if err != nil || got.Owner != "old" || len(got.Token) != 2*tokenSize || len(got.Transfer) != 2*tokenSize ||
		got.Token == h.issued.Token || got.Transfer == h.issued.Transfer || got.Token == got.Transfer {
		t.Fatalf("got %+v, %v; want the owner old and two new tokens", got, err)
	}
	if !h.is(t, "old", h.issued.Token, h.issued.Sealed) {
		t.Error("the old token with the old record, before the new record is used: got invalid, want valid")
	}
	if h.is(t, "old", h.issued.Token, got.Sealed) || !h.is(t, "old", got.Token, got.Sealed) ||
		h.is(t, "new", got.Token, got.Sealed) {
		t.Error("the new record: got another token, want only the owner with the new token")
	}
	if h.is(t, "old", h.issued.Token, h.issued.Sealed) {
		t.Error("the old token with the old record, after the new record is used: got valid, want invalid")
	}
	r := h.request()
	r.Sealed = got.Sealed
	expect.FailsOf(t, "a hand-over with the old transfer token")(h.ChangeOwner(t.Context(), r, now))
	r.TransferHash = authapi.Hash(got.Transfer)
	if changed, err := h.ChangeOwner(t.Context(), r, now); err != nil || changed.Owner != "new" {
		t.Errorf("a hand-over with the new transfer token: got %+v, %v; want the owner new", changed, err)
	}
	expect.ErrOf(t, ErrForged, "a record of another asset")(h.Recover(t.Context(), "another", got.Sealed))
}

// TestARecoveryFreesAClaimedTransfer recovers an asset after a transfer was claimed for it, but before the asset
// gets its new owner. Then the transfer must be free again, and the asset must not get this owner with the old
// token.
func TestARecoveryFreesAClaimedTransfer(t *testing.T) {
	h := newHandover(t)
	expect.Get(h.ChangeOwner(t.Context(), h.request(), now))(t)
	got, err := h.Recover(t.Context(), asset, h.issued.Sealed)
	expect.OK(t, err)
	if shown, err := h.read(got.Sealed, now); err != nil || shown.Claimed != "" || shown.AssetID != "" {
		t.Errorf("the transfer: got %+v, %v; want it free", shown, err)
	}
	again := h.request()
	again.Sealed = got.Sealed
	expect.FailsOf(t, "the interrupted hand-over again")(h.ChangeOwner(t.Context(), again, now))
}

// TestARecoveryAfterAHandover gives new tokens to an asset that has changed its owner. The transfer must stay
// used, and nobody may repeat the change of owner.
func TestARecoveryAfterAHandover(t *testing.T) {
	h := newHandover(t)
	changed, err := h.ChangeOwner(t.Context(), h.request(), now)
	expect.OK(t, err)
	got, err := h.Recover(t.Context(), asset, changed.Sealed)
	expect.FatalIf(t, err != nil || got.Owner != "new", "got %+v, %v; want the owner new", got, err)
	if h.is(t, "new", h.made.Token, got.Sealed) || !h.is(t, "new", got.Token, got.Sealed) {
		t.Error("got the token of the transfer, want the recovered one only")
	}
	if shown, err := h.read("", now); err != nil || shown.AssetID != asset {
		t.Errorf("the transfer: got %+v, %v; want it used", shown, err)
	}
	again := h.request()
	again.Sealed = got.Sealed
	expect.FailsOf(t, "the hand-over again")(h.ChangeOwner(t.Context(), again, now))
}
