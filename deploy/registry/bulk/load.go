package bulk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"asset-registry.example/client"
)

// Load takes the rows of a checked file. For each row it creates and publishes an asset and adds its documents.
type Load struct {
	Registry *client.Client // a client that tries each call once, because the load itself repeats calls
	Files    *Folder        // nil: the rows have no files
	Journal  *Journal
	Workers  int               // number of rows that are loaded at the same time
	Tell     func(Result)      // called with the result of each row, from several goroutines
	Waiting  func(text string) // called with the reason when the load has to wait

	calls    *calls
	mu       sync.Mutex
	done     Counts
	stopping error
}

// State is the result of a load for one row.
type State string

// The states of a row.
const (
	Done    State = "done"     // the asset is public, with its documents, and the journal has its tokens
	NoToken State = "no-token" // the asset exists, but its tokens were not kept
	Refused State = "refused"  // the registry refuses the row
	Failed  State = "failed"   // the load ended before the row was done
)

// Result is what a load has done with a row. It never contains a token.
type Result struct {
	Row       int     `json:"row"`
	Reference string  `json:"reference"`
	ID        string  `json:"id,omitempty"`
	State     State   `json:"state"`
	Faults    []Fault `json:"faults,omitempty"`
}

// Counts has the number of rows in each state.
type Counts struct {
	Done    int `json:"done"`
	NoToken int `json:"no_token"`
	Refused int `json:"refused"`
	Failed  int `json:"failed"`
}

// maxRefused is the number of refused rows after which a load ends.
const maxRefused = 100

// Run loads the rows. If it ends before the last row, it returns an error.
func (l *Load) Run(ctx context.Context, s Source, checked Checked) (Counts, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l.calls = newCalls(l.Waiting)
	rows := make(chan Row)
	var workers sync.WaitGroup
	for range l.Workers {
		workers.Go(func() {
			for row := range rows {
				result, err := l.row(ctx, row)
				l.finish(result, err, stop)
			}
		})
	}
	err := l.read(ctx, s, checked, rows)
	close(rows)
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

// read sends the rows to the workers.
func (l *Load) read(ctx context.Context, s Source, checked Checked, to chan<- Row) error {
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
		select {
		case to <- row:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// finish counts the result of a row and reports it. If err is not nil, the load ends.
func (l *Load) finish(result Result, err error, stop func()) {
	l.mu.Lock()
	switch result.State {
	case Done:
		l.done.Done++
	case NoToken:
		l.done.NoToken++
	case Refused:
		l.done.Refused++
		if l.done.Refused == maxRefused {
			err = fmt.Errorf("the registry has refused %d rows", maxRefused)
		}
	case Failed:
		l.done.Failed++
	}
	if err != nil {
		l.end(err, stop)
	}
	l.mu.Unlock()
	l.Tell(result)
}

// end ends the load with an error. The caller holds the lock.
func (l *Load) end(err error, stop func()) {
	if l.stopping == nil {
		l.stopping = err
	}
	stop()
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
