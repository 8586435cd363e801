package client

import (
	"net/url"
	"slices"
	"testing"
)

func TestSuggest(t *testing.T) {
	r := newRegistry(t, reply{status: 200, body: `{"data":["екскаватор","екскаватор колісний"]}`}, reply{status: 404})
	c := r.client(t)
	got, err := c.Suggest(t.Context(), "екс & x")
	if want := []string{"екскаватор", "екскаватор колісний"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if got, want := r.sent()[0], "GET /api/2.5/search/suggest?q=%D0%B5%D0%BA%D1%81+%26+x"; got != want {
		t.Errorf("got the request %q, want %q", got, want)
	}
	if _, err := c.Suggest(t.Context(), "е", url.Values{"status": {"active", "complete"}}); !IsNotFound(err) {
		t.Errorf("got %v from a registry without searches, want an error of a missing thing", err)
	}
	if got, want := r.sent()[1], "GET /api/2.5/search/suggest?q=%D0%B5&status=active&status=complete"; got != want {
		t.Errorf("got the request %q, want %q", got, want)
	}
}
