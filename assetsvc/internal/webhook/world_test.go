package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/assetfilter"
	"asset-registry/shared/follow"
	"asset-registry/shared/sleep"
	"asset-registry/shared/testing/expect"
)

// world has a feed, a store and receivers, and checks the messages that the receivers get. Its time is virtual
// (testing/synctest).
type world struct {
	t     *testing.T
	seals Seals
	store *memory
	log   *slog.Logger  // log of all processes
	lines *bytes.Buffer // warnings in the log of the processes; may be read once they have ended
	mu    sync.Mutex
	rand  *rand.Rand

	entries []change
	rings   map[Selection]*follow.Ring
	small   bool // rings hold only a few entries
	size    int  // bytes of a ring; 0: the field `small` decides
	meter   metric.Meter

	follows, followed int            // number of calls of Follow, and number of rings that were not left yet
	reads             map[string]int // number of calls of Page and Find
	feedFails         string         // name of the method that fails: Follow, Page or Find
	findTakes         time.Duration  // how long a call of Find takes
	findMost          int            // maximum number of changes that a call of Find examines; 0: ten
	moved             int            // Find finds the change with this number once, but no Page has it; 0: none
	large             map[int]int    // extra bytes of changes; the keys are numbers of changes

	receivers map[string]*receiver
	faults    []string
	started   int  // number of processes started
	twins     bool // several processes run at the same time, so messages may be sent twice
	leaveOut  guard
}

// guard is a rule of the protocol. Each value is named for what happens without the rule. A simulation leaves a
// rule out, to show that the rule is needed. The zero guard leaves out nothing.
type guard int

const (
	_       guard = iota
	hasty         // a worker does not wait for the end of the previous worker
	early         // messages are acknowledged before the receiver has them
	gappy         // rings lose entries, but claim to cover them
	behind        // saves are acknowledged before they are made
	anyTerm       // saves of former terms are accepted
)

// change is an entry of the feed. Its number is its index in the feed.
type change struct {
	position int64
	number   int
	test     bool
}

// conduct describes how a receiver answers.
type conduct struct {
	takes   time.Duration
	fails   float64 // share of the messages that the receiver refuses with 500
	drops   float64 // share of the messages that the receiver handles, but does not acknowledge
	dead    bool    // the receiver never answers
	retries string  // the header Retry-After of refusals
}

// receiver checks the messages to one endpoint.
type receiver struct {
	conduct
	id       string
	test     bool // the endpoint gets changes of test assets only
	filters  assetfilter.Set
	handled  int  // number of the newest entry that the receiver has; -1: none
	acked    bool // the last message was acknowledged
	last     int  // number of the first entry of the last message
	underway int
	repeats  int
	repeated int // the process that has sent the last repeated message, by its number
	changed  int // number of changes of the endpoint through the API
	messages int
	posts    int               // number of requests
	ids      map[string]string // bodies of messages; the keys are ids of messages
	worst    time.Duration     // longest time from a change to its message
	status   int               // status of all answers; 0: the fields of conduct decide
}

func newWorld(t *testing.T, seed uint64) *world {
	lines := &bytes.Buffer{}
	log := slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return &world{t: t, seals: sealsOf(t, "a"), store: newMemory(), log: log, lines: lines,
		meter: noop.Meter{}, reads: map[string]int{}, large: map[int]int{},
		rand: rand.New(rand.NewPCG(seed, 1)), rings: map[Selection]*follow.Ring{}, receivers: map[string]*receiver{}}
}

func (w *world) faultf(format string, args ...any) {
	if len(w.faults) < 10 {
		w.faults = append(w.faults, fmt.Sprintf(format, args...))
	}
}

func (w *world) chance(p float64) bool { return w.rand.Float64() < p }

// uncounted changes an endpoint in the store without incrementing Term.Changes, like a Put that fails between these two
// writes.
func (w *world) uncounted(id string, change func(*Endpoint)) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	e := w.store.endpoints[id]
	change(&e)
	w.store.endpoints[id] = e
}

