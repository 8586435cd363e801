package bulk

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"asset-registry.example/client"

	"asset-registry/shared/sleep"
)

// Load takes the rows of a checked file. For each row it creates and publishes an asset and adds its documents.
type Load struct {
	Registry *client.Client // a client that tries each call once, because the load itself repeats calls
	Files    *Folder        // nil: the rows have no files
	Journal  *Journal
	Workers  int               // number of rows that are loaded at the same time
	Tell     func(Result)      // called with the result of each row, in their order
	Waiting  func(text string) // called with the reason when the load has to wait

	Order *Folder           // folder with the order of a withdrawal
	Paper string            // name of the order; "": nothing is withdrawn
	Taken map[string]string // ids of assets that stand under references which the journal does not have

	calls    *calls
	planning bool
	mu       sync.Mutex
	plans    map[string]plan // by reference
	waiting  map[int]Result  // results whose turn has not come, by the order of the rows
	told     int             // number of results that were told
	done     Counts
	stopping error
}

// State is the result of a load for one row.
type State string

// The states of a row.
const (
	Done      State = "done"      // the asset is public, as the row says, and the journal has its tokens
	NoToken   State = "no-token"  // the asset exists, but its tokens were not kept
	Refused   State = "refused"   // the registry refuses the row
	Failed    State = "failed"    // the load ended before the row was done
	Withdrawn State = "withdrawn" // the asset was deleted, because its row has left the table
	New       State = "new"       // the row will make an asset
)

// Result is what a load has done with a row, or will do. It never contains a token.
type Result struct {
	Row       int     `json:"row"`
	Reference string  `json:"reference"`
	ID        string  `json:"id,omitempty"`
	Number    string  `json:"number,omitempty"` // assetID
	Page      string  `json:"page,omitempty"`   // address of its page, for the caller to set
	State     State   `json:"state"`
	Changes   []Fault `json:"changes,omitempty"`
	Faults    []Fault `json:"faults,omitempty"`

	IsPublic bool `json:"-"`
	Told     bool `json:"-"` // the plan had the faults
	Files    int  `json:"-"`
}

// Counts has the number of rows in each state, and of those that were changed.
type Counts struct {
	Done      int `json:"done"`
	NoToken   int `json:"no_token"`
	Refused   int `json:"refused"`
	Failed    int `json:"failed"`
	Withdrawn int `json:"withdrawn"`
	New       int `json:"new,omitempty"`
	Changed   int `json:"changed"`
}

// maxRefused is the number of refused rows after which a load ends.
const maxRefused = 100

// Plan finds out what Run will do. It calls the function Tell with the changes, and the faults, of each row.
func (l *Load) Plan(ctx context.Context, s Source, checked Checked) (Counts, error) {
	l.planning, l.plans = true, map[string]plan{}
	defer func() { l.planning = false }()
	return l.Run(ctx, s, checked)
}

