package site_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestTelephonesAndMailsAreLinks has contacts of custodians, which are written in many forms. Each case says which
// link the pages must have.
func TestTelephonesAndMailsAreLinks(t *testing.T) {
	const known = "+38 (044) 000-00-00"
	for _, c := range []struct{ number, link string }{
		{"+38 (044) 000-00-00", "tel:+380440000000"},
		{"+380440000000", "tel:+380440000000"},
		{"044 000-00-00", "tel:+380440000000"},
		{"(044) 000.00.00", "tel:+380440000000"},
		{"380440000000", "tel:+380440000000"},
		{"+1 202 555 0123", "tel:+12025550123"},
		{"044\u00a0000–00–00", "tel:+380440000000"},
		{"000-00-00", ""},
		{"044 000-00-00, 044 000-00-01", "tel:+380440000000"},
		{"факс 000-00-00, 044 000-00-01", "tel:+380440000001"},
		{"+38 (044) 000-00-00, дод. 5", "tel:+380440000000"},
		{"(044) 000-00-00 вн. 12-34", "tel:+380440000000"},
		{"+380440000000;ext=1", "tel:+380440000000"},
		{"044 000-00-00 044 000-00-01", ""},
		{"0440000000000000000000000000", ""},
		{"javascript:alert(1)", ""},
		{"+", ""},
	} {
		t.Run(c.number, func(t *testing.T) {
			asset := bytes.ReplaceAll(whole, []byte(known), []byte(c.number))
			for _, path := range []string{"/uk/assets/" + id, "/en/assets/" + id, "/en/assets/" + id + "/record"} {
				resp, body := get(t, newSite(t, newRegistry(asset), newFound(), logKey), path)
				if resp.StatusCode != 200 {
					continue
				}
				got := strings.Contains(body, fmt.Sprintf(`href="%s"`, strings.ReplaceAll(c.link, "+", "&#43;"))) ||
					strings.Contains(body, fmt.Sprintf(`href="%s"`, c.link))
				if c.link == "" {
					got = !strings.Contains(body, `href="tel:`)
				}
				expect.ErrorIf(t, !got, "%s: got no link %q for %q, want one", path, c.link, c.number)
				mustHave(t, body, `href="mailto:office@example.org"`)
				if n := strings.Count(plainText(body), c.number); n < 2 {
					t.Errorf("%s: got the text %q %d times, want it at the top and among the contacts", path, c.number, n)
				}
			}
		})
	}
}
