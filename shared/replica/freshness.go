package replica

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"asset-registry.example/client"
)

const (
	askWithin  = 10 * time.Second
	mostGoals  = 64       // maximum number of goals; a goal is a position that the copy has not reached yet
	mostAnswer = 64 << 10 // bytes; the answer has one entry, with few fields
)

// Seen is the end of the origin's feed at one moment.
type Seen struct {
	Position int64     // position of the newest entry; 0: the feed was empty
	At       time.Time // the moment when the feed ended at Position
}

// Freshness records the last time at which a copy had all changes of its origin. The zero value is for a copy that has
// never been as new as its origin. Freshness is safe for concurrent use.
type Freshness struct {
	mu       sync.Mutex
	position int64     // position of the copy
	goals    []Seen    // ends of the feed that the copy has not reached, oldest first
	equal    time.Time // last time when the copy was as new as the origin
}

// Saw records the position at which the origin's feed ended.
func (f *Freshness) Saw(s Seen) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.goals) < mostGoals {
		f.goals = append(f.goals, s)
	}
	f.advance()
}

// Reached records the position of the copy.
func (f *Freshness) Reached(position int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.position = max(f.position, position)
	f.advance()
}

func (f *Freshness) advance() {
	for len(f.goals) > 0 && f.goals[0].Position <= f.position {
		if at := f.goals[0].At; at.After(f.equal) {
			f.equal = at
		}
		f.goals = f.goals[1:]
	}
}

// Restart begins with a new copy. The argument `equal` is the time when the new copy was last as new as the origin.
func (f *Freshness) Restart(equal time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.position, f.goals, f.equal = 0, nil, equal
}

// Equal returns when the copy was last as new as the origin.
func (f *Freshness) Equal() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.equal
}

// Behind returns the time since the copy was last as new as the origin.
func (f *Freshness) Behind() time.Duration {
	return max(0, time.Since(f.Equal()))
}

// End says where a feed ends, and to which data the feed belongs.
type End struct {
	Seen
	ServerID string // value of the cookie SERVER_ID
}

// AskEnd asks a registry or a mirror for the newest entry of its feed. The header Age of a mirror's answer says
// how old the answer is. agent is the User-Agent of the request.
func AskEnd(ctx context.Context, c *http.Client, of, agent string) (End, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	asked := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.TrimSuffix(of, "/")+"/api/2.5/assets?mode=_all_&descending=1&limit=1", nil)
	if err != nil {
		return End{}, err
	}
	req.Header.Set("User-Agent", agent)
	resp, err := c.Do(req)
	if err != nil {
		return End{}, fmt.Errorf("ask for the end of the feed: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return End{}, fmt.Errorf("ask for the end of the feed: status %d", resp.StatusCode)
	}
	var page struct {
		Data []struct {
			DateModified client.Timestamp `json:"dateModified"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, mostAnswer)).Decode(&page); err != nil {
		return End{}, fmt.Errorf("ask for the end of the feed: %w", err)
	}
	e := End{Seen: Seen{At: asked.Add(-ageOf(resp.Header))}}
	for _, cookie := range resp.Cookies() {
		if cookie.Name == "SERVER_ID" {
			e.ServerID = cookie.Value
		}
	}
	if e.ServerID == "" || page.Data == nil {
		return End{}, fmt.Errorf("ask for the end of the feed: %w: it has no cookie SERVER_ID, or no list", ErrAnswer)
	}
	if len(page.Data) > 0 {
		at, err := page.Data[0].DateModified.Time()
		if err != nil {
			return End{}, fmt.Errorf("ask for the end of the feed: %w", err)
		}
		if e.Position = at.UnixMicro(); e.Position > Latest() {
			return End{}, fmt.Errorf("ask for the end of the feed: %w: it is at %s", ErrAnswer, timeOf(e.Position))
		}
	}
	return e, nil
}

// ageOf returns the value of the header Age plus one second, because Age has no fractions of a second. Without
// the header it returns 0.
func ageOf(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Age"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds+1) * time.Second
}