// add adds an active endpoint and its receiver.
func (w *world) add(id string, c conduct) *receiver {
	seal, err := w.seals.New()
	expect.OK(w.t, err)
	r := &receiver{conduct: c, id: id, handled: -1, acked: true, last: -1, ids: map[string]string{}}
	w.receivers[id] = r
	e := Endpoint{ID: id, Broker: "b" + id, URL: "https://" + id + ".example/", Seal: seal,
		Progress: Progress{State: Active, Verified: true}}
	if r.test = strings.HasSuffix(id, "t"); r.test {
		e.Mode = "test"
	}
	if _, owner, found := strings.Cut(id, "-of-"); found {
		e.Filters = fmt.Sprintf(`{"owner":[%q]}`, owner)
		r.filters, err = assetfilter.Parse(e.Filters)
		expect.OK(w.t, err)
	}
	expect.OK(w.t, w.store.Put(context.Background(), e))
	return r
}

// change rotates the secret of an endpoint, like the API does.
func (w *world) change(to *receiver) {
	seal := expect.Get(w.seals.New())(w.t)
	w.mu.Lock()
	defer w.mu.Unlock()
	e, err := w.store.Endpoint(context.Background(), to.id)
	e.OldSeal, e.OldUntil, e.Seal = e.Seal, time.Now().Add(overlap), seal
	if err := errors.Join(err, w.store.Put(context.Background(), e)); err != nil {
		if !errors.Is(err, ErrStale) { // ErrStale: the sender has saved a position meanwhile
			w.t.Error(err)
		}
		return
	}
	to.changed++
}

// grow adds a change to the feed. Every tenth change is of a test asset.
func (w *world) grow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := change{position: time.Now().UnixMicro(), number: len(w.entries), test: len(w.entries)%10 == 0}
	if n := len(w.entries); n > 0 {
		c.position = max(c.position, w.entries[n-1].position+1)
	}
	w.entries = append(w.entries, c)
	for s, ring := range w.rings {
		switch {
		case (s.Mode == "test") != c.test || w.leaveOut == gappy && w.chance(0.02):
			ring.Append(nil, c.position, "")
		case w.small && w.chance(0.05):
			ring.Skip(c.position, "")
		default:
			line := follow.AppendEntry(nil, c.position, w.Offset(c.position), w.data(c))
			made := &follow.Entry{Position: c.position, Data: line}
			if s.Terms {
				made.Terms = c.terms()
			}
			ring.Append([]*follow.Entry{made}, c.position, "")
		}
	}
}

// terms returns the terms that stand for the owner of a change. The owner "seldom" has one change in 97, and
// "rare" has a single change.
func (c change) terms() []string {
	if c.number == 999 {
		return []string{"owner=rare"}
	}
	if c.number%97 == 5 {
		return []string{"owner=seldom"}
	}
	return []string{fmt.Sprintf("owner=b%d", c.number%3)}
}

func (w *world) data(c change) []byte {
	return fmt.Appendf(nil, `{"n":%d,"pad":"%s"}`, c.number, strings.Repeat("x", w.large[c.number]))
}

func (w *world) Follow(s Selection) (*follow.Ring, func(), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.feedFails == "Follow" {
		return nil, nil, errors.New("too many follow")
	}
	w.follows++
	w.followed++
	ring := w.rings[s]
	if ring == nil {
		size := 1 << 20
		if w.small {
			size = 1 << 10
		}
		if w.size > 0 {
			size = w.size
		}
		ring = follow.NewRing(size)
		var upto int64
		if n := len(w.entries); n > 0 {
			upto = w.entries[n-1].position
		}
		ring.Restart(upto, "")
		w.rings[s] = ring
	}
	return ring, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.followed--
	}, nil
}

func (w *world) Page(_ context.Context, s Selection, filters assetfilter.Set, after int64) (Page, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads["Page"]++
	if w.feedFails == "Page" || w.small && w.chance(0.01) {
		return Page{}, errors.New("the feed is down")
	}
	var p Page
	seen := 0
	for _, c := range w.entries {
		if c.position <= after {
			continue
		}
		p.Upto = c.position
		if (s.Mode == "test") == c.test {
			if seen++; filters.Meets(c.terms()) {
				p.Entries = append(p.Entries, Entry{c.position, w.data(c)})
			}
		}
		if seen == MaxEntries {
			break
		}
	}
	return p, nil
}

