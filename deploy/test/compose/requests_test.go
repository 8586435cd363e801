package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/clients"
)

// awaitStatus repeats a GET until the answer has the given status.
func awaitStatus(t *testing.T, url, key string, want int) {
	t.Helper()
	await(t, fmt.Sprintf("%d from %s", want, url), func() bool {
		status, _, _, err := send("GET", url, key, "", "")
		return err == nil && status == want
	})
}

// asset is one asset that a test changes many times.
type asset struct {
	url, key, token string
	changes         int
}

// publish creates an asset.
func (s *stack) publish(t *testing.T) *asset {
	t.Helper()
	made := ask(t, "POST", s.public+"/api/2.5/assets", s.key, "", clients.Creation, 201)
	data, _ := made["data"].(map[string]any)
	access, _ := made["access"].(map[string]any)
	return &asset{url: fmt.Sprint(s.public, "/api/2.5/assets/", data["id"]), key: s.key, token: fmt.Sprint(access["token"])}
}

// ask sends a GET or a PATCH for the asset, and checks the status.
func (a *asset) ask(t *testing.T, method string, status int) {
	t.Helper()
	body := ""
	if method == "PATCH" {
		a.changes++
		body = fmt.Sprintf(`{"data":{"title":"%d"}}`, a.changes)
	}
	ask(t, method, a.url, a.key, a.token, body, status)
}

// ask sends a request, checks the status and the form of the answer, and returns the JSON of the answer.
func ask(t *testing.T, method, url, key, token, body string, want int) map[string]any {
	t.Helper()
	status, header, text, err := send(method, url, key, token, body)
	if err != nil || status != want {
		t.Fatalf("%s %s: got %d %s, %v, want %d", method, url, status, text, err, want)
	}
	if status == http.StatusServiceUnavailable && header.Get("Retry-After") == "" {
		t.Errorf("%s %s: got 503 without Retry-After, want it", method, url)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil || header.Get("Content-Type") != "application/json" ||
		header.Get("X-Content-Type-Options") != "nosniff" {
		t.Fatalf("%s %s: got %v %s, want JSON and nosniff", method, url, header, text)
	}
	if status >= 400 && (got["status"] != "error" || got["errors"] == nil) {
		t.Errorf("%s %s: got %s, want an error body", method, url, text)
	}
	return got
}

// send sends a request on a new connection.
func send(method, url, key, token, body string) (status int, header http.Header, text []byte, err error) {
	// This is longer than any timeout of the services.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return clients.Send(ctx, &http.Transport{DisableKeepAlives: true},
		clients.Call{Method: method, URL: url, Key: key, Token: token, Body: body})
}

// awaitRefusal creates assets until a creation gets the given status. Before that, creations may
// succeed.
func (s *stack) awaitRefusal(t *testing.T, want int) {
	t.Helper()
	await(t, fmt.Sprintf("%d for a creation", want), func() bool {
		status, _, text, err := send("POST", s.public+"/api/2.5/assets", s.key, "", clients.Creation)
		if err != nil || status != want && status != http.StatusCreated {
			t.Fatalf("a creation: got %d %s, %v, want %d, or 201 before", status, text, err, want)
		}
		return status == want
	})
}

// inARow is how many successive calls must succeed to show that every service answers. Each service finds out
// separately, within a second or two, that another service is back.
const inARow = 8

// awaitWork waits until assets can be created and changed, through all services.
func (s *stack) awaitWork(t *testing.T) {
	t.Helper()
	done := 0
	await(t, "creations and changes succeed", func() bool {
		done++
		if !s.works(t) {
			done = 0
		}
		return done == inARow
	})
}

// works reports whether an asset can be created and changed.
func (s *stack) works(t *testing.T) bool {
	t.Helper()
	status, _, text, err := send("POST", s.public+"/api/2.5/assets", s.key, "", clients.Creation)
	if err != nil || status != http.StatusCreated {
		return false
	}
	var made struct {
		Access struct{ Token string }
		Data   struct{ ID string }
	}
	if err := json.Unmarshal(text, &made); err != nil {
		t.Fatalf("a creation: got %s, want JSON", text)
	}
	status, _, _, err = send("PATCH", s.public+"/api/2.5/assets/"+made.Data.ID, s.key, made.Access.Token,
		`{"data":{"title":"y"}}`)
	return err == nil && status == http.StatusOK
}
