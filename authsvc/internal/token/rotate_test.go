package token

import (
	"strings"
	"testing"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// withSecrets returns a service whose keyring has one secret for each letter.
func withSecrets(t *testing.T, letters string) *Service {
	t.Helper()
	var ring keyring.Ring
	for _, letter := range letters {
		ring = append(ring, []byte(strings.Repeat(string(letter), 32)))
	}
	sealer, err := NewSealer(ring)
	expect.OK(t, err)
	return NewService(&memory{records: map[string]Record{}, transfers: map[string]Transfer{}}, sealer, time.Hour)
}

// TestTokensOutliveTheirSecret seals a record with a secret that consists of letters "a". Then it replaces this
// secret by one of letters "b". The tokens must stay valid, and the new secret must seal the record again.
func TestTokensOutliveTheirSecret(t *testing.T) {
	issued, err := withSecrets(t, "a").Issue(asset, "broker")
	expect.OK(t, err)
	verify := func(letters, sealed string) (authapi.VerifyTokenResponse, error) {
		return withSecrets(t, letters).Verify(t.Context(), authapi.VerifyTokenRequest{
			AssetID: asset, Broker: "broker", TokenHash: authapi.Hash(issued.Token), Sealed: sealed,
		})
	}
	if got, err := verify("ab", issued.Sealed); err != nil || !got.Valid || got.Sealed != "" {
		t.Errorf("secrets a, b: got %+v, %v; want Valid and no new record", got, err)
	}
	anew, err := verify("ba", issued.Sealed)
	if err != nil || !anew.Valid || !anew.Resealed || anew.Owner != "broker" || anew.Sealed == issued.Sealed {
		t.Errorf("secrets b, a: got %+v, %v; want Valid and a resealed record", anew, err)
	}
	if got, err := verify("b", anew.Sealed); err != nil || !got.Valid || got.Sealed != "" {
		t.Errorf("secret b, resealed record: got %+v, %v; want Valid and no new record", got, err)
	}
	if got, err := verify("b", issued.Sealed); err == nil {
		t.Errorf("secret b, old record: got %+v, want an error", got)
	}
	both := []string{issued.Sealed, anew.Sealed, "forged"}
	got, foreign, err := withSecrets(t, "ba").Reseal(both)
	if err != nil || foreign != 1 || got[0] != anew.Sealed || got[1]+got[2] != "" {
		t.Errorf("reseal: got %q, %d foreign, %v; want only %q, 1 foreign", got, foreign, err, anew.Sealed)
	}
}
