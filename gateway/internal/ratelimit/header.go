package ratelimit

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of draft-ietf-httpapi-ratelimit-headers-10, and those that came
// before it and clients know; as net/http spells them.
const (
	policyHeader    = "Ratelimit-Policy"
	stateHeader     = "Ratelimit"
	limitHeader     = "X-Ratelimit-Limit"
	remainingHeader = "X-Ratelimit-Remaining"
	resetHeader     = "X-Ratelimit-Reset" // seconds since the epoch
)

// policyText tells what the rules allow: "key-read-1s";q=1000;w=1. Where nothing
// else is said it is requests.
func policyText(rules []*rule) string {
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

// writeHeaders tells what is left: all of it in RateLimit, and in X-RateLimit the
// rate that refuses or, of those that count requests, that ends first. All
// values are parts of one string.
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
	h[policyHeader], h[stateHeader] = values[0:1:1], values[1:2:2]
	h[limitHeader], h[remainingHeader], h[resetHeader] = values[2:3:3], values[3:4:4], values[4:5:5]
}

// addHeaders tells what is left of bytes anew, in the headers of a request that
// they were told of before: they come last there.
func addHeaders(h http.Header, p *plan, v Verdict, now time.Time) {
	before, _, told := strings.Cut(h.Get(stateHeader), strconv.Quote(v.States[0].Rate.Formatted))
	was := maps.Clone(h)
	writeHeaders(h, p, v, now)
	if !told {
		return
	}
	h[stateHeader][0] = before + h[stateHeader][0]
	h[policyHeader] = was[policyHeader]
	if v.Wait == 0 && before != "" {
		h[limitHeader], h[remainingHeader], h[resetHeader] = was[limitHeader], was[remainingHeader], was[resetHeader]
	}
}

// seconds rounds up: who waits so long has waited long enough.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
