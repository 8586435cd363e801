package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/memory"
)

// The transfers that the auth service of the tests has. The first one was used for the asset lowID.
const (
	usedTransfer   = "11111111111111111111111111111111"
	unusedTransfer = "22222222222222222222222222222222"
)

func (tokens) CreateTransfer(context.Context, string) (authapi.CreateTransferResponse, error) {
	made := authapi.TransferResponse{ID: unusedTransfer, Date: noon}
	return authapi.CreateTransferResponse{TransferResponse: made, Token: "token 3", Transfer: "transfer 3"}, nil
}

func (tokens) ReadTransfer(_ context.Context, r authapi.ReadTransferRequest) (authapi.TransferResponse, error) {
	switch r.ID {
	case usedTransfer:
		return authapi.TransferResponse{ID: r.ID, Date: noon, AssetID: lowID}, nil
	case unusedTransfer:
		return authapi.TransferResponse{ID: r.ID, Date: noon}, nil
	}
	return authapi.TransferResponse{}, fault.New(fault.NotFound, fault.URL, "transfer_id", "Not Found")
}

// TestTransfersAndOwnershipChanges sends valid and refused requests about transfers. Only the answer to a creation has
// the tokens. Some changes of an owner have several faults, and the first must be reported.
func TestTransfersAndOwnershipChanges(t *testing.T) {
	m := NewMemory(1 << 30)
	s := newServiceWith(t, m)
	const transfers, date = "/api/2.5/transfers", `"date":"2025-11-20T12:00:00.000000+00:00"`
	at, missing := s.published(t)+"/ownership", "/api/2.5/assets/"+strings.Repeat("0", 32)+"/ownership"
	unused := `"data":{"id":"` + unusedTransfer + `",` + date + `}}`
	for _, c := range []struct {
		name string
		exchange
		whole bool // the answer has only the text in says
	}{
		{"a creation", exchange{"POST", transfers, identity.Broker, "", `{"data":{}}`, 201,
			`{"access":{"token":"token 3","transfer":"transfer 3"},` + unused}, true},
		{"an unused transfer", exchange{"GET", transfers + "/" + unusedTransfer, "", "", "", 200, "{" + unused}, true},
		{"a used transfer", exchange{"GET", transfers + "/" + usedTransfer, "", "", "", 200,
			`{"data":{"id":"` + usedTransfer + `",` + date + `,"usedFor":"/assets/` + lowID + `"}}`}, true},
		{"a creation without a key", exchange{"POST", transfers, "", "", `{"data":{}}`, 403, "permission"}, false},
		{"a creation without data", exchange{"POST", transfers, identity.Broker, "", `no JSON`, 400, `"name":"data"`}, false},
		{"a creation with a field", exchange{"POST", transfers, identity.Broker, "", `{"data":{"x":1}}`, 400, "Rogue"}, false},
		{"an unknown transfer", exchange{"GET", transfers + "/x", "", "", "", 404, "transfer_id"}, false},
		{"a malformed query", exchange{"GET", transfers + "/" + usedTransfer + "?%zz", "", "", "", 400, "query"}, false},
		{"a change without data", exchange{"POST", at, identity.Broker, "", `no JSON`, 400, `"name":"data"`}, false},
		{"a change without a transfer", exchange{"POST", at, identity.Broker, "", `{"data":{}}`, 400, `"transfer"`}, false},
		{"a missing asset without data", exchange{"POST", missing, identity.Broker, "", `no JSON`, 404, "asset_id"}, false},
		{"a missing asset without a transfer", exchange{"POST", missing, identity.Broker, "", `{"data":{}}`, 404,
			"asset_id"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := s.do(t, c.exchange).Body.String(); c.whole && got != c.says {
				t.Errorf("got %s, want %s", got, c.says)
			}
		})
	}
	tag := s.do(t, exchange{"HEAD", strings.TrimSuffix(at, "/ownership"), identity.Broker, "", "", 200, ""}).Header().Get("ETag")
	body := `{"data":{"id":"` + unusedTransfer + `","transfer":"transfer"}}`
	s.doWith(t, http.Header{"If-Match": {`"x"`}}, exchange{"POST", at, identity.Broker, "", body, 412, "precondition"})
	s.doWith(t, http.Header{"If-Match": {tag}}, exchange{"POST", at, identity.Broker, "", body, 200, `{"data":{`})
	for m.Answers.Hold(memory.Small) || m.Answers.Hold(1) {
	}
	s.do(t, exchange{"GET", transfers + "/" + usedTransfer, "", "", "", 503, "too many large requests"})
}
