package console

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
)

// The sizes of the chart, in units of its SVG.
const (
	chartWidth  = 720
	chartHeight = 260
	chartLeft   = 76 // space for the numbers of the axis, whose text is large on narrow screens
	chartRight  = 44 // space for half of the last day's label
	chartTop    = 20 // space for half the height of the highest number
	chartBottom = 40 // space for the labels of days
)

// chart is a bar chart of requests by day. All places and sizes are calculated here, not in the browser.
type chart struct {
	Width, Height int
	Left, Right   int
	Days          []chartDay
	Ticks         []chartTick
	Total         int64
	Most          int64 // number of requests on the busiest day
	MostOn        string
	Span          int
}

type chartDay struct {
	Name   string
	Counts []int64 // requests of each class, in the order of chart.Classes
	Total  int64
	Bars   []chartBar
	Label  string // text under the axis; "" for most days
	Minor  bool   // narrow screens do not show the label
	Middle float64
}

type chartBar struct {
	Class               string
	X, Y, Width, Height float64
}

type chartTick struct {
	Y     float64
	Label string
}

// Classes returns the classes of requests in the order of a bar's parts, from the bottom up.
func (c chart) Classes() []string { return authapi.Classes() }

// newChart returns the chart of the last days, including days without requests.
func newChart(counts []adminapi.Day, days int, now time.Time) chart {
	c := chart{Width: chartWidth, Height: chartHeight, Left: chartLeft, Right: chartWidth - chartRight, Span: days}
	by := map[string]map[string]int64{}
	for _, day := range counts {
		by[day.Day] = day.Counts
	}
	for n := range days {
		day := chartDay{Name: now.UTC().AddDate(0, 0, n-days+1).Format(time.DateOnly)}
		for _, class := range authapi.Classes() {
			day.Counts = append(day.Counts, by[day.Name][class])
			day.Total += by[day.Name][class]
		}
		c.Total += day.Total
		if day.Total > c.Most {
			c.Most, c.MostOn = day.Total, day.Name
		}
		c.Days = append(c.Days, day)
	}
	c.draw()
	return c
}

func (c *chart) draw() {
	step := niceStep(c.Most)
	top := max(1, (c.Most+step-1)/step) * step // value at the top end of the axis
	height := float64(chartHeight - chartTop - chartBottom)
	floor := float64(chartHeight - chartBottom)
	scale := func(n int64) float64 { return height * float64(n) / float64(top) }
	for n := int64(0); n <= top; n += step {
		c.Ticks = append(c.Ticks, chartTick{floor - scale(n), short(n)})
	}
	slot := float64(chartWidth-chartLeft-chartRight) / float64(len(c.Days))
	every := max(1, len(c.Days)/6)
	for i := range c.Days {
		day := &c.Days[i]
		x, y := chartLeft+slot*float64(i), floor
		day.Middle = x + slot/2
		if last := len(c.Days) - 1 - i; last%every == 0 {
			day.Label, day.Minor = day.Name[len("2026-"):], last/every%2 == 1
		}
		for n, class := range authapi.Classes() {
			if day.Counts[n] == 0 {
				continue
			}
			h := scale(day.Counts[n])
			y -= h
			day.Bars = append(day.Bars, chartBar{class, x + slot*0.12, y, slot * 0.76, h})
		}
	}
}

// niceStep returns a step for the axis: the smallest of 1, 2, 5, 10, 20, 50 and so on for which n/step is below 5.
func niceStep(n int64) int64 {
	for power := int64(1); ; power *= 10 {
		for _, digit := range []int64{1, 2, 5} {
			if step := digit * power; n/step < 5 {
				return step
			}
		}
	}
}

// short returns a number, shortened with a unit if no digit is lost: "1.5k".
func short(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= unit.size && n%(unit.size/10) == 0 {
			return strconv.FormatFloat(float64(n)/float64(unit.size), 'f', -1, 64) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// grouped returns a number with separated thousands: "12,345".
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// usage is a chart of requests, with links to charts of other numbers of days.
type usage struct {
	Chart chart
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
