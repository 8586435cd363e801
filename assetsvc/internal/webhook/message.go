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

// The size of a message. One entry may be larger.
const (
	MaxEntries = 100
	MaxBytes   = 64 << 10 // of entries
)

// Selection says what an endpoint sees of the feed.
type Selection struct {
	Version string // as Endpoint.Version
	Mode    string // as Endpoint.Mode
	Whole   bool   // as Endpoint.Whole
	Terms   bool   // entries of the ring have their terms (follow.Entry)
}

func selectionOf(e Endpoint) Selection { return Selection{e.Version, e.Mode, e.Whole, e.Filters != ""} }

// Entry is a changed asset as a selection shows it.
type Entry struct {
	Position int64
	Data     []byte // JSON
}

// Page is a part of the feed.
type Page struct {
	Entries []Entry // in the order of their positions
	Upto    int64   // the selection has nothing else after the page's start and up to here
}

// Found says where the next entry is that meets filters.
type Found struct {
	First int64 // its position; 0: there is none up to Upto
	Upto  int64 // up to which the feed was looked at
	More  bool  // the feed may go on after Upto
}

// Feed is the source of messages. It is safe for concurrent use.
type Feed interface {
	// Follow returns a ring of the newest entries of a selection. The caller must call
	// leave once. After an error the caller reads pages, which have the same entries.
	Follow(s Selection) (ring *follow.Ring, leave func(), err error)
	// Page returns entries of a selection after a position: at most MaxEntries, and
	// MaxBytes of assets, but at least one if there is one. It leaves out those that do not meet
	// filters, so it may have none although the feed goes on.
	Page(ctx context.Context, s Selection, filters assetfilter.Set, after int64) (Page, error)
	// Find looks for the first entry of a mode after a position which meets filters, in the next part
	// of the feed.
	Find(ctx context.Context, mode string, filters assetfilter.Set, after int64) (Found, error)
	// Offset returns a position as an offset.
	Offset(position int64) string
}

// message is what one POST sends.
type message struct {
	id    string
	body  []byte
	first int64 // the position of the oldest entry
	upto  int64 // the position of the newest entry
	full  bool  // there may be more after it
	live  bool  // it was made from a ring
}

// newMessage returns a message with the first of at least one entries, within the bounds.
// The same entries for the same generation of an endpoint make the same message.
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

// messageID returns the same id for the same message. After a change of the endpoint, such
// as a replay, it is another message.
func messageID(e Endpoint, body []byte) string {
	h := sha256.New()
	h.Write([]byte(e.ID + " " + strconv.FormatInt(e.Generation, 10) + " "))
	h.Write(body)
	return "msg_" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}

// newChallenge returns a challenge, and the text that its receiver must answer.
func newChallenge(e Endpoint, timestamp string) (m message, want string) {
	want = rand.Text()
	m.body = fmt.Appendf(nil, `{"type":"webhook.challenge","timestamp":%q,"data":{"challenge":%q}}`, timestamp, want)
	m.id = messageID(e, m.body)
	return m, want
}

// isAnswer reports whether the body of an answer has the text of a challenge.
func isAnswer(body []byte, want string) bool {
	var answer struct {
		Challenge string `json:"challenge"`
	}
	return json.Unmarshal(body, &answer) == nil && answer.Challenge == want
}

// viewed returns the entries of a ring that meet filters.
func viewed(v follow.View, filters assetfilter.Set) []Entry {
	entries := make([]Entry, 0, len(v.Entries))
	for _, e := range v.Entries {
		if filters.Meets(e.Terms) {
			entries = append(entries, Entry{e.Position, e.JSON()})
		}
	}
	return entries
}
