package console

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
)

// keySettings returns the settings that a form has sent for a key. The argument `was` has the settings before the
// change. For each field that it cannot read, keySettings adds a problem to the argument `found`.
func keySettings(sent url.Values, was adminapi.KeySettings, found *problems.List) adminapi.KeySettings {
	s := adminapi.KeySettings{
		Name: strings.TrimSpace(sent.Get("name")), Role: sent.Get("role"),
		Levels: strings.Join(sent["levels"], ""), Test: sent.Get("test") != "",
		Allow: strings.FieldsFunc(sent.Get("allow"), func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }),
	}
	switch {
	case apikey.Administers(identity.Role(s.Role)): // a key that administers has no levels, but the form offers them
		s.Levels = ""
	case strings.Contains(s.Levels, allLevels) && strings.Trim(s.Levels, "01234") == "":
		s.Levels = allLevels
	}
	switch text := sent.Get("expires"); {
	case text == "":
	// The form shows the time without fractions of a second. If its text is unchanged, the key keeps its exact
	// time.
	case was.Expires != nil && stamp(*was.Expires) == text:
		s.Expires = was.Expires
	default:
		at, err := time.Parse(stampLayout, text)
		if err != nil {
			at, err = time.Parse(strings.TrimSuffix(stampLayout, ":05"), text)
		}
		if err != nil {
			found.Add("expires", "A time is needed, such as 2027-01-31T12:00, in UTC.")
		}
		s.Expires = &at
	}
	for _, class := range authapi.Classes() {
		windows, err := parseRates(sent.Get(limitField + class))
		if err != nil {
			found.Add("limits."+class, "%v.", err)
		}
		if len(windows) > 0 {
			if s.Limits == nil {
				s.Limits = map[string]map[string]int64{}
			}
			s.Limits[class] = windows
		}
	}
	return s
}

// stampLayout is the layout of a time in a form.
const stampLayout = "2006-01-02T15:04:05"

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// rate has the limits of a class of requests as text: "5/1s, 100/1m".
type rate struct{ Class, Told string }

func rates(limits map[string]map[string]int64) []rate {
	var told []rate
	for _, class := range authapi.Classes() {
		var parts []string
		windows := limits[class]
		for _, window := range slices.SortedFunc(maps.Keys(windows), byLength) {
			parts = append(parts, fmt.Sprintf("%d/%s", windows[window], window))
		}
		if len(parts) > 0 {
			told = append(told, rate{class, strings.Join(parts, ", ")})
		}
	}
	return told
}

func byLength(a, b string) int {
	length := func(window string) time.Duration {
		d, err := time.ParseDuration(window)
		if err != nil { // the store has only windows that can be parsed
			return 0
		}
		return d
	}
	return cmp.Or(cmp.Compare(length(a), length(b)), cmp.Compare(a, b))
}

// parseRates reads limits such as "5/1s, 100/1m". It returns the limits that it can read, and an error that lists the
// rest.
func parseRates(text string) (map[string]int64, error) {
	windows := map[string]int64{}
	var wrong []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		number, window, _ := strings.Cut(part, "/")
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		window = strings.TrimSpace(window)
		_, twice := windows[window]
		if _, bad := time.ParseDuration(window); err != nil || bad != nil {
			wrong = append(wrong, fmt.Sprintf("%.40q is not of the form 100/1m", part))
		} else if twice {
			wrong = append(wrong, fmt.Sprintf("there are two limits for %.40s", window))
		} else {
			windows[window] = n
		}
	}
	if wrong != nil {
		return windows, errors.New(strings.Join(wrong[:min(len(wrong), maxWrong)], "; "))
	}
	return windows, nil
}

// maxWrong is the maximum number of faulty limits that an error of parseRates lists.
const maxWrong = 10
