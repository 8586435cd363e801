package ratelimit

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of an answer. The first two are from draft-ietf-httpapi-ratelimit-headers-10. The others are
// older than the draft, and clients know them.
const (
	PolicyHeader    = "RateLimit-Policy"
	StateHeader     = "RateLimit"
	LimitHeader     = "X-RateLimit-Limit"
	RemainingHeader = "X-RateLimit-Remaining"
	ResetHeader     = "X-RateLimit-Reset" // Unix time in seconds
)

// Headers returns the names of all headers that a Limiter sets.
func Headers() []string {
	return []string{PolicyHeader, StateHeader, LimitHeader, RemainingHeader, ResetHeader}
}

// The names of the headers as keys of an http.Header. writeHeaders uses them, because http.Header.Set would
// cost more.
var (
	policyKey    = http.CanonicalHeaderKey(PolicyHeader)
	stateKey     = http.CanonicalHeaderKey(StateHeader)
	limitKey     = http.CanonicalHeaderKey(LimitHeader)
	remainingKey = http.CanonicalHeaderKey(RemainingHeader)
	resetKey     = http.CanonicalHeaderKey(ResetHeader)
)

// policyHeader returns the value of RateLimit-Policy: "key-read-1s";q=1000;w=1. A rate counts requests unless
// the parameter `qu` names another unit.
func policyHeader(rules []*rule) string {
	var items []string
	for _, r := range rules {
		unit := ""
		if r.inBytes() {
			unit = `;qu="content-bytes"`
		}
		for _, rate := range r.rates {
			items = append(items, fmt.Sprintf("%q;q=%d%s;w=%d", rate.Formatted, rate.Limit, unit, rate.Period/time.Second))
		}
	}
	return strings.Join(items, ", ")
}

// writeHeaders sets the headers of an answer. RateLimit shows every rate. The X-RateLimit headers show only one
// rate. If a rate refuses the request, they show that rate. Otherwise they show the rate with the least left, among
// the rates that count requests. To save allocations, all values are parts of one string.
func writeHeaders(h http.Header, p *plan, v Verdict, now time.Time) {
	var room [512]byte
	text := room[:0]
	tightest := v.Refused
	for i := range v.States {
		s := &v.States[i]
		if v.Wait == 0 && i < p.inBytes && s.Left < v.States[tightest].Left {
			tightest = i
		}
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, '"')
		text = append(text, s.Rate.Formatted...)
		text = append(text, `";r=`...)
		text = strconv.AppendInt(text, s.Left, 10)
		if s.Next > 0 {
			text = append(text, ";t="...)
			text = strconv.AppendInt(text, seconds(s.Next), 10)
		}
	}
	s := &v.States[tightest]
	state := len(text)
	text = strconv.AppendInt(text, s.Rate.Limit, 10)
	limit := len(text)
	text = strconv.AppendInt(text, s.Left, 10)
	left := len(text)
	text = strconv.AppendInt(text, now.Add(max(s.Next, v.Wait)+time.Second-1).Unix(), 10)
	all := string(text)
	values := []string{p.policy, all[:state], all[state:limit], all[limit:left], all[left:]}
	h[policyKey], h[stateKey] = values[0:1:1], values[1:2:2]
	h[limitKey], h[remainingKey], h[resetKey] = values[2:3:3], values[3:4:4], values[4:5:5]
}

// updateHeaders updates the rates that count bytes, in headers that writeHeaders has set for the same request.
// These rates come last in the headers. If they are missing, they are appended.
func updateHeaders(h http.Header, p *plan, v Verdict, now time.Time) {
	before, _, found := strings.Cut(h.Get(StateHeader), strconv.Quote(v.States[0].Rate.Formatted))
	old := maps.Clone(h)
	writeHeaders(h, p, v, now)
	if before == "" && !found {
		return
	}
	if h[policyKey] = old[policyKey]; !found {
		before += ", "
		h[policyKey] = []string{old[policyKey][0] + ", " + p.policy}
	}
	h[stateKey][0] = before + h[stateKey][0]
	if v.Wait == 0 && before != "" {
		h[limitKey], h[remainingKey], h[resetKey] = old[limitKey], old[remainingKey], old[resetKey]
	}
}

// seconds returns a time in whole seconds. It rounds up, so that no client waits too short a time.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
