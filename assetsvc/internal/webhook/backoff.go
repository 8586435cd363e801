package webhook

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	waitLeast  = time.Second
	waitMost   = time.Hour
	retryMost  = 6 * time.Hour      // the longest wait that a receiver can ask for
	giveUp     = 3 * 24 * time.Hour // how long an endpoint may fail, without a success, before it is disabled
	answerFor  = 24 * time.Hour     // how long an endpoint may leave its challenges without an answer
	challenges = time.Minute        // least time between two challenges
)

// backoff returns the time to wait after a number of failures in a row. The time begins at one second, and each
// failure doubles it, up to one hour. Then a random part, less than half of the time, is subtracted.
func backoff(failures int) time.Duration {
	wait := waitMost
	if n := max(failures, 1) - 1; n < 12 { // otherwise the wait is waitMost: 2^12 s is more than an hour
		wait = min(waitLeast<<n, waitMost)
	}
	return wait - rand.N(wait/2)
}

// retryAfter returns the time that a receiver asks to wait (RFC 9110, 10.2.3), at most retryMost. If the header
// is missing or malformed, retryAfter returns 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if isDigits(text) {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(retryMost/time.Second) {
			return retryMost
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), retryMost)
}

func isDigits(text string) bool {
	return strings.Trim(text, "0123456789") == ""
}
