package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"asset-registry.example/client"

	"asset-registry/assetsvc"
	"asset-registry/filesvc"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/durable"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/replica"
	"asset-registry/shared/sleep"
	"asset-registry/shared/translog"
)

// errZone is returned if the origin writes its times in another time zone than before.
var errZone = errors.New("the registry prints its times in another zone")

// isVoid reports whether an error means that the copy must not be served any more.
func isVoid(err error) bool {
	return slices.ContainsFunc([]error{
		replica.ErrOtherData, replica.ErrUnsound, boltfile.ErrDamaged, assetsvc.ErrOtherLog, errDiffers,
		translog.ErrTampered, translog.ErrConsistency, translog.ErrOrder,
	}, func(void error) bool { return errors.Is(err, void) })
}

// remove removes the copy, its log and its snapshots.
func (m *mirror) remove() error {
	return errors.Join(
		os.RemoveAll(filepath.Join(m.config.Data, originFile)), // first: without this file, no copy counts as served
		replica.Remove(m.config.Data),
		os.RemoveAll(filepath.Join(m.config.Data, logFile)),
		os.RemoveAll(filepath.Join(m.config.Data, equalFile)),
		os.RemoveAll(filepath.Join(m.config.Data, snapshotDirectory)),
	)
}

// keeper keeps one copy up to date and serves it.
type keeper struct {
	*mirror
	copied    copied
	source    replica.Source
	serverID  atomic.Value          // string: server id of the copy; nil or "": not known yet
	unstored  atomic.Pointer[error] // why the copy cannot be stored; nil: the copy can be stored
	equalKept string                // the text that keepEqual has written last
	distrust  atomic.Bool           // the last look at the log found bad signatures
	doubts    doubts
	assets    atomic.Pointer[assetsvc.Server] // nil: the asset service does not run yet
	files     *filesvc.Copies                 // nil: files are not copied
	void      chan error                      // receives the reason if the copy is void
	compared  chan struct{}                   // closed once the public log allows serving the copy
	once      sync.Once                       // makes sure that compared is closed only once
}

