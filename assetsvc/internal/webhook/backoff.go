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
	retryMost  = 6 * time.Hour      // that a receiver can ask for
	giveUp     = 3 * 24 * time.Hour // of failures without a success
	answerFor  = 24 * time.Hour     // of challenges without an answer
	challenges = time.Minute        // the least time between two challenges
)

// backoff returns the time to wait after a number of failures in a row: 1 s, doubled up
// to 1 h, of which a random part of a half is left out.
func backoff(failures int) time.Duration {
	wait := waitMost
	if n := max(failures, 1) - 1; n < 12 { // 2^12 s is more than an hour
		wait = min(waitLeast<<n, waitMost)
	}
	return wait - rand.N(wait/2)
}

// retryAfter returns the time that a receiver asks to wait (RFC 9110, 10.2.3), at most
// retryMost. Without such a header, or with a malformed one, it is 0.
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
