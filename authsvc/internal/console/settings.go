package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
)

// keySettings reads what a form says of a key that has settings so far.
func keySettings(sent url.Values, was adminapi.KeySettings) (adminapi.KeySettings, error) {
	s := adminapi.KeySettings{
		Name: strings.TrimSpace(sent.Get("name")), Role: sent.Get("role"), Levels: strings.Join(sent["levels"], ""), Test: sent.Get("test") != "",
		Allow: strings.FieldsFunc(sent.Get("allow"), func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }),
	}
	var wrong []fault.Detail
	add := func(field, format string, args ...any) {
		wrong = append(wrong, fault.Detail{Location: fault.Body, Name: field, Description: fmt.Sprintf(format, args...)})
	}
	switch text := sent.Get("expires"); {
	case text == "":
	case was.Expires != nil && stamp(*was.Expires) == text: // the form shows no more than seconds
		s.Expires = was.Expires
	default:
		at, err := time.Parse(stampLayout, text)
		if err != nil {
			at, err = time.Parse(strings.TrimSuffix(stampLayout, ":05"), text)
		}
		if err != nil {
			add("expires", "A time is needed, such as 2027-01-31T12:00, in UTC.")
		}
		s.Expires = &at
	}
	for _, class := range authapi.Classes() {
		windows, err := parseRates(sent.Get("limit-" + class))
		if err != nil {
			add("limits", "%s: %v.", class, err)
		}
		if len(windows) > 0 {
			if s.Limits == nil {
				s.Limits = map[string]map[string]int64{}
			}
			s.Limits[class] = windows
		}
	}
	if len(wrong) > 0 {
		return s, &fault.Error{Kind: fault.Invalid, Details: wrong}
	}
	return s, nil
}

// stampLayout is how browsers send a time of a form.
const stampLayout = "2006-01-02T15:04:05"

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// rate is the limits of a class of requests, as they are written in a form.
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
		if err != nil { // the store has none such; it would stand first
			return 0
		}
		return d
	}
	return cmp.Or(cmp.Compare(length(a), length(b)), cmp.Compare(a, b))
}

// parseRates reads "5/1s, 100/1m": requests in a length of time.
func parseRates(text string) (map[string]int64, error) {
	windows := map[string]int64{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		number, window, _ := strings.Cut(part, "/")
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		window = strings.TrimSpace(window)
		if _, bad := time.ParseDuration(window); err != nil || bad != nil {
			return nil, fmt.Errorf("%.40q is not of the form 100/1m", part)
		}
		if _, twice := windows[window]; twice {
			return nil, fmt.Errorf("there are two limits for %s", window)
		}
		windows[window] = n
	}
	return windows, nil
}
