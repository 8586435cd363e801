package token

import (
	"context"
	"testing"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// handover has an asset of the broker "old" and a transfer of the broker "new".
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
	expect.OK(t, err)
	made, err := s.CreateTransfer(t.Context(), "new", now)
	expect.OK(t, err)
	return &handover{s, store, sealer, issued, made}
}

// request returns a valid request to change the asset's owner.
func (h *handover) request() authapi.ChangeOwnerRequest {
	return authapi.ChangeOwnerRequest{
		AssetID: asset, Broker: "new", TransferID: h.made.ID, TransferHash: authapi.Hash(h.issued.Transfer),
		Sealed: h.issued.Sealed,
	}
}

// The method `is` reports whether a token is valid for the broker, according to the sealed record and the store.
func (h *handover) is(t *testing.T, broker, token, sealed string) bool {
	t.Helper()
	got, err := h.Verify(t.Context(), authapi.VerifyTokenRequest{
		AssetID: asset, Broker: broker, TokenHash: authapi.Hash(token), Sealed: sealed,
	})
	expect.OK(t, err)
	return got.Valid
}

func TestAnAssetChangesHands(t *testing.T) {
	h := newHandover(t)
	changed, err := h.ChangeOwner(t.Context(), h.request(), now)
	expect.FatalIf(t, err != nil || changed.Owner != "new", "got %+v, %v; want owner new", changed, err)
	if !h.is(t, "old", h.issued.Token, h.issued.Sealed) {
		t.Error("the old owner with the old record, before the new record is used: got invalid, want valid")
	}
	if h.is(t, "old", h.issued.Token, changed.Sealed) || !h.is(t, "new", h.made.Token, changed.Sealed) ||
		h.is(t, "old", h.made.Token, changed.Sealed) {
		t.Error("the new record: got another owner, want only the new broker with the new token")
	}
	if h.is(t, "old", h.issued.Token, h.issued.Sealed) {
		t.Error("the old owner with the old record, after the new record is used: got valid, want invalid")
	}
	want := authapi.TransferResponse{ID: h.made.ID, Date: now.UnixMicro(), AssetID: asset}
	// The calls of the method `is` above have shown the asset's new record to the service.
	expect.Value(t, want, "the transfer")(h.read("", now))
}

// read returns the transfer of h.made. The argument `sealed` is the asset's sealed record, or "".
func (h *handover) read(sealed string, now time.Time) (authapi.TransferResponse, error) {
	return h.Transfer(context.Background(), authapi.ReadTransferRequest{ID: h.made.ID, Sealed: sealed}, now)
}

// TestOnlyTheWinnersTransferIsUsed claims two transfers for one asset. The asset uses one of them, the winner. Then a
// call sends the asset's record to the service: a repeated request, or a request to read the other transfer. After
// either call the other transfer must be free again.
func TestOnlyTheWinnersTransferIsUsed(t *testing.T) {
	for name, tell := range map[string]func(t *testing.T, h *handover, loser authapi.ChangeOwnerRequest){
		"its request is repeated": func(t *testing.T, h *handover, loser authapi.ChangeOwnerRequest) {
			expect.FaultOf(t, fault.Forbidden, "")(h.ChangeOwner(t.Context(), loser, now))
		},
		"it is read": func(t *testing.T, h *handover, loser authapi.ChangeOwnerRequest) {
			if _, err := h.Transfer(t.Context(),
				authapi.ReadTransferRequest{ID: loser.TransferID, Sealed: loser.Sealed}, now); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandover(t)
			other, err := h.CreateTransfer(t.Context(), "third", now.Add(-time.Hour))
			expect.OK(t, err)
			loser := h.request()
			loser.Broker, loser.TransferID = "third", other.ID
			won, err := h.ChangeOwner(t.Context(), h.request(), now)
			expect.OK(t, err)
			expect.Get(h.ChangeOwner(t.Context(), loser, now))(t)
			want := authapi.TransferResponse{ID: other.ID, Date: now.Add(-time.Hour).UnixMicro(), Claimed: asset}
			read := authapi.ReadTransferRequest{ID: other.ID, Sealed: loser.Sealed}
			expect.Value(t, want, "before the asset is written")(h.Transfer(t.Context(), read, now))
			loser.Sealed = won.Sealed // the asset now has the record of the winning transfer
			tell(t, h, loser)
			want.Claimed = ""
			expect.Value(t, want, "the other transfer")(h.Transfer(t.Context(),
				authapi.ReadTransferRequest{ID: other.ID}, now))
			want = authapi.TransferResponse{ID: h.made.ID, Date: now.UnixMicro(), AssetID: asset}
			expect.Value(t, want, "the winner's transfer")(h.read("", now))
		})
	}
}

