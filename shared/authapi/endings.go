package authapi

import (
	"context"
	"time"

	"asset-registry/shared/errs"
)

// Ending says what an entry of the audit log took away from a key or a broker. The asset services keep endings beside
// the assets, in a store that does not go back in time together with the store of keys. An ending has no secret and no
// hash of one.
type Ending struct {
	ID   string `json:"id"`   // HeadID, or the subject of the entry and the kind; a later ending of the id replaces it
	Seq  int64  `json:"seq"`  // number of the entry
	Hash string `json:"hash"` // hash of the entry

	Subject string            `json:"subject,omitempty"` // "key ID" or "broker NAME"
	Closed  *time.Time        `json:"closed,omitempty"`  // the key was revoked, or the broker was blocked
	Expires *time.Time        `json:"expires,omitempty"` // end of the key
	Newest  int               `json:"newest,omitempty"`  // number of the newest secret of the key
	Until   map[int]time.Time `json:"until,omitempty"`   // ends of its former secrets; others have ended already
	// Rights is true if the key lost a level, a role or an address. The registry then has to refuse the key in its
	// former state, because an ending does not say what is left.
	Rights bool `json:"rights,omitempty"`
}

// HeadID is the id of the row that names the newest entry of the audit log whose endings are kept.
const HeadID = "head"

// The maximum numbers of endings in a request, and of entries that an answer is about.
const (
	MaxEndings = 40
	MaxEntries = 20
)

// EndingsRequest tells which endings an asset service keeps, and asks for those of later entries.
type EndingsRequest struct {
	At     Ending `json:"at"`      // the kept row HeadID; zero: nothing is kept
	WaitMS int64  `json:"wait_ms"` // maximum time to wait for a later entry

	// Endings is a page of the kept endings, because the answer before said Behind. Last marks the last page.
	Endings []Ending `json:"endings,omitempty"`
	Last    bool     `json:"last,omitempty"`
}

// EndingsResponse has endings to keep, and last the new row HeadID. It has nothing if there is no later entry. Behind
// asks for all kept endings, in pages: the store of keys lacks the entry that the request names.
type EndingsResponse struct {
	Endings []Ending `json:"endings,omitempty"`
	Behind  bool     `json:"behind,omitempty"`
}

// Endings exchanges endings with the auth service.
func (c *Client) Endings(ctx context.Context, r EndingsRequest) (EndingsResponse, error) {
	var answer EndingsResponse
	err := c.call(ctx, EndingsPath, r, &answer)
	return answer, errs.In(err, "exchange endings")
}
