// Package mux carries many HTTP requests at once over one connection between two services
// of the registry. So one system call sends what many callers wait for.
//
// # Protocol
//
// A client asks for it on the port of HTTP: GET Path with "Upgrade: registry-calls/1". A
// server that knows the protocol answers 101; any other answer means that the client must
// go on with plain HTTP. Then both sides send frames. A frame has a head of 8 bytes: the
// stream (4 bytes, big endian), the kind (1 byte), and the length of the content (3
// bytes), at most 16 KiB, or 64 KiB for a head. The content follows.
//
//	head    method, target and fields of a request, or status and fields of an answer
//	body    bytes of a body
//	end     the body is whole
//	cancel  the sender gives the stream up; a server also says so when it cannot go on
//	window  4 bytes: so many more bytes of the body may be sent
//	drain   stream: the last one that the server has taken; it takes no more
//
// A client numbers its streams from 1. A stream is one request and one answer. A deadline
// travels as a field of the request (httpserver.TimeoutHeader).
//
// # Invariants
//
// M1. No stream delays another: a side sends at most Window bytes of a body before the
// other side has read them, so a reader of frames never waits for a reader of a body.
//
// M2. Memory is bounded: a connection has at most maxStreams streams, each of which holds
// at most Window bytes of a body and one head.
//
// M3. A request is carried out at most once. The client learns that it was not, if the
// stream is later than the last one of a drain (ErrNotTaken). A lost connection leaves it
// open (ErrLost).
//
// M4. The client's cancel ends the context of the handler, and a lost connection ends all
// of them.
//
// Trailers and interim answers are not carried.
package mux

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"
)

const (
	// Path is the target of the request for the protocol.
	Path = "/.calls"
	// Protocol is the name in Upgrade.
	Protocol = "registry-calls/1"
	// Window is how many bytes of a body may be sent that the other side has not read.
	Window = 64 << 10

	maxBody    = 16 << 10 // bytes of a body in one frame
	maxHead    = 64 << 10 // bytes of a head
	maxStreams = 1024     // of a connection
	maxUnsent  = 1 << 20  // bytes that wait for the connection; a body waits beyond

	writeTimeout = 10 * time.Second // for the other side to take what was sent
)

// ErrLost is returned when the connection ended after a request was sent.
var ErrLost = errors.New("the connection to the service was lost")

// ErrNotTaken is returned when the server has not begun with a request.
var ErrNotTaken = errors.New("the service takes no more requests on this connection")

// errProtocol is returned for frames that break the protocol.
var errProtocol = errors.New("the other side breaks the protocol of calls")

type kind byte

const (
	headFrame kind = iota + 1
	bodyFrame
	endFrame
	cancelFrame
	windowFrame
	drainFrame
)

const frameHead = 8 // bytes

// appendFrame adds a frame to b.
func appendFrame[T []byte | string](b []byte, stream uint32, k kind, content T) []byte {
	b = binary.BigEndian.AppendUint32(b, stream)
	b = binary.BigEndian.AppendUint32(b, uint32(k)<<24|uint32(len(content)))
	return append(b, content...)
}

// frame is a frame that was read. Its content is valid until the next is read.
type frame struct {
	stream  uint32
	kind    kind
	content []byte
}

// frames reads frames.
type frames struct {
	r       *bufio.Reader
	content []byte
}

func (f *frames) next() (frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return frame{}, err
	}
	size := binary.BigEndian.Uint32(head[4:])
	k := kind(size >> 24)
	size &= 1<<24 - 1
	most := uint32(0)
	switch k {
	case headFrame:
		most = maxHead
	case bodyFrame:
		most = maxBody
	case windowFrame:
		most = 4
	}
	if k < headFrame || k > drainFrame || size > most || k == windowFrame && size != 4 {
		return frame{}, fmt.Errorf("%w: a frame of kind %d with %d bytes", errProtocol, k, size)
	}
	if cap(f.content) < int(size) {
		f.content = make([]byte, size, max(int(size), maxBody))
	}
	content := f.content[:size]
	if _, err := io.ReadFull(f.r, content); err != nil {
		return frame{}, err
	}
	return frame{binary.BigEndian.Uint32(head[:]), k, content}, nil
}

// outbox sends frames in the order of put. A goroutine of its own writes them, so that
// what several callers put meanwhile goes with one system call.
type outbox struct {
	conn net.Conn
	wake chan struct{} // holds one element when something was put
	done chan struct{} // closed when the writer has ended

	mu     sync.Mutex
	room   sync.Cond // of mu: the writer has taken all
	unsent []byte
	failed error
	closes bool // the writer ends when all is sent
}

func newOutbox(conn net.Conn) *outbox {
	o := &outbox{conn: conn, wake: make(chan struct{}, 1), done: make(chan struct{})}
	o.room.L = &o.mu
	go o.run()
	return o
}

// put adds what add appends. It waits while too much is unsent.
func (o *outbox) put(add func(b []byte) []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.failed == nil && len(o.unsent) > maxUnsent {
		o.room.Wait()
	}
	return o.add(add)
}

// offer is put, but it adds nothing and returns false while too much is unsent.
func (o *outbox) offer(add func(b []byte) []byte) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.unsent) > maxUnsent {
		return false, o.failed
	}
	return true, o.add(add)
}

func (o *outbox) add(add func(b []byte) []byte) error {
	if o.failed != nil {
		return o.failed
	}
	o.unsent = add(o.unsent)
	o.signal()
	return nil
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) run() {
	defer close(o.done)
	var spare []byte
	for range o.wake {
		runtime.Gosched() // what others put meanwhile goes with the same write
		o.mu.Lock()
		b := o.unsent
		o.unsent = spare[:0]
		last := o.closes
		o.room.Broadcast()
		o.mu.Unlock()
		err := o.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err == nil && len(b) > 0 {
			_, err = o.conn.Write(b)
		}
		if err != nil {
			o.fail(err)
		}
		if err != nil || last {
			return
		}
		if spare = b; cap(spare) > maxUnsent/4 {
			spare = nil
		}
	}
}

// fail lets every later put fail.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = err
	}
	o.unsent = nil
	o.closes = true
	o.room.Broadcast()
	o.signal()
}

// end waits until all is sent.
func (o *outbox) end() {
	o.mu.Lock()
	o.closes = true
	o.signal()
	o.mu.Unlock()
	<-o.done
}