// TestAClaimWithoutAWriteEnds claims a transfer, but never writes the asset. The claim must end after claimTime.
func TestAClaimWithoutAWriteEnds(t *testing.T) {
	h := newHandover(t)
	expect.Get(h.ChangeOwner(t.Context(), h.request(), now))(t)
	for _, c := range []struct {
		at              time.Time
		sealed, claimed string
	}{
		{now.Add(claimTime - time.Microsecond), h.issued.Sealed, asset},
		{now.Add(claimTime), "", asset}, // without the asset's record, it is not known whether the asset was written
		{now.Add(claimTime), h.issued.Sealed, ""},
	} {
		want := authapi.TransferResponse{ID: h.made.ID, Date: now.UnixMicro(), Claimed: c.claimed}
		expect.Value(t, want, "after %s", c.at.Sub(now))(h.read(c.sealed, c.at))
	}
}

// TestARepeatedClaimHoldsLonger repeats a claim before it ends, and never writes the asset. The claim must last
// a minute from the second request.
func TestARepeatedClaimHoldsLonger(t *testing.T) {
	h := newHandover(t)
	if got, err := h.read(h.issued.Sealed, now); err != nil || got.Claimed != "" {
		t.Errorf("before the claim, with the record of an asset: got %+v, %v; want no claim", got, err)
	}
	again := now.Add(claimTime / 2)
	for _, at := range []time.Time{now, again} {
		expect.Get(h.ChangeOwner(t.Context(), h.request(), at))(t)
	}
	if got, err := h.read(h.issued.Sealed, again.Add(claimTime-time.Microsecond)); err != nil || got.Claimed != asset {
		t.Errorf("a minute after the first request: got %+v, %v; want the claim of the second", got, err)
	}
	if got, err := h.read(h.issued.Sealed, again.Add(claimTime)); err != nil || got.Claimed != "" {
		t.Errorf("a minute after the second request: got %+v, %v; want no claim", got, err)
	}
}

func TestWhateverIsInterruptedIsHealedByARepeat(t *testing.T) {
	h := newHandover(t)
	first, err := h.ChangeOwner(t.Context(), h.request(), now)
	expect.OK(t, err)
	// The first request claims the transfer, but the asset is not written.
	second, err := h.ChangeOwner(t.Context(), h.request(), now.Add(time.Hour))
	if err != nil || second != first {
		t.Errorf("repeated before the asset is written: got %+v, %v; want %+v", second, err, first)
	}
	// The asset is written, but the client gets no response. The store then loses the transfer.
	clear(h.store.transfers)
	again := h.request()
	again.Sealed = first.Sealed
	expect.Value(t, first, "repeated after the asset is written")(h.ChangeOwner(t.Context(), again, now))
}

func TestATransferThatNobodyClaimsExpires(t *testing.T) {
	last, over := now.Add(lifetime-time.Microsecond), now.Add(lifetime)
	h := newHandover(t)
	expect.ErrOf(t, nil, "just before the expiry")(h.read("", last))
	_, reading := h.read("", over)
	_, claiming := h.ChangeOwner(t.Context(), h.request(), over)
	_, never := h.Transfer(t.Context(), authapi.ReadTransferRequest{ID: "none"}, over)
	for _, err := range []error{reading, claiming} {
		if fault.KindOf(err) != fault.NotFound || err.Error() != never.Error() {
			t.Errorf("an expired transfer: got %v, want %v", err, never)
		}
	}
	expect.Equal(t, h.store.transfers[h.made.ID].Claim.AssetID, "", "an expired transfer: a claim for asset")
	if err := h.Sweep(t.Context(), over); err != nil || len(h.store.transfers) != 0 {
		t.Errorf("after the sweep: got transfers %v, %v; want none", h.store.transfers, err)
	}

	h = newHandover(t)
	first, err := h.ChangeOwner(t.Context(), h.request(), last)
	expect.Must(t, err, "claimed just before the expiry")
	// The asset is not written. The claim delays the transfer's expiry by the time in the constant `lifetime`.
	last = last.Add(lifetime - time.Microsecond)
	expect.OK(t, h.Sweep(t.Context(), last))
	expect.Value(t, first, "repeated after the expiry")(h.ChangeOwner(t.Context(), h.request(), last))
	if _, err := h.read(first.Sealed, last); err != nil { // the asset was written with the record in first.Sealed
		t.Fatal(err)
	}
	if got, err := h.read("", last.Add(2*lifetime)); err != nil || got.AssetID != asset {
		t.Errorf("used, after two lifetimes: got %+v, %v; want the transfer of asset %s", got, err, asset)
	}
}

func TestChangeOwnerRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, h *handover, r *authapi.ChangeOwnerRequest)
		kind  fault.Kind
		at    string
	}{
		"another transfer token": {func(_ *testing.T, _ *handover, r *authapi.ChangeOwnerRequest) {
			r.TransferHash = authapi.Hash("x")
		}, fault.Forbidden, "body/transfer: Invalid transfer"},
		"the owner token as transfer token": {func(_ *testing.T, h *handover, r *authapi.ChangeOwnerRequest) {
			r.TransferHash = authapi.Hash(h.issued.Token)
		}, fault.Forbidden, "body/transfer: Invalid transfer"},
		"an unknown transfer": {func(_ *testing.T, _ *handover, r *authapi.ChangeOwnerRequest) {
			r.TransferID = "x"
		}, fault.NotFound, "url/transfer_id: Not Found"},
		"an unknown transfer and token": {func(_ *testing.T, _ *handover, r *authapi.ChangeOwnerRequest) {
			r.TransferID, r.TransferHash = "x", "x"
		}, fault.Forbidden, "body/transfer: Invalid transfer"},
		"a transfer of another broker": {func(_ *testing.T, _ *handover, r *authapi.ChangeOwnerRequest) {
			r.Broker = "third"
		}, fault.Forbidden, "body/transfer: Invalid transfer"},
		"a used transfer": {func(t *testing.T, h *handover, r *authapi.ChangeOwnerRequest) {
			used := h.store.transfers[h.made.ID]
			used.AssetID = "another"
			h.store.transfers[h.made.ID] = used
		}, fault.Forbidden, "body/transfer: Transfer already used"},
		"a claimed transfer": {func(t *testing.T, h *handover, r *authapi.ChangeOwnerRequest) {
			expect.Get(h.store.ClaimTransfer(t.Context(), h.made.ID, Claim{AssetID: "another"}))(t)
		}, fault.Forbidden, "body/transfer: Transfer already used"},
		"a used transfer token": {func(t *testing.T, h *handover, r *authapi.ChangeOwnerRequest) {
			changed, err := h.ChangeOwner(t.Context(), *r, now)
			expect.OK(t, err)
			made, err := h.CreateTransfer(t.Context(), "new", now)
			expect.OK(t, err)
			r.Sealed, r.TransferID = changed.Sealed, made.ID
		}, fault.Forbidden, "body/transfer: Invalid transfer"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandover(t)
			r := h.request()
			c.spoil(t, h, &r)
			_, err := h.ChangeOwner(t.Context(), r, now)
			expect.ErrorIf(t, fault.KindOf(err) != c.kind || err.Error() != c.at, "got %v, want %s", err, c.at)
			got, err := h.read("", now)
			if err != nil || (got.AssetID == asset || got.Claimed == asset) && name != "a used transfer token" {
				t.Errorf("the transfer: got %+v, %v; want no claim for the asset", got, err)
			}
		})
	}
	h := newHandover(t)
	forged := h.request()
	forged.AssetID = "another"
	expect.ErrOf(t, ErrForged, "a record of another asset")(h.ChangeOwner(t.Context(), forged, now))
}

// TestOnlyTheSameRequestIsRepeated repeats the request of a handover, after the asset has the new record. The same
// request must get this record again. A request with another token or of another broker must be refused.
func TestOnlyTheSameRequestIsRepeated(t *testing.T) {
	h := newHandover(t)
	changed, err := h.ChangeOwner(t.Context(), h.request(), now)
	expect.OK(t, err)
	same, token, broker := h.request(), h.request(), h.request()
	same.Sealed, token.Sealed, broker.Sealed = changed.Sealed, changed.Sealed, changed.Sealed
	token.TransferHash, broker.Broker = authapi.Hash("x"), "third"
	expect.Value(t, changed, "the same request")(h.ChangeOwner(t.Context(), same, now))
	for name, r := range map[string]authapi.ChangeOwnerRequest{"another token": token, "another broker": broker} {
		expect.FaultOf(t, fault.Forbidden, "%s", name)(h.ChangeOwner(t.Context(), r, now))
	}
}

// TestARestoredAssetIsHandedOverAgain loses the new record of an asset after a handover, as after the restore of an
// older backup. The transfer was used for this asset, so the same request must hand the asset over again.
func TestARestoredAssetIsHandedOverAgain(t *testing.T) {
	h := newHandover(t)
	changed, err := h.ChangeOwner(t.Context(), h.request(), now)
	expect.OK(t, err)
	if got, err := h.read(changed.Sealed, now); err != nil || got.AssetID != asset {
		t.Fatalf("got %+v, %v; want the transfer used for the asset", got, err)
	}
	delete(h.store.records, asset)
	expect.Value(t, changed, "")(h.ChangeOwner(t.Context(), h.request(), now))
}
