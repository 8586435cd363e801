package feed

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// network is a proxy between the services and the store. It delays some messages of MongoDB's protocol. It also
// breaks some connections, before it forwards a command or an answer.
type network struct {
	listener net.Listener
	store    string      // address of the store
	calm     atomic.Bool // if true, nothing is delayed or broken any more
	stalls   atomic.Int64
	breaks   atomic.Int64
}

const (
	stallEach  = 60  // on average, one of this many messages is delayed
	breakEach  = 500 // on average, one of this many messages breaks its connection
	longest    = 600 * time.Millisecond
	headerSize = 4 // bytes of the header, which contains the length of the whole message, little-endian
)

// newNetwork returns a network that does not accept connections until the method `serve` is called.
func newNetwork(t *testing.T) *network {
	t.Helper()
	listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	return &network{listener: listener}
}

// serve connects clients to the store until the test ends.
func (n *network) serve() {
	go func() {
		for {
			client, err := n.listener.Accept()
			if err != nil {
				return
			}
			go n.join(client)
		}
	}()
}

// join connects a client to the store until one of them closes the connection, or the method `pass` breaks it.
func (n *network) join(client net.Conn) {
	defer client.Close()
	store, err := net.Dial("tcp", n.store)
	if err != nil {
		return
	}
	defer store.Close()
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		defer to.Close()
		defer from.Close()
		for n.pass(to, from) == nil {
		}
	}
	both.Go(func() { pass(store, client) })
	both.Go(func() { pass(client, store) })
	both.Wait()
}

// pass forwards one message. It may delay the message, or break the connection instead.
func (n *network) pass(to io.Writer, from io.Reader) error {
	var header [headerSize]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return err
	}
	message := make([]byte, binary.LittleEndian.Uint32(header[:]))
	copy(message, header[:])
	if _, err := io.ReadFull(from, message[headerSize:]); err != nil {
		return err
	}
	if !n.calm.Load() {
		if randtest.IntN(stallEach) == 0 {
			n.stalls.Add(1)
			time.Sleep(randtest.N(longest))
		}
		if randtest.IntN(breakEach) == 0 {
			n.breaks.Add(1)
			return io.ErrClosedPipe
		}
	}
	_, err := to.Write(message)
	return err
}
