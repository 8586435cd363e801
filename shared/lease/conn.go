package lease

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"asset-registry/shared/httpwire"
	"asset-registry/shared/identity"
)

// Ask asks the writer at the other end of conn for a connection of leases. Host is the
// writer's address. After an error the caller closes conn.
func Ask(ctx context.Context, conn net.Conn, host string, signer *identity.Signer) (*bufio.Reader, error) {
	signed, err := signer.Sign(identity.Identity{Broker: "gateway", Role: identity.Service})
	if err != nil {
		return nil, err
	}
	return httpwire.Upgrade(ctx, conn, host, Path, Protocol, http.Header{identity.Header: {signed}})
}

// errNotAsked is returned for a request that does not ask for the protocol.
var errNotAsked = fmt.Errorf("the request must have the field Upgrade: %s", Protocol)

// Accept takes the connection of a request at Path from the server, and serves it beside
// the caller, who has verified that a service asks. After an error the answer is still to
// be given.
func (g *Grantor) Accept(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get("Upgrade") != Protocol {
		return errNotAsked
	}
	if !g.enter() {
		return errFull
	}
	conn, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		g.serving.Done()
		return fmt.Errorf("leases need a connection of HTTP/1.1: %w", err)
	}
	go func() {
		defer g.serving.Done()
		const answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + Protocol + "\r\n\r\n"
		err := conn.SetDeadline(time.Time{})
		if err == nil {
			_, err = conn.Write([]byte(answer))
		}
		if err != nil {
			_ = conn.Close() // the gateway asks again
			return
		}
		if err := g.Serve(conn, rest.Reader); errors.Is(err, errProtocol) || errors.Is(err, errFull) {
			g.o.Failed(err)
		}
	}()
	return nil
}

// enter counts a connection that is served, unless the grantor is closed.
func (g *Grantor) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.serving.Add(1)
	}
	return !g.closed
}