// Run loads the rows. If it ends before the last row, it returns an error.
func (l *Load) Run(ctx context.Context, s Source, checked Checked) (Counts, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l.calls = newCalls(l.Waiting)
	l.done, l.stopping, l.told, l.waiting = Counts{}, nil, 0, map[int]Result{}
	type turn struct {
		row Row
		at  int
	}
	turns := make(chan turn)
	var workers sync.WaitGroup
	for range l.Workers {
		workers.Go(func() {
			for t := range turns {
				result, err := l.row(ctx, t.row)
				result.Files = len(t.row.Documents)
				l.finish(t.at, result, err, stop)
			}
		})
	}
	sent := 0
	err := l.read(ctx, s, checked, func(row Row) error {
		select {
		case turns <- turn{row, sent}:
			sent++
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(turns)
	workers.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopping != nil {
		err = l.stopping
	}
	return l.done, err
}

// errChanged is the error for a file that has changed since it was checked.
var errChanged = errors.New("the file has changed since it was checked: run the command again")

// read sends the rows to the workers, and then the rows that have left the table.
func (l *Load) read(ctx context.Context, s Source, checked Checked, send func(Row) error) error {
	s.files = l.Files
	rows, faults, err := s.open()
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return errChanged
	}
	for range checked.Rows {
		row, faults, err := rows.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil || len(faults) > 0 {
			return errChanged
		}
		if sums, err := row.sums(); err != nil || sums.Same != checked.sums[row.Reference] {
			return errors.Join(err, errChanged)
		}
		if err := send(row); err != nil {
			return err
		}
	}
	if l.Paper == "" {
		return nil
	}
	for _, reference := range l.Journal.Left(checked) {
		order := Document{l.Paper, client.Fields{"documentType": client.CancellationDetails}}
		row := Row{Reference: reference, Documents: []Document{order}, left: true, column: func(string) string { return "" }}
		if err := send(row); err != nil {
			return err
		}
	}
	return nil
}

// finish counts the result of a row, and tells the results whose turn has come. If err is not nil, the load ends.
func (l *Load) finish(at int, result Result, err error, stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	(*map[State]*int{
		Done: &l.done.Done, NoToken: &l.done.NoToken, Refused: &l.done.Refused, Failed: &l.done.Failed,
		Withdrawn: &l.done.Withdrawn, New: &l.done.New,
	}[result.State])++
	if result.State == Refused && l.done.Refused == maxRefused && !result.Told && !l.planning {
		err = fmt.Errorf("the registry has refused %d rows", maxRefused)
	}
	if len(result.Changes) > 0 && result.State == Done {
		l.done.Changed++
	}
	if err != nil {
		l.stopping = cmp.Or(l.stopping, err)
		stop()
	}
	for l.waiting[at] = result; ; l.told++ {
		next, ok := l.waiting[l.told]
		if !ok {
			return
		}
		delete(l.waiting, l.told)
		l.Tell(next)
	}
}

// keysOf returns the idempotency keys of a row. The same row has the same keys in every run. So if the answer to a
// creation was lost, a run within 24 hours repeats the creation and gets the tokens. The last key is that of a program
// before this one, which may have begun the load; the next release leaves it out.
func keysOf(reference string, s sums) (keys []string) {
	for _, sum := range []string{"", s.Bytes} {
		hash := sha256.Sum256([]byte("registryctl assets import\n" + reference + "\n" + sum))
		keys = append(keys, hex.EncodeToString(hash[:]))
	}
	return keys
}

// Pauses between tries while the registry does not answer.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 10 * time.Second
	patience     = 2 * time.Minute // the load gives up after this time without any answer
)

// toldWait is the shortest wait that is reported to the user.
const toldWait = 5 * time.Second

// calls makes the calls of all rows. It repeats a call while the registry answers 429 (Too Many Requests). If the
// registry does not answer, it repeats the call for some time. If the registry tells one row to wait, all rows wait.
type calls struct {
	waiting func(string)

	mu       sync.Mutex
	until    time.Time // no call begins before this time
	answered time.Time // time of the last answer
	told     time.Time // end of the wait that was last reported to the user
}

func newCalls(waiting func(string)) *calls { return &calls{waiting: waiting, answered: time.Now()} }

// The method `do` repeats a call until it has a final answer. It may run the given function several times, so
// repeated runs must do no harm.
func (c *calls) do(ctx context.Context, call func() error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		c.mu.Lock()
		wait := time.Until(c.until)
		c.mu.Unlock()
		if !sleep.For(ctx, wait) && ctx.Err() != nil {
			return ctx.Err()
		}
		err := call()
		if !c.again(ctx, err, pause) {
			return err
		}
	}
}

// The method `again` reports whether a call that ended with err must be made again. If no answer came, it first waits.
func (c *calls) again(ctx context.Context, err error, pause time.Duration) bool {
	refusal, _ := errors.AsType[*client.Error](err)
	limited := refusal != nil && refusal.Status == http.StatusTooManyRequests
	c.mu.Lock()
	if limited {
		c.limit(refusal.RetryAfter)
	}
	if !isAway(err) {
		c.answered = time.Now()
	}
	silent := time.Since(c.answered)
	c.mu.Unlock()
	if limited || !isAway(err) || silent > patience || ctx.Err() != nil {
		return limited && ctx.Err() == nil
	}
	if refusal != nil {
		pause = max(pause, refusal.RetryAfter)
	}
	return sleep.For(ctx, pause+rand.N(pause/4))
}

// limit makes all calls wait: no call begins before the given duration has passed. The caller holds
// the lock.
func (c *calls) limit(wait time.Duration) {
	wait = max(wait, time.Second)
	until := time.Now().Add(wait)
	if until.After(c.until) {
		c.until = until
	}
	if wait >= toldWait && time.Now().After(c.told) {
		c.told = c.until
		c.waiting(fmt.Sprintf("The registry limits requests: the import goes on in %v.", wait.Round(time.Second)))
	}
}

// isAway reports whether a call got no answer from the registry. Such a call may have taken effect.
func isAway(err error) bool {
	if err == nil {
		return false
	}
	if _, local := errors.AsType[*fs.PathError](err); local {
		return false
	}
	away := []int{0, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	return slices.Contains(away, client.StatusOf(err))
}
