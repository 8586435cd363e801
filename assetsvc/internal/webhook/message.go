package webhook

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"asset-registry/shared/assetfilter"
	"asset-registry/shared/follow"
)

// The limits of a message. A single entry may be larger than MaxBytes.
const (
	MaxEntries = 100
	MaxBytes   = 64 << 10 // maximum number of bytes of the entries together
)

// Selection says which part of the feed an endpoint gets, and in which form.
type Selection struct {
	Version string // see Endpoint.Version
	Mode    string // see Endpoint.Mode
	Whole   bool   // see Endpoint.Whole
	Terms   bool   // entries from Follow have terms, to which filters can be applied (follow.Entry)
}

func selectionOf(e Endpoint) Selection { return Selection{e.Version, e.Mode, e.Whole, e.Filters != ""} }

// Entry is a changed asset in the form that a selection asks for.
type Entry struct {
	Position int64
	Data     []byte // JSON
}

// Page is a part of the feed.
type Page struct {
	Entries []Entry // in the order of their positions
	Upto    int64   // the page has all entries that meet the filters, up to this position
}

// Found is the result of a search for the next entry that meets the filters.
type Found struct {
	First int64 // position of the entry; 0: no entry up to the position Upto meets the filters
	Upto  int64 // the feed was searched up to this position
	More  bool  // the feed may go on after Upto
}

// Feed is the source of messages. It is safe for concurrent use.
type Feed interface {
	// Follow returns a ring of the newest entries of a selection. The caller must call the function `leave` once.
	// After an error the caller reads pages, which have the same entries.
	Follow(s Selection) (ring *follow.Ring, leave func(), err error)
	// Page reads the next entries of a selection after a position. It reads at most MaxEntries entries, with at
	// most MaxBytes of assets together, but at least one entry if the feed has one. The page has only the
	// entries that meet the filters, so it may be empty although the feed goes on.
	Page(ctx context.Context, s Selection, filters assetfilter.Set, after int64) (Page, error)
	// Find searches the next part of the feed, after a position, for the first entry of a mode that meets the
	// filters.
	Find(ctx context.Context, mode string, filters assetfilter.Set, after int64) (Found, error)
	// Offset returns a position as an offset.
	Offset(position int64) string
}

// message is the content of one POST request.
type message struct {
	id    string
	body  []byte
	first int64 // the position of the oldest entry
	upto  int64 // the position of the newest entry
	full  bool  // the feed may have more entries after this message
	live  bool  // the message was made from a ring
}

// newMessage returns a message with the first entries of a list, up to the limits. The list must have at least one
// entry. The same entries for the same generation of an endpoint make the same message.
func newMessage(e Endpoint, entries []Entry, offset func(int64) string) message {
	size, n := 0, 0
	for n < len(entries) && n < MaxEntries && (n == 0 || size+len(entries[n].Data) <= MaxBytes) {
		size += len(entries[n].Data)
		n++
	}
	taken := entries[:n]
	m := message{first: taken[0].Position, upto: taken[n-1].Position}
	m.full = n < len(entries) || n == MaxEntries || size > MaxBytes/2
	end := offset(m.upto)
	m.body = make([]byte, 0, size+n+2*len(end)+100)
	m.body = fmt.Appendf(m.body, `{"type":"assets.changed","timestamp":%q,"data":{"offset":%q,"entries":[`, end, end)
	for i, entry := range taken {
		if i > 0 {
			m.body = append(m.body, ',')
		}
		m.body = append(m.body, entry.Data...)
	}
	m.body = append(m.body, "]}}"...)
	m.id = messageID(e, m.body)
	return m
}

// messageID returns the id of a message. Equal messages have equal ids. After a change of the endpoint, such as a
// replay, the same content gets another id.
func messageID(e Endpoint, body []byte) string {
	h := sha256.New()
	h.Write([]byte(e.ID + " " + strconv.FormatInt(e.Generation, 10) + " "))
	h.Write(body)
	return "msg_" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}

// newChallenge returns a challenge, and the text with which the receiver must answer.
func newChallenge(e Endpoint, timestamp string) (m message, want string) {
	want = rand.Text()
	m.body = fmt.Appendf(nil, `{"type":"webhook.challenge","timestamp":%q,"data":{"challenge":%q}}`, timestamp, want)
	m.id = messageID(e, m.body)
	return m, want
}

