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
	"asset-registry/shared/closing"
	"asset-registry/shared/translog"
)

// Mirror configures a Server that serves a copy of another registry. All fields except LogPolicy are required.
type Mirror struct {
	Copy      Copy
	LogFile   string          // the copy of the public log; created if it does not exist
	LogSource translog.Source // the public log of the registry
	LogPolicy translog.Opener // says which checkpoints to trust; nil: signatures are not checked

	// CheckLog compares new leaves of the log with the copied assets, before the leaves are served. The argument
	// `leaves` has all leaves with positions greater than `after`. If CheckLog returns ErrLogAhead, it is called again
	// later with these leaves.
	CheckLog func(after int64, leaves []translog.Leaf) error
	// LogReport is called after each attempt to copy new parts of the registry's log, with the error of the
	// attempt. A nil error means that the copy of the log is up to date.
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
	ErrOtherLog = publiclog.ErrOtherLog // the log of the registry is not the one that was copied
	ErrNoLeaf   = errors.New("the copy of the log has no leaf at this position")
)

// Leaf returns the leaf with the given position, from the copy of the public log that a mirror has verified. It
// returns ErrNoLeaf if the copy has no leaf with this position, or has not copied this part of the log yet.
func (s *Server) Leaf(ctx context.Context, position int64) (translog.Leaf, error) {
	leaf, err := s.public.LeafAt(ctx, position)
	if errors.Is(err, registry.ErrNoLeaf) || errors.Is(err, registry.ErrNotLogged) {
		err = ErrNoLeaf
	}
	return leaf, err
}

// Checkpoint returns the newest checkpoint in the copy of the public log, or an error if the copy has none. Its
// signatures were verified when it was stored, if a policy was set.
func (s *Server) Checkpoint(ctx context.Context) (translog.Checkpoint, error) {
	signed, err := s.public.Checkpoint(ctx)
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

// noAuth takes the place of the transport to an auth service. A mirror has no auth service.
type noAuth struct{}

func (noAuth) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("a mirror has no auth service")
}

// originOf returns a function that returns the origin of a log. The origin is "" until the log has a checkpoint.
func originOf(log *publiclog.Reader) func(context.Context) string {
	return func(ctx context.Context) string {
		signed, err := log.Checkpoint(ctx)
		if err != nil {
			return "" // the request fails anyway when it reads the log
		}
		checkpoint, err := translog.Unverified(signed)
		if err != nil {
			return ""
		}
		return checkpoint.Origin
	}
}

// copyLog copies the public log in the background, until the list ends it.
func (m *Mirror) copyLog(to publiclog.Store, closers *closing.List) {
	work := publiclog.Copier{Store: to, Source: m.LogSource, Policy: m.LogPolicy, Check: m.CheckLog}
	closers.Go(context.Background(), func(ctx context.Context) { work.Run(ctx, m.LogReport) })
}