// Find implements Feed. It examines only a few entries. If one of them meets the filters, Find does not set Upto.
func (w *world) Find(_ context.Context, mode string, filters assetfilter.Set, after int64) (f Found, err error) {
	time.Sleep(w.findTakes)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads["Find"]++
	if w.feedFails == "Find" {
		return f, errors.New("the feed is down")
	}
	seen := 0
	for _, c := range w.entries {
		if c.position <= after || (mode == "test") != c.test {
			continue
		}
		if moved := c.number == w.moved && c.number > 0; moved || filters.Meets(c.terms()) {
			if moved {
				w.moved = 0
			}
			return Found{First: c.position, More: true}, nil
		}
		f.Upto = c.position
		if seen++; seen == cmp.Or(w.findMost, 10) {
			f.More = true
			break
		}
	}
	return f, nil
}

func (w *world) Offset(position int64) string { return strconv.FormatInt(position, 10) }

// RoundTrip plays the receivers: it answers a request in the way that the receiver's conduct says.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	id := strings.TrimSuffix(r.URL.Host, ".example")
	w.mu.Lock()
	to := w.receivers[id]
	to.posts++
	if to.underway++; to.underway > 1 && !w.twins {
		w.faultf("endpoint %s: got %d messages at a time, want 1 (W2)", id, to.underway)
	}
	c, isEarly := to.conduct, w.leaveOut == early && w.chance(0.1)
	status, drop := http.StatusOK, false
	switch {
	case to.status != 0:
		status = to.status
	case w.chance(c.fails):
		status = http.StatusInternalServerError
	case w.chance(c.drops):
		drop = true
	}
	w.mu.Unlock()
	defer func() {
		if r.Context().Err() != nil {
			time.Sleep(10 * time.Millisecond) // a connection takes time to end
		}
		w.mu.Lock()
		to.underway--
		w.mu.Unlock()
	}()
	if isEarly {
		return reply(http.StatusOK, "", ""), nil
	}
	takes := c.takes
	if c.dead {
		takes = time.Hour
	}
	if !sleep.For(r.Context(), takes) {
		return nil, r.Context().Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	if status == http.StatusOK {
		w.handle(to, r.Header.Get(headerID), body, !drop)
	}
	if drop {
		return nil, errors.New("the connection ended")
	}
	answer := ""
	var challenge struct {
		Type string
		Data json.RawMessage
	}
	if json.Unmarshal(body, &challenge) == nil && challenge.Type == "webhook.challenge" && to.status == 0 {
		answer = string(challenge.Data)
	}
	return reply(status, answer, c.retries), nil
}

func reply(status int, body, retryAfter string) *http.Response {
	h := http.Header{}
	if retryAfter != "" {
		h.Set("Retry-After", retryAfter)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// handle checks a message that the receiver accepts.
func (w *world) handle(to *receiver, id string, body []byte, acked bool) {
	var m struct {
		Type string
		Data struct {
			Offset  string
			Entries []struct{ N int }
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		w.faultf("endpoint %s: got the body %q: %v", to.id, body, err)
		return
	}
	if m.Type != "assets.changed" {
		return
	}
	to.messages++
	if known, found := to.ids[id]; found && known != string(body) {
		w.faultf("endpoint %s: got two messages with the id %s", to.id, id)
	}
	to.ids[id] = string(body)
	first := m.Data.Entries[0].N
	if first <= to.handled {
		if to.acked {
			to.repeats++
			again := to.repeated == w.started && to.changed == 0
			if (again || to.repeats > w.started-1+to.changed) && !w.twins {
				w.faultf("endpoint %s: got a second repeat without a kill or a change (W3)", to.id)
			}
			to.repeated = w.started
		}
		if first != to.last && !w.twins {
			w.faultf("endpoint %s: got a repeat from entry %d, want from %d, the last message (W3)", to.id, first, to.last)
		}
	}
	next := first
	for _, e := range m.Data.Entries {
		if e.N > to.handled {
			if want := w.after(to, to.handled); e.N != want {
				w.faultf("endpoint %s: got entry %d after %d, want %d (W1)", to.id, e.N, to.handled, want)
			}
			to.handled = e.N
			to.worst = max(to.worst, time.Since(time.UnixMicro(w.entries[e.N].position)))
		}
		if e.N < next {
			w.faultf("endpoint %s: got entry %d after %d in a message (W1)", to.id, e.N, next)
		}
		next = e.N
	}
	if want := w.Offset(w.entries[next].position); m.Data.Offset != want {
		w.faultf("endpoint %s: got the offset %s, want %s of entry %d", to.id, m.Data.Offset, want, next)
	}
	to.last, to.acked = first, acked
}

// The method `after` returns the number of the next entry that a receiver gets after the entry with the given number.
func (w *world) after(to *receiver, number int) int {
	for number++; number < len(w.entries); number++ {
		if c := w.entries[number]; c.test == to.test && to.filters.Meets(c.terms()) {
			break
		}
	}
	return number
}

// lacks returns the number of receivers that do not have the whole feed yet.
func (w *world) lacks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	lacking := 0
	for _, r := range w.receivers {
		if w.after(r, r.handled) < len(w.entries) {
			lacking++
		}
	}
	return lacking
}

// check returns all faults found up to now.
func (w *world) check() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	return append(append([]string(nil), w.faults...), w.store.faults...)
}

// process is one process with a sender. It may be killed at a step, and it may stall.
type process struct {
	*world
	sender *Sender
	died   chan struct{}

	mu    sync.Mutex
	dead  bool
	steps int           // steps until the process dies; 0: it does not die
	stall time.Duration // how long each step takes from now on
	cut   bool          // the store does not answer this process
}

var errDead = errors.New("the process is dead")

// start starts a process that dies after a number of steps; 0: it does not die.
func (w *world) start(steps int) *process {
	p := &process{world: w, steps: steps, died: make(chan struct{})}
	w.mu.Lock()
	w.started++
	w.mu.Unlock()
	sender := newSender(Config{Store: p, Feed: w, Seals: w.seals, Log: w.log, Meter: w.meter}, p)
	p.sender = sender
	if w.leaveOut == hasty {
		sender.await = func(*worker) {}
	}
	go sender.run()
	return p
}

// close ends the process in the regular way.
func (p *process) close() {
	p.t.Helper()
	p.sender.Close()
}

// kill ends the process immediately, without Close.
func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.sender.kill()
	<-p.sender.done
}

