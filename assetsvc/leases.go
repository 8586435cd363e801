package assetsvc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/mongostore"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/lease"
)

// fileLeases are the leases of a service that keeps the assets in a file.
type fileLeases struct {
	*lease.Grantor
	marker   string // a file that exists while leases may be held
	failures *failurelog.Log
	silence  func() error // ends the metrics
}

// openFileLeases returns the leases of a store in a file, or nil if there are none. A service
// that is killed leaves its leases and the marker behind. So the next one waits until they
// have ended, and grants leases as well.
func (c Config) openFileLeases() (*fileLeases, error) {
	path, isFile := strings.CutPrefix(c.Store, fileScheme)
	if !isFile || c.Mirror != nil {
		return nil, nil
	}
	l := &fileLeases{marker: path + ".leases"}
	_, err := os.Stat(l.marker)
	if errors.Is(err, fs.ErrNotExist) {
		if !c.Leases {
			return nil, nil
		}
		err = os.WriteFile(l.marker, nil, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("mark that leases are granted: %w", err)
	}
	l.failures = failurelog.New(c.Log, "connections of leases fail")
	name := "w" + rand.Text()
	l.Grantor = lease.NewGrantor(lease.Options{
		Name: name, Group: lease.Alone(name), Timeout: DefaultStoreTimeout,
		Failed: l.failures.Failed,
	})
	if l.silence, err = l.Measure(c.Telemetry.Meter()); err != nil {
		return nil, err
	}
	l.Start()
	return l, nil
}

// changing is the Options.Changing of the store.
func (l *fileLeases) changing(ids []string) (done func()) {
	b := l.Announce(ids)
	_ = b.Wait(context.Background()) // no error: this context does not end
	return b.Done
}

// end waits until the leases have ended. It leaves the marker: if the store cannot be opened,
// the marker may belong to the process that has it open. A nil l has no leases.
func (l *fileLeases) end() error {
	if l == nil {
		return nil
	}
	defer l.failures.Close()
	return errors.Join(l.silence(), l.Grantor.Close())
}

// routeLeases adds the route by which gateways ask for leases.
func (s *Server) routeLeases(engine *gin.Engine, signer *identity.Signer) {
	grantor := s.grantor()
	if grantor == nil {
		return
	}
	engine.GET(lease.Path, httpserver.Identify(signer), httpserver.Handle(func(c *gin.Context) error {
		if httpserver.Caller(c).Role != identity.Service {
			return fault.New(fault.Forbidden, fault.Header, identity.Header, "only services get leases")
		}
		if err := grantor.Accept(c.Writer, c.Request); err != nil {
			return fault.New(fault.Invalid, fault.Header, "Upgrade", "%v", err)
		}
		return nil
	}))
}

// grantor returns what grants leases, or nil.
func (s *Server) grantor() *lease.Grantor {
	if store, is := s.store.(*mongostore.Store); is {
		return store.Grantor()
	}
	if s.leases != nil {
		return s.leases.Grantor
	}
	return nil
}

// closeLeases waits until the leases of a file's service have ended, and removes the marker.
func (s *Server) closeLeases() error {
	if s.leases == nil {
		return nil
	}
	return errors.Join(s.leases.end(), os.Remove(s.leases.marker))
}