// isAnswer reports whether the body of an answer contains the text of a challenge.
func isAnswer(body []byte, want string) bool {
	var answer struct {
		Challenge string `json:"challenge"`
	}
	return json.Unmarshal(body, &answer) == nil && answer.Challenge == want
}

// viewed returns the entries that meet the filters, from one part of a ring.
func viewed(v follow.View, filters assetfilter.Set) []Entry {
	entries := make([]Entry, 0, len(v.Entries))
	for _, e := range v.Entries {
		if filters.Meets(e.Terms) {
			entries = append(entries, Entry{e.Position, e.JSON()})
		}
	}
	return entries
}

// userAgent names the sender to receivers.
const userAgent = "asset-registry-webhooks"

// answer is the result of one attempt.
type answer struct {
	status int           // HTTP status; 0: there was no answer
	body   []byte        // the first bytes of the answer's body
	after  time.Duration // how long the receiver asks to wait
	fault  string        // what went wrong, for the log; "": the receiver answered with 2xx
	guard  bool          // the address was refused, nothing was sent
}

// told returns the text that the owner of the endpoint may see about a failure: "failed", and the status if
// there was an answer. More detail would reveal what listens at an address.
func (a answer) told() string {
	switch {
	case a.fault == errUnopened: // nothing was sent
		return a.fault
	case a.status == 0:
		return "failed"
	}
	return fmt.Sprintf("failed: %d", a.status)
}

// post sends a message once. It follows no redirect. Nothing in answer.fault comes from the receiver.
func post(ctx context.Context, via http.RoundTripper, url string, s signer, m message) answer {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(m.body))
	if err != nil {
		return answer{fault: "the address is malformed"}
	}
	s.sign(r.Header, m.id, time.Now(), m.body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", userAgent)
	// Because of this key, the transport repeats the request if the receiver closes the idle connection that was used.
	// A header without values is not sent (http.Transport).
	r.Header["Idempotency-Key"] = []string{}
	response, err := via.RoundTrip(r)
	if err != nil {
		return answer{fault: faultOf(err), guard: errors.Is(err, errNotPublic)}
	}
	defer response.Body.Close() //nolint:errcheck // the answer has what is needed
	a := answer{status: response.StatusCode}
	a.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case a.status/100 == 2:
		if err != nil {
			a.body = nil // the status acknowledges the message even if the body cannot be read
		}
	case a.status/100 == 3:
		a.fault = fmt.Sprintf("the receiver answered %d; redirects are not followed", a.status)
	default:
		a.fault = fmt.Sprintf("the receiver answered %d", a.status)
	}
	if a.fault != "" {
		a.after = retryAfter(response.Header, time.Now())
	}
	return a
}

// faultOf returns a text for an error of the connection. The text names no IP address, because a name may have
// resolved to a private one.
func faultOf(err error) string {
	var (
		timeout  net.Error
		resolve  *net.DNSError
		untrust  *tls.CertificateVerificationError
		protocol tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, errNotPublic), errors.As(err, &resolve):
		return errNotPublic.Error()
	case errors.As(err, &untrust):
		return "the certificate of the receiver is not valid for the address"
	case errors.As(err, &protocol):
		return "the receiver does not speak TLS"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the receiver did not answer in time"
	}
	return "the connection to the receiver failed"
}

// The headers of a message (Standard Webhooks, "Webhook headers").
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
)

// signer signs the messages to one endpoint. During a rotation it has two sets of keys, the new one first.
type signer []keys

// sign sets the headers of a message, which is sent at the given time.
func (s signer) sign(h http.Header, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signed := make([]byte, 0, len(id)+len(timestamp)+len(body)+2)
	signed = append(signed, id...)
	signed = append(signed, '.')
	signed = append(signed, timestamp...)
	signed = append(signed, '.')
	signed = append(signed, body...)
	var signatures []string
	for _, k := range s {
		mac := hmac.New(sha256.New, k.secret)
		mac.Write(signed)
		signatures = append(signatures,
			"v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)),
			"v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, signed)))
	}
	h.Set(headerID, id)
	h.Set(headerTimestamp, timestamp)
	h.Set(headerSignature, strings.Join(signatures, " "))
}
