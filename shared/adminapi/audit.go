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

// Entry is one change in the audit log. Each holds the hash of the one before,
// so that none can be changed, taken out or put in without changing all that
// follow. It never holds a secret or a secret's hash.
type Entry struct {
	Seq       int64           `json:"seq"` // 1 for the first
	Time      time.Time       `json:"time"`
	Who       string          `json:"who"`  // id and name of the key that asked for it
	From      string          `json:"from"` // its address
	RequestID string          `json:"request_id,omitempty"`
	Action    string          `json:"action"`  // "key.rotate"
	Subject   string          `json:"subject"` // "key ID" or "broker NAME"
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Prev      string          `json:"prev"` // hash of the entry before, "" for the first
	Hash      string          `json:"hash"` // of all that stands above
	Seal      string          `json:"seal"` // of the hash, by the registry's secret
}

// Sum returns the hash that an entry should have: the SHA-256 of its JSON
// without hash and seal.
func (e Entry) Sum() (string, error) {
	e.Hash, e.Seal = "", ""
	text, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("encode audit entry %d: %w", e.Seq, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Head is where a log ends. The zero value is that of an empty log.
type Head struct {
	Seq  int64
	Hash string
}

// String returns "SEQ:HASH".
func (h Head) String() string { return strconv.FormatInt(h.Seq, 10) + ":" + h.Hash }

// ErrHead is returned for a text that is no head.
var ErrHead = errors.New("this is no head of an audit log: it has the form SEQ:HASH")

// ParseHead returns the head that String has made a text of.
func ParseHead(text string) (Head, error) {
	seq, hash, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(seq, 10, 64)
	if sum, bad := hex.DecodeString(hash); err != nil || n < 0 || bad != nil || len(sum) != sha256.Size && n != 0 {
		return Head{}, ErrHead
	}
	return Head{n, hash}, nil
}

// Chain follows an audit log from its beginning and collects what is wrong.
type Chain struct {
	Head     Head
	Problems []string
	known    Head // a head that must be on the way
	met      bool
}

// Follow returns a chain that must come past a head known from earlier: a log
// whose tail was cut off, or which was made anew, does not. The zero head is
// that of no earlier knowledge.
func Follow(known Head) *Chain { return &Chain{known: known, met: known.Seq == 0} }

// Add follows the chain by one entry.
func (c *Chain) Add(e Entry) {
	if e.Seq != c.Head.Seq+1 {
		c.fail("entry %d follows entry %d", e.Seq, c.Head.Seq)
	} else if e.Prev != c.Head.Hash {
		c.fail("entry %d does not follow from the one before", e.Seq)
	}
	if sum, err := e.Sum(); err != nil || sum != e.Hash {
		c.fail("entry %d is not as it was written", e.Seq)
	}
	c.Head = Head{e.Seq, e.Hash}
	if c.Head == c.known {
		c.met = true
	}
}

// End tells all that is wrong with a log that ends here.
func (c *Chain) End() []string {
	if !c.met {
		c.fail("entry %d, known from before, is not there any more as it was", c.known.Seq)
		c.met = true
	}
	return c.Problems
}

func (c *Chain) fail(format string, args ...any) {
	c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
}
