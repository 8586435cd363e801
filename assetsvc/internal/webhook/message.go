package webhook

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

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
