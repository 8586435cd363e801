package registryctl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"asset-registry/filesvc"
	"asset-registry/shared/command"
	"asset-registry/shared/replica"
)

// openFiles opens the copies of the files that the assets of the copy refer to.
func (s syncCopy) openFiles(p *program, copied *replica.Replica) (*filesvc.Copies, error) {
	return filesvc.OpenCopies(filesvc.CopiesConfig{
		Dir: s.Files, Of: p.URL, Transport: newTransport(), UserAgent: "registryctl", Assets: copied, MaxFile: s.MaxFile,
	})
}

// copyFiles downloads all files to which the assets of the copy refer now.
func (s syncCopy) copyFiles(
	ctx context.Context, p *program, copied *replica.Replica, shown syncProgress,
) (err error) {
	files, err := s.openFiles(p, copied)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	ended := make(chan error)
	go func() { ended <- files.CatchUp(ctx) }()
	ticker := time.NewTicker(drawEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-ticker.C:
			shown.show(func(time.Duration) string {
				n, bytes := files.Copied()
				return fmt.Sprintf("%d files, %d MiB", n, bytes>>20)
			})
		}
	}
}

// following runs the function `follow`, and copies files at the same time until follow returns.
func (s syncCopy) following(
	ctx context.Context, p *program, copied *replica.Replica, follow func(context.Context) error,
) (err error) {
	if s.Files == "" {
		return follow(ctx)
	}
	files, err := s.openFiles(p, copied)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	var mu sync.Mutex
	var said time.Time
	copying, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		tell := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil && time.Since(said) > time.Minute {
				said = time.Now()
				_ = p.say("%s", command.Words(err)) // an error only means that the standard error is closed
			}
		}
		files.Run(copying, tell, tell)
	})
	err = follow(ctx)
	stop()
	work.Wait()
	return err
}

// checkFiles compares the SHA-256 of all files with their documents.
func (s syncCopy) checkFiles(ctx context.Context, p *program, copied *replica.Replica) (err error) {
	if s.Files == "" {
		return nil
	}
	files, err := s.openFiles(p, copied)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
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
