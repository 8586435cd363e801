package token

import (
	"strings"
	"testing"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/keyring"
)

// withSecrets returns a service that has secrets, of a letter each.
func withSecrets(t *testing.T, letters string) *Service {
	t.Helper()
	var ring keyring.Ring
	for _, letter := range letters {
		ring = append(ring, []byte(strings.Repeat(string(letter), 32)))
	}
	sealer, err := NewSealer(ring)
	if err != nil {
		t.Fatal(err)
	}
	return NewService(&memory{records: map[string]Record{}, transfers: map[string]Transfer{}}, sealer, time.Hour)
}

// TestTokensOutliveTheirSecret takes a record through a rotation from secret a to b.
func TestTokensOutliveTheirSecret(t *testing.T) {
	issued, err := withSecrets(t, "a").Issue(asset, "broker")
	if err != nil {
		t.Fatal(err)
	}
	verify := func(letters, sealed string) (authapi.VerifyTokenResponse, error) {
		return withSecrets(t, letters).Verify(t.Context(), authapi.VerifyTokenRequest{
			AssetID: asset, Broker: "broker", TokenHash: authapi.Hash(issued.Token), Sealed: sealed,
		})
	}
	if got, err := verify("ab", issued.Sealed); err != nil || !got.Valid || got.Sealed != "" {
		t.Errorf("when b is known: got %+v, %v; want it valid as it is", got, err)
	}
	anew, err := verify("ba", issued.Sealed)
	if err != nil || !anew.Valid || !anew.Resealed || anew.Owner != "broker" || anew.Sealed == issued.Sealed {
		t.Errorf("when b comes first: got %+v, %v; want it valid, and sealed anew", anew, err)
	}
	if got, err := verify("b", anew.Sealed); err != nil || !got.Valid || got.Sealed != "" {
		t.Errorf("when a is gone: got %+v, %v; want it valid as it is", got, err)
	}
	if got, err := verify("b", issued.Sealed); err == nil {
		t.Errorf("sealed by a, when that is gone: got %+v, want ErrForged", got)
	}
	both := []string{issued.Sealed, anew.Sealed, "forged"}
	if got, foreign, err := withSecrets(t, "ba").Reseal(both); err != nil || foreign != 1 || got[0] != anew.Sealed || got[1]+got[2] != "" {
		t.Errorf("sealed anew: got %q, %d, %v; want the first as %q, and 1 foreign", got, foreign, err, anew.Sealed)
	}
}
