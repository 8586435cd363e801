package client

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

func TestAProofIsReadAsItWasSent(t *testing.T) {
	r := newRegistry(t,
		reply{status: 200, body: `{"data":{"index":3,"leaf":{"revision":2,"v":1},"salt":"ab","path":["a","b"],` +
			`"checkpoint":"c\n","asset":{"quantity":240.50}}}`},
		reply{status: 503, header: map[string]string{"Retry-After": "1"}},
		reply{status: 200, body: `{"data":{"index":0,"leaf":{},"path":[],"checkpoint":""}}`})
	c := r.client(t)
	got, err := c.Proof(t.Context(), "a/1", 2)
	want := Proof{3, json.RawMessage(`{"revision":2,"v":1}`), "ab", []string{"a", "b"}, "c\n",
		json.RawMessage(`{"quantity":240.50}`)}
	errorIf(t, err != nil || !reflect.DeepEqual(got, want), "got %+v, %v, want %+v", got, err, want)
	got, err = c.Proof(t.Context(), "a", 0)
	want = Proof{Leaf: json.RawMessage(`{}`), Path: []string{}}
	errorIf(t, err != nil || !reflect.DeepEqual(got, want), "got %+v, %v, want %+v", got, err, want)
	sent := []string{"GET /api/2.5/assets/a%2F1/proof?revision=2", "GET /api/2.5/assets/a/proof",
		"GET /api/2.5/assets/a/proof"}
	if got := r.sent(); !slices.Equal(got, sent) {
		t.Errorf("got requests %q, want %q", got, sent)
	}
	if _, err := c.Proof(t.Context(), "", 0); err == nil {
		t.Error("got no error without an id, want one")
	}
}

func TestGetJSONKeepsTheFormOfTheRegistry(t *testing.T) {
	r := newRegistry(t, reply{status: 200, body: `{"data":{"quantity":240.50, "id":"a"}}`})
	got, err := r.client(t).GetJSON(t.Context(), "a")
	if want := `{"quantity":240.50, "id":"a"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if _, err := r.client(t).GetJSON(t.Context(), ".."); err == nil {
		t.Error("got no error of an id that is a path, want one")
	}
}
