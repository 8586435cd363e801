package adminapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Entry is one change in the audit log. It contains the hash of the entry before
// it. So nobody can change, remove or insert an entry without changing all later
// ones. An entry never contains a secret or a secret's hash.
type Entry struct {
	Seq       int64           `json:"seq"` // 1 for the first
	Time      time.Time       `json:"time"`
	Who       string          `json:"who"`  // id and name of the caller's key
	From      string          `json:"from"` // the caller's address
	RequestID string          `json:"request_id,omitempty"`
	Action    string          `json:"action"`  // such as "key.rotate"
	Subject   string          `json:"subject"` // "key ID", "broker NAME", "webhook ID", "asset ID" or "file ID"
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Prev      string          `json:"prev"` // hash of the entry before, "" for the first
	Hash      string          `json:"hash"` // hash of all fields above
	Seal      string          `json:"seal"` // seal of the hash, made with the registry's secret
}

// Sum returns the hash that the entry should have: the SHA-256, in hex, of its
// JSON without hash and seal.
func (e Entry) Sum() (string, error) {
	e.Hash, e.Seal = "", ""
	text, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("encode audit entry %d: %w", e.Seq, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// LogLost is the action of an entry that begins a new chain: the store went back in time, and entries are lost. The
// number of the entry is above all lost numbers. It has the hash of the last entry that is left.
const LogLost = "log.lost"

// Lost is the state of an entry with the action LogLost.
type Lost struct {
	Lost string `json:"lost"` // number and hash of the last lost entry
}

// Head is the end of a log. The zero value is the end of an empty log.
type Head struct {
	Seq  int64
	Hash string
}

// String returns "SEQ:HASH".
func (h Head) String() string { return strconv.FormatInt(h.Seq, 10) + ":" + h.Hash }

// errHead is returned for a text that is not a head.
var errHead = errors.New("the head of an audit log must have the form SEQ:HASH")

// ParseHead parses a text from Head.String.
func ParseHead(text string) (Head, error) {
	seq, hash, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(seq, 10, 64)
	if sum, bad := hex.DecodeString(hash); err != nil || n < 0 || bad != nil || len(sum) != sha256.Size && n != 0 {
		return Head{}, errHead
	}
	return Head{n, hash}, nil
}

// Chain verifies an audit log from its first entry on.
type Chain struct {
	Head     Head     // head of the entries up to now
	Problems []string // all problems found up to now
	Lost     []string // what the entries with the action LogLost say
	known    Head     // a head from an earlier verification, which must occur again
	met      bool     // the head in the field `known` has occurred
}

// Follow returns a chain for a log that was verified before. The chain checks that the log
// still contains the known head. A log that lost its end or was replaced does not contain
// it. For the zero head, the chain does not check this.
func Follow(known Head) *Chain { return &Chain{known: known, met: known.Seq == 0} }

// Add verifies the next entry.
func (c *Chain) Add(e Entry) {
	switch {
	case e.Action == LogLost && e.Seq > c.Head.Seq && e.Prev == c.Head.Hash:
		var of Lost
		_ = json.Unmarshal(e.After, &of) // the hash covers the text, so a changed text is a problem anyway
		c.Lost = append(c.Lost, fmt.Sprintf("the store went back to entry %d and lost the entries up to %s; "+
			"entry %d begins a new chain", c.Head.Seq, of.Lost, e.Seq))
	case e.Seq != c.Head.Seq+1:
		c.fail("entry %d follows entry %d", e.Seq, c.Head.Seq)
	case e.Prev != c.Head.Hash:
		c.fail("entry %d does not have the hash of the entry before it", e.Seq)
	}
	if sum, err := e.Sum(); err != nil || sum != e.Hash {
		c.fail("entry %d is not as it was written", e.Seq)
	}
	c.Head = Head{e.Seq, e.Hash}
	if c.Head == c.known {
		c.met = true
	}
}

// End must be called after the last entry of the log. It returns all problems of the log.
func (c *Chain) End() []string {
	if !c.met {
		c.fail("entry %d, known from an earlier check, is missing or changed", c.known.Seq)
		c.met = true
	}
	return c.Problems
}

func (c *Chain) fail(format string, args ...any) {
	c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
}
