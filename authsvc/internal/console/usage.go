package console

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
)

// usage is a chart of requests, with links to charts of other numbers of days.
type usage struct {
	Chart chart
	Of    string // "this key" or "this broker"
	Spans []span
	Cut   bool // the chart does not include all keys
}

type span struct {
	Days    int
	Path    string
	Current bool
}

const usualSpan = 30 // usual number of days

// daysOf returns the query parameter "days" of a request, or usualSpan.
func daysOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("days")
	if text == "" {
		return usualSpan, nil
	}
	days, err := strconv.Atoi(text)
	if err != nil {
		return 0, fault.New(fault.Invalid, fault.Query, "days", "Send a number of days.")
	}
	return days, nil
}

// newUsage returns the usage of the last days. For each number of days in the argument `offered`, the page has a link
// to the chart of that number of days. The links have the given path and the parameters q.
func newUsage(counts []adminapi.Day, days int, now time.Time, path string, q url.Values, offered ...int) usage {
	u := usage{Chart: newChart(counts, days, now)}
	for _, n := range offered {
		q.Set("days", strconv.Itoa(n))
		u.Spans = append(u.Spans, span{n, path + "?" + q.Encode() + "#usage", n == days})
	}
	return u
}
