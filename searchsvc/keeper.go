package searchsvc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/index"
	"asset-registry/searchsvc/internal/meaning"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/errs"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/replica"
	"asset-registry/shared/sleep"
)

const (
	again        = 5 * time.Second  // pause after a failure of the registry or of the disk
	anewFirst    = 2 * time.Second  // pause before the index is built anew for the first time; it doubles each time
	anewMost     = 10 * time.Minute // the longest pause before the index is built anew
	anewRest     = time.Hour        // after an index was kept for this time, the next pause is anewFirst again
	askEvery     = time.Second      // pause between requests for the end of the feed
	refreshEvery = 10 * time.Second // how often the view is refreshed; this closes files that a merge has replaced
	otherTimes   = 3                // after this many answers in a row with different data, the index is built anew
)

// keeper keeps the index up to date. It builds the index anew if the index is damaged, or if the registry now has
// data that differ from the data of the index (replica.ErrOtherData).
type keeper struct {
	config   Config
	source   replica.Source
	asker    *http.Client
	log      *slog.Logger
	synonyms *meaning.Synonyms
	names    codenames.Lists
	failures *failurelog.Log
	fresh    replica.Freshness
	rebuilt  atomic.Int64
	doing    atomic.Value // string: a sentence that says why searches are not answered

	mu    sync.RWMutex // a search holds it for reading, so that the index stays open
	index *index.Index // nil: there is no complete index yet
}

func newKeeper(c Config) (*keeper, error) {
	of, err := client.New(client.Config{URL: c.Of, UserAgent: userAgent, Transport: c.Transport})
	if err != nil {
		return nil, err
	}
	synonyms, err := readSynonyms(c.Synonyms)
	if err != nil {
		return nil, err
	}
	names, err := codenames.Read(c.CodeLists)
	if err != nil {
		return nil, err
	}
	k := &keeper{
		config: c, synonyms: synonyms, names: names,
		source: replica.Source{Client: of, Address: c.Of, Pause: again}, log: c.Log,
		asker:    httpclient.New(c.Transport),
		failures: failurelog.New(c.Log, "the index cannot be brought up to date; it is tried again"),
	}
	k.fresh.Restart(time.Now())
	k.say("The search service starts.")
	return k, nil
}

// readSynonyms returns the synonyms of the project and of a file. If file is "", it returns only the synonyms of
// the project.
func readSynonyms(file string) (*meaning.Synonyms, error) {
	if file == "" {
		return meaning.NewSynonyms("")
	}
	further, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--synonyms: %w", err)
	}
	synonyms, err := meaning.NewSynonyms(string(further))
	return synonyms, errs.In(err, "--synonyms %s", file)
}

func (k *keeper) say(sentence string) { k.doing.Store(sentence) }

func (k *keeper) saying() string {
	sentence, _ := k.doing.Load().(string)
	return sentence
}

// run keeps the index up to date until ctx is done.
func (k *keeper) run(ctx context.Context) {
	pause, begun := anewFirst, time.Now()
	for {
		err := k.keep(ctx)
		if ctx.Err() != nil {
			return
		}
		if !isVoid(err) {
			k.failures.Failed(err)
			sleep.For(ctx, again)
			continue
		}
		k.say("The index is void. It is built anew; the log has the reason.")
		k.log.Warn("the index is void; it is removed and built anew", "error", err)
		k.rebuilt.Add(1)
		if time.Since(begun) > anewRest {
			pause = anewFirst
		}
		sleep.For(ctx, pause)
		pause, begun = min(2*pause, anewMost), time.Now()
		if err := os.RemoveAll(k.config.Dir); err != nil {
			k.failures.Failed(err)
		}
	}
}

// isVoid reports whether an error means that the index must be built anew.
func isVoid(err error) bool {
	return errors.Is(err, index.ErrDamaged) || errors.Is(err, replica.ErrOtherData)
}

