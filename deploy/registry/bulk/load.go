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

// Load creates, publishes and completes the rows of a checked file.
type Load struct {
	Registry *client.Client // with one try a call: the load repeats calls by itself
	Files    *Folder        // nil: there are no files
	Journal  *Journal
	Workers  int               // rows at the same time
	Tell     func(Result)      // is told about each row, by several goroutines
	Waiting  func(text string) // is told why the load waits

	calls    *calls
	mu       sync.Mutex
	done     Counts
	stopping error
}

// State says what a load has made of a row.
type State string

// The states of a row.
const (
	Done    State = "done"     // the asset is public, with its documents, and the journal has its tokens
	NoToken State = "no-token" // the asset is there, and nobody has kept its tokens
	Refused State = "refused"  // the registry refuses the row
	Failed  State = "failed"   // the load ended before the row was done
)

// Result is what a load has made of a row. It has no token.
type Result struct {
	Row       int     `json:"row"`
	Reference string  `json:"reference"`
	ID        string  `json:"id,omitempty"`
	State     State   `json:"state"`
	Faults    []Fault `json:"faults,omitempty"`
}

// Counts are the rows of a load by their states.
type Counts struct {
	Done    int `json:"done"`
	NoToken int `json:"no_token"`
	Refused int `json:"refused"`
	Failed  int `json:"failed"`
}

// maxRefused is the number of refused rows that ends a load.
const maxRefused = 100

// Run loads the rows. It returns an error if it ended before the last row.
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

// errChanged is the error of a file that differs from the one that was checked.
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
		if sum, err := row.sum(); err != nil || sum != checked.sums[row.Reference] {
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

// finish counts and tells a result. An error ends the load.
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

// end ends the load with an error. The caller has the lock.
func (l *Load) end(err error, stop func()) {
	if l.stopping == nil {
		l.stopping = err
	}
	stop()
}

// keyOf returns the idempotency key of a row. The same row has the same key in every run, so a creation
// whose answer was lost is repeated with its tokens within 24 hours.
func keyOf(reference, sum string) string {
	hash := sha256.Sum256([]byte("registryctl assets import\n" + reference + "\n" + sum))
	return hex.EncodeToString(hash[:])
}
