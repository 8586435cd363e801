package feed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"asset-registry/shared/identity"
	"asset-registry/shared/randtest"
)

// callTimeout is how long a call waits for an answer. A call to a frozen service ends after this time.
const callTimeout = 4 * time.Second

// services are the asset services, or registries that run in one process. Each request goes to one of them at
// random.
type services struct {
	bases  []string
	edges  []string // gateways in front of the services, for live followers
	key    string   // an API key for registries in one process; if empty, requests are signed by signer
	signer *identity.Signer
	client *http.Client
	within time.Duration // how long a call waits for an answer; 0 means callTimeout
	watch  *watch        // nil if nobody checks the status of each answer
}

var broker = identity.Identity{Broker: "broker", KeyID: "feedcheck", Role: identity.Broker, Levels: "1234"}

// call sends a request to a random service, and decodes a successful answer. The last argument is a pointer to the
// variable for the decoded answer. The result is the status, or 0 if no complete answer came.
func (s *services) call(ctx context.Context, method, path, token string, body, into any) int {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			panic(err) // the test itself is wrong
		}
	}
	return s.send(ctx, method, path, token, "application/json", text, into)
}

// send does the same with a body of any type. If the last argument points to bytes, it gets the whole answer.
func (s *services) send(ctx context.Context, method, path, token, contentType string, text []byte, into any) int {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.within, callTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.bases[randtest.IntN(len(s.bases))]+path, bytes.NewReader(text))
	if err != nil {
		panic(err) // the test itself is wrong
	}
	if s.key != "" {
		req.SetBasicAuth(s.key, "")
	} else {
		signed, err := s.signer.Sign(broker)
		if err != nil {
			panic(err) // the test itself is wrong
		}
		req.Header.Set(identity.Header, signed)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Access-Token", token)
	resp, err := s.client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	if raw, ok := into.(*[]byte); ok {
		*raw = answer
	} else if resp.StatusCode < 300 && json.Unmarshal(answer, into) != nil {
		return 0
	}
	return resp.StatusCode
}

// asset returns a small valid asset. The parameter `mode` is "test", or "" for a real asset.
func asset(description, mode string) map[string]any {
	address := map[string]any{"countryName": "Україна"}
	a := map[string]any{
		"assetType":   "bounce",
		"title":       "т",
		"description": description,
		"items": []any{map[string]any{
			"description":         "о",
			"classification":      map[string]any{"scheme": "CAV-PS", "id": "06111000-3", "description": "з"},
			"address":             address,
			"unit":                map[string]any{"code": "c"},
			"quantity":            1,
			"registrationDetails": map[string]any{"status": "unknown"},
		}},
		"decisions": []any{map[string]any{"decisionDate": "2026-11-20T12:00:00+02:00", "decisionID": "1"}},
		"assetCustodian": map[string]any{
			"name":         "Ф",
			"identifier":   map[string]any{"scheme": "UA-EDR", "id": "1"},
			"address":      address,
			"contactPoint": map[string]any{"name": "Д", "telephone": "1"},
		},
	}
	if mode != "" {
		a["mode"] = mode
	}
	return a
}
