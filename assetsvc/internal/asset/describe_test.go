package asset

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"asset-registry/shared/testing/expect"
)

// TestShownFormsAcceptWhatTheTrueOnesAccept makes random texts that the rules accept. The forms in the description
// must accept them too. Otherwise a client that uses the description would refuse a valid text.
func TestShownFormsAcceptWhatTheTrueOnesAccept(t *testing.T) {
	for _, test := range []struct {
		name  string
		form  *regexp.Regexp
		shown string
	}{
		{"address", urlForm, shownURL},
		{"address of a document", documentForm, shownURL},
		{"email", emailForm, shownEmail},
	} {
		t.Run(test.name, func(t *testing.T) {
			shown := regexp.MustCompile(test.shown)
			rapid.Check(t, func(t *rapid.T) {
				text := rapid.StringMatching(test.form.String()).Draw(t, "text")
				if test.form.MatchString(text) && !shown.MatchString(text) {
					t.Fatalf("got no match of %q with %s, want one", text, test.shown)
				}
			})
		})
	}
}

// TestTimesThatParseHaveTheShownForm has an example of each form that ParseTime accepts. Each must match the
// form in the description.
func TestTimesThatParseHaveTheShownForm(t *testing.T) {
	shown := regexp.MustCompile(sentTime)
	for _, text := range []string{
		"2026-11-22", "2026-11-22T00:32", "2026-11-22 00:32:46", "2026-11-22T00:32:46.881553+00:00", "2026-11-22t00:32:46,8z",
		"2026-11-22T00:32+02", "2026-11-22T00:32-0230", "2026-11-22T00:32:46.1234567890Z",
	} {
		if _, err := ParseTime(text, rules.Zone); err != nil {
			t.Errorf("ParseTime(%q): got %v, want a time", text, err)
		}
		expect.ErrorIf(t, !shown.MatchString(text), "got no match of %q with %s, want one", text, sentTime)
	}
}