// freeze makes each operation of the process wait for d before it takes effect, as if the machine had stopped
// for that time.
func (p *process) freeze(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stall = d
}

func (p *process) step() error {
	p.mu.Lock()
	stall := p.stall
	p.mu.Unlock()
	time.Sleep(stall)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errDead
	}
	if p.steps > 0 {
		if p.steps--; p.steps == 0 {
			p.dead = true
			close(p.died)
			return errDead
		}
	}
	return nil
}

// The function `do` runs an operation of the store. The process may die before or after the operation.
func do[T any](p *process, f func() (T, error)) (T, error) {
	var none T
	p.mu.Lock()
	cut := p.cut
	p.mu.Unlock()
	if cut {
		return none, errors.New("the store does not answer")
	}
	return reach(p, f)
}

// reach is like the function `do`, but for operations that do not use the store.
func reach[T any](p *process, f func() (T, error)) (T, error) {
	var none T
	if err := p.step(); err != nil {
		return none, err
	}
	got, err := f()
	if err := p.step(); err != nil {
		return none, err
	}
	return got, err
}

func (p *process) Endpoints(ctx context.Context, broker, after string, limit int) ([]Endpoint, error) {
	return do(p, func() ([]Endpoint, error) { return p.store.Endpoints(ctx, broker, after, limit) })
}

func (p *process) Endpoint(ctx context.Context, id string) (Endpoint, error) {
	return do(p, func() (Endpoint, error) { return p.store.Endpoint(ctx, id) })
}

func (p *process) Put(ctx context.Context, e Endpoint) error {
	_, err := do(p, func() (any, error) { return nil, p.store.Put(ctx, e) })
	return err
}

func (p *process) Remove(ctx context.Context, id string) error { return p.store.Remove(ctx, id) }

func (p *process) Lead(ctx context.Context, holder string, now, until time.Time) (term Term, held bool, err error) {
	_, err = do(p, func() (any, error) {
		term, held, err = p.store.Lead(ctx, holder, now, until)
		return nil, err
	})
	return term, held, err
}

func (p *process) Release(ctx context.Context, term int64) error {
	_, err := do(p, func() (any, error) { return nil, p.store.Release(ctx, term) })
	return err
}

func (p *process) Save(ctx context.Context, term int64, steps []Step) ([]string, error) {
	if p.leaveOut == behind {
		go func() {
			time.Sleep(2 * time.Second)
			_, _ = do(p, func() ([]string, error) { return p.store.Save(ctx, term, steps) })
		}()
		return nil, nil
	}
	return do(p, func() ([]string, error) { return p.store.Save(ctx, term, steps) })
}

func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	return reach(p, func() (*http.Response, error) { return p.world.RoundTrip(r) })
}
