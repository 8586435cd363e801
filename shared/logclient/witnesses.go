package logclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/errs"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/translog"
)

// linger is the time for which Cosign still waits for cosignatures after the quorum.
const linger = 100 * time.Millisecond

// Prove returns the proof that the tree of the submitted checkpoint begins with an older tree of the log, as
// translog.Consistent does. The argument `older` is the size of the older tree. Prove may be called concurrently.
type Prove func(ctx context.Context, older int64) ([]tlog.Hash, error)

// Witnesses asks the witnesses of a policy for cosignatures. It remembers which size
// each one cosigned last. Its methods may be called concurrently.
type Witnesses struct {
	policy *translog.Policy
	all    []*witness
	within time.Duration
	linger time.Duration

	ctx    context.Context // the parent context of all requests; Close ends it
	cancel context.CancelFunc
	asking sync.WaitGroup
}

// witness is a witness with an address.
type witness struct {
	translog.PolicyWitness
	target string
	client *http.Client

	mu   sync.Mutex // held while the witness is asked
	size int64      // the last size that this process knows the witness to have cosigned
}

// NewWitnesses returns the witnesses of the policy that have an address. within is the time limit of a request.
// A nil transport is http.DefaultTransport.
func NewWitnesses(policy *translog.Policy, transport http.RoundTripper, within time.Duration) (*Witnesses, error) {
	w := &Witnesses{policy: policy, within: within, linger: linger}
	for _, known := range policy.Witnesses {
		if known.URL == "" {
			continue
		}
		prefix, err := address(known.URL)
		if err != nil {
			return nil, fmt.Errorf("witness %s: %w", known.Name, err)
		}
		w.all = append(w.all, newWitness(known, prefix, transport))
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w, nil
}

func newWitness(known translog.PolicyWitness, prefix *url.URL, transport http.RoundTripper) *witness {
	return &witness{PolicyWitness: known, target: prefix.JoinPath("add-checkpoint").String(),
		client: httpclient.New(transport)}
}

// Close ends all requests under way and waits for them. Cosign must not be called
// any more.
func (w *Witnesses) Close() {
	w.cancel()
	w.asking.Wait()
}

// Cosigned is the result of Cosign.
type Cosigned struct {
	Checkpoint []byte           // the checkpoint with the cosignatures, in the order of the policy
	Quorum     bool             // the policy accepts the checkpoint with these cosignatures
	Faults     map[string]error // by the name of a witness: why it did not cosign
}

// The causes in Cosigned.Faults.
var (
	ErrBusy    = errors.New("the witness has not answered to an earlier checkpoint")
	ErrLate    = errors.New("the witness has not answered yet")
	ErrAhead   = errors.New("the witness cosigned a greater size of the log")
	ErrRefused = errors.New("the witness refuses the checkpoint")
)

// Cosign asks all witnesses at the same time to cosign a signed checkpoint of a log that has the given size. It
// returns when all have answered, or shortly after the quorum was reached, or when ctx is done. Unfinished requests
// then go on in the background, so that the next Cosign knows the sizes that their witnesses have cosigned.
func (w *Witnesses) Cosign(ctx context.Context, checkpoint []byte, size int64, prove Prove) Cosigned {
	type result struct {
		index int
		line  []byte
		err   error
	}
	results := make(chan result, len(w.all))
	lines, faults := make([][]byte, len(w.all)), map[string]error{}
	for i, one := range w.all {
		faults[one.Name] = ErrLate
		if !one.mu.TryLock() {
			results <- result{i, nil, ErrBusy}
			continue
		}
		w.asking.Go(func() {
			ctx, cancel := context.WithTimeout(w.ctx, w.within)
			defer cancel()
			line, err := one.ask(ctx, checkpoint, size, prove)
			one.mu.Unlock() // unlock before the result is sent, so that the next Cosign can ask this witness
			results <- result{i, line, err}
		})
	}
	var enough <-chan time.Time
	for range w.all {
		select {
		case r := <-results:
			lines[r.index] = r.line
			faults[w.all[r.index].Name] = r.err
			if r.err == nil {
				delete(faults, w.all[r.index].Name)
			}
			if enough == nil && w.isQuorum(checkpoint, lines) {
				enough = time.After(w.linger)
			}
			continue
		case <-enough:
		case <-ctx.Done():
		}
		break
	}
	return Cosigned{merge(checkpoint, lines), w.isQuorum(checkpoint, lines), faults}
}

func (w *Witnesses) isQuorum(checkpoint []byte, lines [][]byte) bool {
	_, err := w.policy.Open(merge(checkpoint, lines))
	return err == nil
}

// merge appends the lines to the checkpoint.
func merge(checkpoint []byte, lines [][]byte) []byte {
	return append(bytes.Clone(checkpoint), bytes.Join(lines, nil)...)
}

// ask asks the witness for a cosignature. If the size that the witness last cosigned differs from w.size, ask corrects
// w.size and asks once more.
func (w *witness) ask(ctx context.Context, checkpoint []byte, size int64, prove Prove) ([]byte, error) {
	if w.size > size {
		return nil, fmt.Errorf("%w: %d", ErrAhead, w.size)
	}
	for again := false; ; again = true {
		proof, err := prove(ctx, w.size)
		if err != nil {
			return nil, fmt.Errorf("prove that size %d is continued: %w", w.size, err)
		}
		body := translog.Submission{Old: w.size, Proof: proof, Checkpoint: checkpoint}.Encode()
		line, known, err := w.post(ctx, checkpoint, body)
		if err == nil {
			w.size = size
			return line, nil
		}
		switch {
		case known > size:
			return nil, fmt.Errorf("%w: %d", ErrAhead, known)
		case known < 0 || again:
			return nil, err
		}
		w.size = known
	}
}

// post sends one request. The request names the size that the witness last cosigned. If the witness refuses because
// this size is wrong, post also returns the right size. Otherwise the returned size is negative.
func (w *witness) post(ctx context.Context, checkpoint, body []byte) (line []byte, known int64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.target, bytes.NewReader(body))
	if err != nil {
		return nil, -1, err
	}
	request.Header.Set("Content-Type", "text/plain; charset=utf-8")
	answer, err := w.client.Do(request)
	if err != nil {
		return nil, -1, err
	}
	defer func() { _ = answer.Body.Close() }() // an error of Close does not matter after reading
	text, err := io.ReadAll(io.LimitReader(answer.Body, translog.MaxCheckpoint))
	if err != nil {
		return nil, -1, err
	}
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	switch {
	case answer.StatusCode == http.StatusOK:
		line, err := translog.Cosignature(checkpoint, text, w.Key)
		return line, -1, err
	case answer.StatusCode == http.StatusConflict && kind == "text/x.tlog.size":
		known, err := strconv.ParseInt(strings.TrimSuffix(string(text), "\n"), 10, 64)
		if err != nil || known < 0 {
			return nil, -1, fmt.Errorf("%w: it tells the size %.40q", ErrRefused, text)
		}
		return nil, known, fmt.Errorf("%w: it cosigned size %d", ErrRefused, known)
	default:
		return nil, -1, fmt.Errorf("%w: status %d: %.200q", ErrRefused, answer.StatusCode, text)
	}
}

// ReadPolicy reads a policy file (docs/log.md, "Witnesses"). Errors about its content
// name the file and have the cause translog.ErrPolicy.
func ReadPolicy(file string) (*translog.Policy, error) {
	r, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the policy of the log: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, translog.MaxPolicy+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read the policy of the log: %w", err)
	}
	policy, err := translog.ParsePolicy(text)
	return policy, errs.In(err, "read the policy of the log: %s", file)
}
