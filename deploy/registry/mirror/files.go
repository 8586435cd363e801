package mirror

import (
	"context"

	"asset-registry/filesvc"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/replica"
)

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
	if silence, err := k.files.Measure(k.telemetry.Meter()); err != nil {
		copied(err)
	} else {
		defer func() { _ = silence() }() // an error is unimportant: the callback is not called any more
	}
	k.files.Run(ctx, copied, removed)
}

// note returns two functions for a log of failures of one kind. The first one takes the result of an attempt, and
// logs failures and their end. The second one closes the log.
func (k *keeper) note(what string) (tell func(error), end func()) {
	failures := failurelog.NewState(k.mirror.log, what)
	return func(err error) {
		if err != nil {
			failures.Failed(err)
			return
		}
		failures.Worked()
	}, failures.Close
}
