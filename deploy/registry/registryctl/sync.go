//go:build !windows

package registryctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"asset-registry.example/client"

	"asset-registry/filesvc"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/closing"
	"asset-registry/shared/command"
	"asset-registry/shared/replica"
	"asset-registry/shared/sleep"
)

// isDamaged reports whether an error says that a copy is damaged.
func isDamaged(err error) bool { return errors.Is(err, boltfile.ErrDamaged) }

// copyCommands are the commands of copies. A copy is a database of the registry, which nobody has tried on Windows.
type copyCommands struct {
	Sync syncCommands `cmd:"" help:"Keep a copy of the registry in a directory."`
}

type syncCommands struct {
	Run    syncCopy   `cmd:"" default:"withargs" help:"Bring the copy up to date, and keep it so."`
	Export exportCopy `cmd:"" help:"Print the assets of the copy as lines of JSON, in the order of ids."`
}

// copyDir is the argument of commands about a copy.
type copyDir struct {
	Dir string `arg:"" help:"Directory of the copy."`
}

type syncCopy struct {
	copyDir      `embed:""`
	Once         bool          `help:"End when the copy is up to date."`
	Files        string        `placeholder:"DIR" help:"Copy all files of documents into this directory too."`
	MaxFile      int64         `default:"104857600" least:"0" help:"Largest file that is copied, in bytes."`
	Restart      bool          `help:"If the registry has other data than the copy, begin anew."`
	Pause        time.Duration `default:"5m" least:"0s" help:"Time between requests, if the registry has no streams."`
	Verify       bool          `help:"Check each asset against the public log once the copy is up to date, then end."`
	VerifySample int           `placeholder:"N" least:"1" help:"Check N assets that are chosen at random only."`
	trust        `embed:""`
}

// Help describes how the copy is made.
func (syncCopy) Help() string {
	return `The copy has all listed assets, those in test mode too. It begins with the registry's newest snapshot, if there
is one, and goes on with each change as it comes. It may be interrupted or killed at any moment: the same command goes
on. Without --url, it goes on with the registry that the copy is of.

If the registry has other data than the copy, for instance after a restore, the command ends with an error. With
--restart it removes the copy then and begins anew.

--files copies the bytes of all files that documents name, compares each with its SHA-256, and removes what the
registry removes or no asset names any more. They are at DIR/files, the first two digits of the id of the file, and the
id, a dash and digits of the SHA-256. With --verify it reads them all again.

--verify needs the public key of the log, or a policy. It names each asset that differs, and fails if there is one.
Only one command at a time may use the directory.`
}

// reconnect is the pause before the next try if the registry did not answer.
const reconnect = 5 * time.Second

// Run synchronises the copy.
func (s syncCopy) Run(ctx context.Context, p *program) error {
	verifies := s.Verify || s.VerifySample > 0
	if !verifies && (s.Policy != "" || len(s.PublicKey) > 0) {
		return errors.New("--public-key and --policy are for --verify and --verify-sample")
	}
	var v copyVerifier
	if verifies {
		policy, err := s.policy()
		if err != nil {
			return err
		}
		s.Once, v.policy = true, policy
	}
	copied, source, err := s.open(p)
	if err != nil {
		return err
	}
	shown := newSyncProgress(p.errOut)
	defer func() { copied.Close() }() // a closure, because --restart assigns a new copy to the variable
	for {
		err = s.once(ctx, p, copied, source, shown)
		if !errors.Is(err, replica.ErrOtherData) {
			break
		}
		shown.end()
		if !s.Restart {
			return fmt.Errorf("%w: use --restart to begin anew, or another directory", err)
		}
		if err := p.say("The registry has other data than the copy. The copy begins anew."); err != nil {
			return err
		}
		if copied, err = s.anew(copied); err != nil {
			return err
		}
	}
	shown.end()
	if err != nil || ctx.Err() != nil {
		return p.interrupted(ctx, copied, s.Once, err)
	}
	if !verifies {
		return p.say("The copy is up to date as of %s.", plain(string(copied.State().Position.Offset)))
	}
	v.registry, v.copied, v.sample = source.Client, copied, s.VerifySample
	if err = v.run(ctx, p); s.Files != "" {
		err = errors.Join(err, s.withFiles(p, copied, func(files *filesvc.Copies) error { return p.checkFiles(ctx, files) }))
	}
	return err
}

