package client

import (
	"errors"
	"net/http"
	"testing"
)

// TestAForeignAnswerIsNoSuccess has a server in front of the registry that answers instead of it. No read or write may
// count as done, and no such answer is asked for again.
func TestAForeignAnswerIsNoSuccess(t *testing.T) {
	get := func(c *Client) error { _, err := c.Get(t.Context(), "a1"); return err }
	create := func(c *Client) error { _, err := c.Create(t.Context(), Asset{}); return err }
	page := func(c *Client) error { _, err := c.Page(t.Context(), Feed{}); return err }
	health := func(c *Client) error { return c.Health(t.Context()) }
	remove := func(c *Client) error { return c.Remove(t.Context(), "a1", Write{Token: "tok"}) }
	html := map[string]string{"Content-Type": "text/html"}
	for _, c := range []struct {
		name   string
		do     func(*Client) error
		answer reply
		isOurs bool
	}{
		{"a read: JSON", get, reply{200, assetBody, nil}, true},
		{"a read: JSON with a charset", get, reply{200, assetBody, map[string]string{"Content-Type": "application/json; charset=utf-8"}}, true},
		{"a read: a page", get, reply{200, "<html>", html}, false},
		{"a read: JSON that is called a page", get, reply{200, assetBody, html}, false},
		{"a read: a part", get, reply{206, assetBody, nil}, false},
		{"a read: a transformation", get, reply{203, assetBody, nil}, false},
		{"a read: accepted", get, reply{202, assetBody, nil}, false},
		{"a read: created", get, reply{201, assetBody, nil}, false},
		{"a read: no content", get, reply{204, "", nil}, false},
		{"a read: no data", get, reply{200, `{}`, nil}, false},
		{"a read: half", get, reply{200, `{"data":`, nil}, false},
		{"a read: a text", get, reply{200, `{"data":"x"}`, nil}, false},
		{"a read: null", get, reply{200, `{"data":null}`, nil}, false},
		{"a page: no list", page, reply{200, `{"next_page":{"offset":"1"}}`, nil}, false},
		{"a page: no offset", page, reply{200, `{"data":[{"id":"a1"}]}`, nil}, false},
		{"a creation: created", create, reply{201, assetBody, nil}, true},
		{"a creation: accepted", create, reply{202, assetBody, nil}, false},
		{"health: a page", health, reply{200, "<html>", html}, false},
		{"health: no content", health, reply{204, "", nil}, false},
		{"a removal: no content", remove, reply{204, "", nil}, true},
		{"a removal: a page", remove, reply{200, "<html>", html}, false},
		{"a removal: accepted", remove, reply{202, "", nil}, false},
	} {
		r := newRegistry(t, c.answer)
		err := c.do(r.client(t))
		isRefused := errors.Is(err, errNotOurs) || errors.Is(err, errNoPage)
		errorIf(t, (err == nil) != c.isOurs || isRefused == c.isOurs || len(r.sent()) != 1,
			"%s: got %v after %d requests, want success: %t", c.name, err, len(r.sent()), c.isOurs)
	}
}

// TestAnotherPartOfASegmentIsRefused breaks the first answer off, and gives another part than the rest.
func TestAnotherPartOfASegmentIsRefused(t *testing.T) {
	content := []byte("0123456789")
	for _, c := range []struct{ name, part string }{
		{"from the beginning", "bytes 0-9/10"}, {"of another file", "bytes 3-9/11"}, {"not to the end", "bytes 3-8/10"},
		{"without a range", ""}, {"in another unit", "items 3-9/10"},
	} {
		f := &files{content: content, most: 3}
		s := newStreams(t, f.ServeHTTP, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", c.part)
			w.WriteHeader(http.StatusPartialContent)
			w.Write(content[3:])
		})
		if got, err := s.client(t).Segment(t.Context(), segmentOf(content)); !errors.Is(err, ErrSegment) {
			t.Errorf("%s: got %q and %v, want %v", c.name, got, err, ErrSegment)
		}
	}
	s := newStreams(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Range", "bytes 0-9/10")
		w.WriteHeader(http.StatusPartialContent)
		w.Write(content)
	})
	if got, err := s.client(t).Segment(t.Context(), segmentOf(content)); !errors.Is(err, ErrSegment) {
		t.Errorf("a part that nobody asked for: got %q and %v, want %v", got, err, ErrSegment)
	}
	s = newStreams(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNonAuthoritativeInfo)
		w.Write(content)
	})
	if got, err := s.client(t).Segment(t.Context(), segmentOf(content)); !errors.Is(err, errNotOurs) {
		t.Errorf("another status: got %q and %v, want %v", got, err, errNotOurs)
	}
}
