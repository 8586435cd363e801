package client

import (
	"errors"
	"fmt"
	"testing"
)

// TestAListOfIDsEnds has pages that name themselves, or an earlier page, as the next page. Each list must end soon. If
// entries may be missing, it must end with an error.
func TestAListOfIDsEnds(t *testing.T) {
	page := func(data, after string) reply {
		return reply{200, fmt.Sprintf(`{"data":[%s],"next_page":{"after":%q}}`, data, after), nil}
	}
	const entry = `{"id":"b"}`
	for _, c := range []struct {
		name    string
		replies []reply
		entries int
		want    error
	}{
		{"two pages, one empty", []reply{page("", "b"), page(entry, "c"), page(entry, "")}, 2, nil},
		{"the same page again", []reply{page(entry, "b")}, 1, errNoPage},
		{"the page before", []reply{page(entry, "b"), page(entry, "a")}, 1, errNoPage},
		{"an empty page again", []reply{page("", "b")}, 0, nil},
	} {
		for name, list := range map[string]func(*Client) (int, error){
			"webhooks": func(c *Client) (n int, err error) {
				for _, err := range c.Webhooks(t.Context(), "") {
					if err != nil {
						return n, err
					}
					n++
				}
				return n, nil
			},
			"files": func(c *Client) (n int, err error) {
				for _, err := range c.Files(t.Context(), "") {
					if err != nil {
						return n, err
					}
					n++
				}
				return n, nil
			},
		} {
			r := newRegistry(t, c.replies...)
			n, err := list(r.client(t))
			errorIf(t, n != c.entries || !errors.Is(err, c.want),
				"%s, %s: got %d entries and %v, want %d and %v", name, c.name, n, err, c.entries, c.want)
			if sent := len(r.sent()); sent > 3 {
				t.Errorf("%s, %s: got %d requests, want 3 at most", name, c.name, sent)
			}
		}
	}
}
