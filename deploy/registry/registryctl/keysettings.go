package registryctl

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// keySettings are the flags that describe a key. A field is nil if its flag was not given.
type keySettings struct {
	Name    *string  `help:"Purpose of the key."`
	Role    *string  `complete:"broker,concierge,administrator,operator,auditor" help:"${roles}"`
	Levels  *string  `help:"Accreditation levels, such as 13; 0 is all. A new broker's key has 1234 by default."`
	Expires *string  `help:"End of the key: a time (2027-01-31T00:00:00Z), a duration from now (720h), or never."`
	Test    *bool    `help:"Accept the key for test assets only."`
	Limit   []string `sep:"none" help:"Rate limit, such as write:1m=100. May be repeated. 'none' removes all."`
	Allow   []string `sep:"none" help:"Address or network to use the key from. May be repeated. 'any' allows all."`
}

// body returns the JSON fields for the flags that were given.
func (k keySettings) body() (map[string]any, error) {
	body := map[string]any{}
	for name, value := range map[string]*string{"name": k.Name, "role": k.Role, "levels": k.Levels} {
		if value != nil {
			body[name] = *value
		}
	}
	if k.Test != nil {
		body["test"] = *k.Test
	}
	if k.Allow != nil {
		body["allow"] = k.Allow
		if len(k.Allow) == 1 && k.Allow[0] == "any" {
			body["allow"] = nil
		}
	}
	if k.Expires != nil {
		end, err := parseEnd(*k.Expires)
		if err != nil {
			return nil, err
		}
		body["expires"] = end
	}
	if k.Limit != nil {
		limits, err := parseLimits(k.Limit)
		if err != nil {
			return nil, err
		}
		body["limits"] = limits
	}
	return body, nil
}

// parseEnd parses the value of --expires. It returns nil for "never", otherwise a time.Time in UTC.
func parseEnd(text string) (any, error) {
	if text == "never" {
		return nil, nil
	}
	if length, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(length).UTC().Truncate(time.Second), nil
	}
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, fmt.Errorf("--expires must be a time (2027-01-31T00:00:00Z), a duration (720h) or never; got %q", text)
	}
	return end.UTC(), nil
}

// parseLimits parses the values of --limit. It returns the numbers of allowed requests; the keys of the map are
// classes, the keys of the inner maps are windows. For "none" it returns an empty map.
func parseLimits(texts []string) (map[string]map[string]int64, error) {
	limits := map[string]map[string]int64{}
	for _, text := range texts {
		if text == "none" {
			continue
		}
		class, rest, _ := strings.Cut(text, ":")
		window, number, _ := strings.Cut(rest, "=")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || window == "" {
			return nil, fmt.Errorf("--limit must have the form CLASS:WINDOW=REQUESTS, such as write:1m=100; got %q", text)
		}
		if limits[class] == nil {
			limits[class] = map[string]int64{}
		}
		limits[class][window] = n
	}
	return limits, nil
}
