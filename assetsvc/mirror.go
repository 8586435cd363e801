package assetsvc

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/copystore"
	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/snapshot"
	"asset-registry/shared/translog"
)

// Mirror is a copy of another registry that a Server serves. All fields but LogPolicy are
// required.
type Mirror struct {
	Copy      Copy
	LogFile   string          // the copy of the public log; created if it does not exist
	LogSource translog.Source // the public log of the registry
	LogPolicy translog.Opener // says which checkpoints to trust; nil: signatures are not checked

	// CheckLog compares new leaves of the log with the copy before they are served: all
	// leaves after the position after. It returns ErrLogAhead to see them again later.
	CheckLog func(after int64, leaves []translog.Leaf) error
	// LogReport gets the outcome of each look at the log of the registry: nil once the copy
	// of the log is up to date.
	LogReport func(error)
}

// Copy is a copy of the listed assets of another registry.
type Copy = copystore.Copy

// CopyQuery asks for a part of the feed of a Copy.
type CopyQuery = copystore.Query

// CopiedAsset is an asset of a Copy.
type CopiedAsset = copystore.Asset

// Errors of the log of a Mirror.
var (
	ErrLogAhead = publiclog.ErrAhead    // CheckLog cannot compare the leaves yet
	ErrOtherLog = publiclog.ErrOtherLog // the registry has another log than the copy
	ErrNoLeaf   = errors.New("the copy of the log has no leaf at this position")
)

// Leaf returns the leaf with a position, from the copy of the public log that a mirror has
// verified. It returns ErrNoLeaf if there is none, or none yet.
func (s *Server) Leaf(ctx context.Context, position int64) (translog.Leaf, error) {
	leaf, err := publiclog.NewReader(s.store).LeafAt(ctx, position)
	if errors.Is(err, registry.ErrNoLeaf) || errors.Is(err, registry.ErrNotLogged) {
		err = ErrNoLeaf
	}
	return leaf, err
}

// Checkpoint returns the newest checkpoint in the copy of the public log. It returns an error
// if there is none. Its signatures were verified when it was stored, if a policy was set.
func (s *Server) Checkpoint(ctx context.Context) (translog.Checkpoint, error) {
	signed, err := publiclog.NewReader(s.store).Checkpoint(ctx)
	if err != nil {
		return translog.Checkpoint{}, err
	}
	return translog.Unverified(signed)
}

// mirrorStore is the store of a mirror.
type mirrorStore struct {
	*copystore.Store
	*boltstore.PublicLog
}

var _ snapshot.Store = mirrorStore{}

func (m *Mirror) open(log *slog.Logger) (store, error) {
	kept, err := boltstore.OpenLog(m.LogFile, log)
	if err != nil {
		return nil, err
	}
	return mirrorStore{copystore.New(m.Copy), kept}, nil
}

// Close closes the copy of the log.
func (s mirrorStore) Close() error { return errors.Join(s.Store.Close(), s.PublicLog.Close()) }

// noAuth is the transport to the auth service that a mirror does not have.
type noAuth struct{}

func (noAuth) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("a mirror has no auth service")
}

// originOf returns a function that returns the origin of a log, "" before its first
// checkpoint.
func originOf(log *publiclog.Reader) func(context.Context) string {
	return func(ctx context.Context) string {
		signed, err := log.Checkpoint(ctx)
		if err != nil {
			return "" // the request fails where it reads the log
		}
		checkpoint, err := translog.Unverified(signed)
		if err != nil {
			return ""
		}
		return checkpoint.Origin
	}
}

// copier copies the public log in the background.
type copier struct {
	stop context.CancelFunc
	done chan struct{}
}

func (m *Mirror) copyLog(to publiclog.Store) *copier {
	ctx, stop := context.WithCancel(context.Background())
	c := &copier{stop, make(chan struct{})}
	work := publiclog.Copier{Store: to, Source: m.LogSource, Policy: m.LogPolicy, Check: m.CheckLog}
	go func() {
		defer close(c.done)
		work.Run(ctx, m.LogReport)
	}()
	return c
}

// close stops the copier and waits for its end.
func (c *copier) close() {
	c.stop()
	<-c.done
}