// interrupted reports the state of the copy after a run that has ended early. It returns an error, except in one
// case: the user stopped a command without --once, and the copy was up to date.
func (p *program) interrupted(ctx context.Context, copied *replica.Replica, once bool, err error) error {
	state := copied.State()
	switch {
	case ctx.Err() == nil || errors.Is(err, replica.ErrNotStored):
		return fmt.Errorf("%w; the same command goes on from here", err)
	case once || !state.Complete:
		return errors.New("interrupted before the copy was up to date; the same command goes on from here")
	}
	return p.say("The copy has everything up to %s.", plain(string(state.Position.Offset)))
}

// open opens the copy, and returns the registry that the copy is made from.
func (s syncCopy) open(p *program) (*replica.Replica, replica.Source, error) {
	copied, err := replica.Open(s.Dir)
	if err != nil {
		return nil, replica.Source{}, err
	}
	if origin := copied.State().Origin; origin != "" && !p.urlGiven {
		p.URL = origin
	}
	c, err := p.client(client.Retry{Tries: 8, Total: time.Minute}, newTransport())
	if err != nil {
		return nil, replica.Source{}, errors.Join(err, copied.Close())
	}
	return copied, replica.Source{Client: c, Address: p.URL, Pause: s.Pause}, nil
}

// The method `anew` replaces the copy with an empty one.
func (s syncCopy) anew(copied *replica.Replica) (*replica.Replica, error) {
	if err := errors.Join(copied.Close(), replica.Remove(s.Dir)); err != nil {
		return copied, err
	}
	empty, err := replica.Open(s.Dir)
	if err != nil {
		return copied, err
	}
	return empty, nil
}

// The method `once` brings the copy to the end of the feed. Without --once, it then follows the feed, and waits while
// the registry does not answer.
func (s syncCopy) once(
	ctx context.Context, p *program, copied *replica.Replica, source replica.Source, shown syncProgress,
) error {
	for {
		err := replica.CatchUp(ctx, copied, source, shown.tell)
		if err == nil && s.Once && s.Files != "" {
			return s.withFiles(p, copied, func(files *filesvc.Copies) error { return shown.copyFiles(ctx, files) })
		}
		if err == nil && !s.Once {
			shown.end()
			const following = "The copy is up to date as of %s. It follows the registry."
			if err := p.say(following, plain(string(copied.State().Position.Offset))); err != nil {
				return err
			}
			err = s.following(ctx, p, copied, func(ctx context.Context) error {
				return replica.Follow(ctx, copied, source, shown.tell)
			})
		}
		if err == nil || s.Once || ctx.Err() != nil || !away(err) {
			return err
		}
		shown.end()
		if err := p.say("%s", command.Words(err)); err != nil {
			return err
		}
		if !sleep.For(ctx, reconnect) {
			return ctx.Err()
		}
	}
}

// The function `away` reports whether err is temporary: a retry succeeds once the registry answers again.
func away(err error) bool {
	return passes(err) && !slices.ContainsFunc([]error{
		replica.ErrNotStored, replica.ErrOtherData, replica.ErrEntry, replica.ErrUnsound, client.ErrSegment,
	}, func(lasts error) bool { return errors.Is(err, lasts) })
}

type exportCopy struct {
	copyDir `embed:""`
	ID      []string `arg:"" optional:"" help:"Ids of the assets. By default all."`
}