// keep opens the copy, brings it up to date and serves it, until ctx is done or the copy cannot be served. It
// returns the reason. When it returns, the copy is closed and not served any more.
func (m *mirror) keep(ctx context.Context) (err error) {
	m.say("The mirror opens its copy.")
	r, err := replica.Open(m.config.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	k := &keeper{mirror: m, void: make(chan error, 1), compared: make(chan struct{})}
	k.copied = copied{r, k.ready}
	if k.source, err = m.newSource(); err != nil {
		return err
	}
	if m.config.Files && !m.isBeside {
		if k.files, err = m.openFiles(r); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, k.files.Close()) }()
	}
	equal, err := lastEqual(m.config.Data, r.State())
	if err != nil {
		return err
	}
	m.fresh.Restart(equal)
	group, ctx := errgroup.WithContext(ctx)
	complete := make(chan string, 1)
	group.Go(func() error { return k.follow(ctx, complete) })
	group.Go(func() error { return k.ask(ctx) })
	group.Go(func() error { return k.renew(ctx) })
	group.Go(func() error {
		select {
		case zone := <-complete:
			return k.serve(ctx, zone)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return group.Wait()
}

// newSource returns a client for the origin, in the form that package replica needs.
func (m *mirror) newSource() (replica.Source, error) {
	c, err := client.New(client.Config{URL: m.config.Of, UserAgent: userAgent, Transport: m.transport})
	return replica.Source{Client: c, Address: m.config.Of, Pause: again}, err
}

func isComplete(s replica.State) bool { return s.Complete && !s.Loading }

// follow brings the copy up to date and follows the origin. When the copy is complete for the first time, follow
// sends the origin's time zone to the channel `complete`.
func (k *keeper) follow(ctx context.Context, complete chan<- string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	zone := ""
	tell := func(done replica.Progress) {
		k.unstored.Store(nil)
		state := k.copied.State()
		k.serverID.Store(state.Position.ServerID)
		if position, err := state.Upto(); err == nil && !state.Loading {
			k.fresh.Reached(position)
		}
		now := zoneOf(state.Position.Offset)
		switch {
		case zone == "" && isComplete(state):
			zone = now
			complete <- now
		case zone == "":
			k.say(fmt.Sprintf("The mirror loads its copy: it has read %d assets.", done.Assets))
		case now != zone:
			stop(errZone)
		}
	}
	tell(replica.Progress{})
	for {
		err := replica.CatchUp(ctx, k.copied, k.source, tell)
		if err == nil {
			err = replica.Follow(ctx, k.copied, k.source, tell)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if isVoid(err) && !k.survives(err) {
			return err
		}
		if errors.Is(err, replica.ErrNotStored) {
			k.unstored.Store(&err)
		}
		k.failures.Failed(err)
		sleep.For(ctx, again)
	}
}

// fault returns why the copy cannot be stored, or "".
func (k *keeper) fault() string {
	err := k.unstored.Load()
	if err == nil {
		return ""
	}
	if number, ok := errors.AsType[syscall.Errno](*err); ok {
		return fmt.Sprintf("The copy cannot be stored: %s.", number)
	}
	return "The copy cannot be stored; the mirror's log has the reason."
}

// zoneOf returns the time zone of t, a time that the registry has written. If t is empty, it returns UTC.
func zoneOf(t client.Timestamp) string {
	if len(t) < len("+00:00") {
		return "+00:00"
	}
	return string(t[len(t)-len("+00:00"):])
}

// ask repeatedly requests the end of the origin's feed. It returns ErrOtherData if the origin has different data
// than the copy.
func (k *keeper) ask(ctx context.Context) error {
	c := httpclient.New(k.transport)
	others := 0
	for ctx.Err() == nil {
		end, err := replica.AskEnd(ctx, c, k.config.Of, userAgent)
		known, _ := k.serverID.Load().(string)
		switch {
		case err != nil:
		case known == "":
		case end.ServerID == known:
			others = 0
			k.doubts.clear(aboutData)
			k.fresh.Saw(end.Seen)
			k.keepEqual()
		default:
			if others++; others < otherTimes {
				break
			}
			err := fmt.Errorf("%w: SERVER_ID is %q there, and %q in the copy", replica.ErrOtherData, end.ServerID, known)
			if !k.survives(err) {
				return err
			}
		}
		if others > 0 {
			sleep.For(ctx, otherRest)
		} else {
			sleep.For(ctx, askEvery)
		}
	}
	return ctx.Err()
}

const (
	otherTimes = 3 // after this many consecutive answers with other data, the mirror believes them
	otherRest  = time.Second
)

// heard records the result of a comparison with the public log.
func (k *keeper) heard(err error) {
	k.distrust.Store(isDistrust(err))
	switch {
	case err == nil && k.lacksLog():
		k.say("The registry has no public log, and this mirror demands one that is signed.")
	case err == nil:
		k.doubts.clear(aboutLog)
		k.mayServe()
	case isVoid(err) && k.survives(err):
	case isVoid(err):
		select {
		case k.void <- err:
		default: // the receiver needs only one reason
		}
	default:
		k.say("The mirror cannot compare its copy with the public log; its log has the reason.")
		k.failures.Failed(err)
	}
}

// mayServe records that the copy may be served: it was compared with the public log, now or in an earlier run.
func (k *keeper) mayServe() { k.once.Do(func() { close(k.compared) }) }

// ready returns a fault if the copy is too old, or if the mirror has doubts about the copy or its log.
func (k *keeper) ready(context.Context) error {
	if k.doubts.any() {
		return unready(
			"The registry shows other data or another log than this copy, which stays until a signed log has others.")
	}
	behind, most := k.fresh.Behind(), k.config.MaxBehind
	if most > 0 && behind > most {
		return unready("The copy is %.0f s behind the registry, and may be %.0f s.", behind.Seconds(), most.Seconds())
	}
	if k.files != nil && most > 0 && k.files.Unread() > most {
		return unready("The mirror does not know which files were removed in the last %.0f s.", k.files.Unread().Seconds())
	}
	if k.distrust.Load() {
		return unready("The registry's public log is not signed as this mirror demands; the mirror's log has the reason.")
	}
	if n := k.differing(); n > 0 {
		return unready("Assets of the copy differ from the public log (%d so far); the mirror's log names them.", n)
	}
	if c := k.checker.Load(); c != nil && c.refused() >= mostRefused {
		return unready("The registry does not prove its assets: %d answers had no salt, so the copy cannot be compared "+
			"with the public log.", c.refused())
	}
	return nil
}

// unready is the fault of a mirror that cannot answer, now or at all.
func unready(format string, args ...any) error {
	return fault.New(fault.Unavailable, fault.URL, "mirror", format, args...)
}

// isDistrust reports whether an error is about the signatures of the log.
func isDistrust(err error) bool {
	return errors.Is(err, translog.ErrSignature) || errors.Is(err, translog.ErrQuorum) ||
		errors.Is(err, translog.ErrCheckpoint)
}

// noteServed records for the next start that the copy is served. The file also shows people which registry was
// copied.
func (m *mirror) noteServed() error {
	text := []byte(m.config.origin() + "\n")
	return durable.WriteFile(filepath.Join(m.config.Data, originFile), text)
}

// servedBefore reports whether the copy was served in an earlier run.
func (m *mirror) servedBefore() bool {
	_, err := os.Stat(filepath.Join(m.config.Data, originFile))
	return err == nil
}

// openFiles opens the copies of the files that the assets of a replica refer to.
func (m *mirror) openFiles(of *replica.Replica) (*filesvc.Copies, error) {
	return filesvc.OpenCopies(filesvc.CopiesConfig{
		Dir: m.config.Data, Of: m.config.Of, Transport: m.transport, UserAgent: userAgent, Assets: of,
		MaxFile: m.config.MaxFile,
	})
}

// copyFiles copies the files that assets refer to, until ctx is done.
func (k *keeper) copyFiles(ctx context.Context) {
	copied, close1 := k.note("files cannot be copied; it is tried again")
	defer close1()
	removed, close2 := k.note("the removals of files cannot be read; it is tried again")
	defer close2()
	defer k.files.Measure(k.telemetry.Meter())()
	k.files.Run(ctx, copied, removed)
}

// note returns two functions for a log of failures of one kind. The first one takes the result of an attempt, and
// logs failures and their end. The second one closes the log.
func (k *keeper) note(what string) (tell func(error), end func()) {
	failures := failurelog.NewState(k.mirror.log, what)
	return failures.Tell, failures.Close
}