// keep opens the index and follows the registry, until ctx is done or the index must be built anew. It returns
// an error if the index cannot be opened.
func (k *keeper) keep(ctx context.Context) (err error) {
	opened, err := index.Open(k.config.Dir, k.synonyms, k.names)
	if err != nil {
		return err
	}
	defer func() {
		k.serve(nil)
		err = errors.Join(err, opened.Close())
	}()
	k.fresh.Restart(time.Now())
	if err := opened.Refresh(); err != nil {
		return err
	}
	if at, err := opened.Newest(); err != nil || at > replica.Latest() {
		return fmt.Errorf("%w: it has a change of the future, which no later one replaces: %d", index.ErrDamaged, at)
	}
	if isComplete(opened.State()) {
		k.serve(opened)
	}
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, opened.Interrupt)()
	group.Go(func() error { return k.follow(ctx, opened) })
	group.Go(func() error { return k.ask(ctx, opened) })
	group.Go(func() error { return k.refresh(ctx, opened) })
	return group.Wait()
}

func isComplete(s replica.State) bool { return s.Complete && !s.Loading }

// serve makes searches use the index x. If x is nil, searches are refused.
func (k *keeper) serve(x *index.Index) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.index != x && x != nil {
		k.log.Info("the index answers")
	}
	k.index = x
}

// follow brings the index up to date, and then follows the registry.
func (k *keeper) follow(ctx context.Context, x *index.Index) error {
	tell := func(done replica.Progress) {
		state := x.State()
		if !isComplete(state) {
			k.say(fmt.Sprintf("The index is being built: it has read %d assets.", done.Assets))
			return
		}
		if at, err := state.Upto(); err == nil {
			k.fresh.Reached(at)
		}
		k.mu.RLock()
		first := k.index == nil
		k.mu.RUnlock()
		if first {
			k.serve(x)
		}
	}
	tell(replica.Progress{})
	for {
		err := replica.CatchUp(ctx, x, k.source, tell)
		if err == nil {
			err = replica.Follow(ctx, x, k.source, tell)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if isVoid(err) {
			return err
		}
		k.failures.Failed(err)
		sleep.For(ctx, again)
	}
}

// ask repeatedly asks the registry for the end of the feed. It returns ErrOtherData if SERVER_ID in the answers
// differs from the one in the index, otherTimes times in a row.
func (k *keeper) ask(ctx context.Context, x *index.Index) error {
	others := 0
	for ctx.Err() == nil {
		end, err := replica.AskEnd(ctx, k.asker, k.config.Of, userAgent)
		known := x.State().Position.ServerID
		switch {
		case err != nil || known == "":
		case end.ServerID == known:
			others = 0
			k.fresh.Saw(end.Seen)
		default:
			if others++; others == otherTimes {
				return fmt.Errorf("%w: SERVER_ID is %q there, and %q in the index", replica.ErrOtherData, end.ServerID, known)
			}
		}
		sleep.For(ctx, askEvery)
	}
	return ctx.Err()
}

// refresh refreshes the view regularly, even when nothing changes. This closes the files that a merge has replaced.
// refresh returns an error when the index is damaged.
func (k *keeper) refresh(ctx context.Context, x *index.Index) error {
	for ctx.Err() == nil {
		sleep.For(ctx, refreshEvery)
		if err := x.Damage(); err != nil {
			return err
		}
		if !isComplete(x.State()) {
			continue
		}
		if err := x.Refresh(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// search answers a question from the index, if it is complete.
func (k *keeper) search(ctx context.Context, q search.Query) (search.Result, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.index == nil {
		return search.Result{}, fault.New(fault.Unavailable, fault.URL, "search", "%s", k.saying())
	}
	return k.index.Search(ctx, q)
}

// suggest returns texts that continue the last words of a question, if the index is complete.
func (k *keeper) suggest(ctx context.Context, q search.Query) ([]string, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.index == nil {
		return nil, fault.New(fault.Unavailable, fault.URL, "search", "%s", k.saying())
	}
	return k.index.Suggest(ctx, q)
}

func (k *keeper) state() search.State {
	k.mu.RLock()
	defer k.mu.RUnlock()
	s := search.State{Ready: k.index != nil, Behind: k.fresh.Behind()}
	if k.index != nil {
		s.Position, s.Assets = k.index.Position()
	}
	return s
}