// Run prints the assets of a copy.
func (e exportCopy) Run(p *program) (err error) {
	copied, err := replica.OpenExisting(e.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	if !copied.State().Complete {
		return errors.New("the copy is not complete: registryctl sync goes on with it")
	}
	out := bufio.NewWriterSize(p.out, 1<<20)
	write := func(asset replica.Entry) error {
		_, err := out.Write(escaped(asset.JSON))
		return errors.Join(err, out.WriteByte('\n'))
	}
	if len(e.ID) == 0 {
		err = copied.Walk(write)
	}
	for _, id := range e.ID {
		asset, ok, err := copied.Get(id)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("the copy has no asset %s", id)
		}
		if err := write(asset); err != nil {
			return err
		}
	}
	return errors.Join(err, out.Flush())
}

// syncProgress shows how far a synchronisation is.
type syncProgress struct{ *line }

func newSyncProgress(out io.Writer) syncProgress { return syncProgress{newLine(out)} }

func (p syncProgress) tell(done replica.Progress) {
	p.show(func(in time.Duration) string { return progressLine(done, in) })
}

// progressLine returns a line about the progress, with the time that the rest of a snapshot will take. The argument
// `in` is the time since the command began.
func progressLine(done replica.Progress, in time.Duration) string {
	const mib = 1 << 20
	rate := float64(done.Bytes) / mib / max(in.Seconds(), 0.001)
	line := fmt.Sprintf("%d assets, %d MiB, %.1f MiB/s", done.Assets, done.Bytes/mib, rate)
	if done.OfBytes == 0 {
		return line + ", the feed up to " + plain(string(done.Position))
	}
	line += fmt.Sprintf(", %d %% of the snapshot", 100*done.Bytes/done.OfBytes)
	if done.Bytes > 0 {
		left := time.Duration(float64(in) * float64(done.OfBytes-done.Bytes) / float64(done.Bytes))
		line += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	return line
}

// withFiles runs the function `use` on the files of the copy.
func (s syncCopy) withFiles(p *program, copied *replica.Replica, use func(*filesvc.Copies) error) error {
	files, err := filesvc.OpenCopies(filesvc.CopiesConfig{
		Dir: s.Files, Of: p.URL, Transport: newTransport(), UserAgent: "registryctl", Assets: copied, MaxFile: s.MaxFile,
	})
	if err != nil {
		return err
	}
	return errors.Join(use(files), files.Close())
}

// copyFiles downloads all files to which the assets of the copy refer now.
func (p syncProgress) copyFiles(ctx context.Context, files *filesvc.Copies) error {
	ended := make(chan error)
	go func() { ended <- files.CatchUp(ctx) }()
	ticker := time.NewTicker(drawEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-ticker.C:
			p.show(func(time.Duration) string {
				n, bytes := files.Copied()
				return fmt.Sprintf("%d files, %d MiB", n, bytes>>20)
			})
		}
	}
}

// following runs the function `follow`, and copies files at the same time until follow returns.
func (s syncCopy) following(
	ctx context.Context, p *program, copied *replica.Replica, follow func(context.Context) error,
) error {
	if s.Files == "" {
		return follow(ctx)
	}
	var mu sync.Mutex
	var said time.Time
	tell := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil && time.Since(said) > time.Minute {
			said = time.Now()
			_ = p.say("%s", command.Words(err)) // an error only means that the standard error is closed
		}
	}
	return s.withFiles(p, copied, func(files *filesvc.Copies) error {
		var copying closing.List
		copying.Go(ctx, func(ctx context.Context) { files.Run(ctx, tell, tell) })
		return errors.Join(follow(ctx), copying.Close())
	})
}

// checkFiles compares the SHA-256 of all files with their documents.
func (p *program) checkFiles(ctx context.Context, files *filesvc.Copies) error {
	found, faults := files.Check(ctx)
	for _, fault := range faults {
		if enough, err := p.isEnough(); enough {
			return err
		}
		if err := p.say("%v", fault); err != nil {
			return err
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d files of the copy are damaged or missing", len(faults))
	}
	return p.say("%d files of the copy are whole; %d were removed.", found.Files, found.Removed)
}
