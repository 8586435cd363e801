package lease

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// kind is what a message says.
type kind string

const (
	ask      kind = "ask"
	grant    kind = "grant"
	none     kind = "none"
	announce kind = "announce"
	confirm  kind = "confirm"
	done     kind = "done"
	release  kind = "release"
)

// message is a line between a writer and a gateway.
type message struct {
	Kind    kind     `json:"kind"`
	Writer  string   `json:"writer,omitempty"`  // grant: the writer that grants it
	Members []string `json:"members,omitempty"` // grant: the registered writers
	Left    int64    `json:"left,omitempty"`    // grant: ms until its end
	Batch   uint64   `json:"batch,omitempty"`   // number of a writer's batch; 0: none
	IDs     []string `json:"ids,omitempty"`     // assets of the batch
}

const (
	maxLine  = 1 << 20 // bytes of a message of a writer
	maxReply = 256     // bytes of a message of a gateway
	maxQueue = 64      // messages that wait for a gateway
	within   = 5 * time.Second
)

// errProtocol is returned for a message that breaks the protocol.
var errProtocol = errors.New("the other side breaks the protocol of leases")

// reader reads messages of at most most bytes.
type reader struct {
	lines *bufio.Scanner
}

func newReader(r *bufio.Reader, most int) reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, min(most, 4<<10)), most)
	return reader{lines}
}

// next returns the next message.
func (r reader) next() (m message, err error) {
	if !r.lines.Scan() {
		if err := r.lines.Err(); err != nil {
			return message{}, err
		}
		return message{}, net.ErrClosed
	}
	if err := json.Unmarshal(r.lines.Bytes(), &m); err != nil {
		return message{}, fmt.Errorf("%w: %w", errProtocol, err)
	}
	return m, nil
}

// sender sends messages in the order of send, from a goroutine of its own. A receiver that
// takes none of them for a while, or has too many before it, loses its connection.
type sender struct {
	conn  net.Conn
	queue chan []byte
	end   chan struct{} // closed by close
	once  sync.Once
}

func newSender(conn net.Conn) *sender {
	s := &sender{conn: conn, queue: make(chan []byte, maxQueue), end: make(chan struct{})}
	go s.run()
	return s
}

func (s *sender) run() {
	defer s.close()
	for {
		select {
		case line := <-s.queue:
			if s.conn.SetWriteDeadline(time.Now().Add(within)) != nil {
				return
			}
			if _, err := s.conn.Write(line); err != nil {
				return
			}
		case <-s.end:
			return
		}
	}
}

// send queues a message, which is lost if the connection is.
func (s *sender) send(m message) {
	line, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Errorf("a message is no JSON: %w", err)) // its types are
	}
	select {
	case s.queue <- append(line, '\n'):
	default:
		s.close()
	}
}

// finish sends a last message, before what is queued, and ends the connection.
func (s *sender) finish(m message) {
	if line, err := json.Marshal(m); err == nil && s.conn.SetWriteDeadline(time.Now().Add(within)) == nil {
		_, _ = s.conn.Write(append(line, '\n')) // a lost message only costs time
	}
	s.close()
}

// close ends the connection.
func (s *sender) close() {
	s.once.Do(func() {
		close(s.end)
		_ = s.conn.Close() // nothing can be done about an error
	})
}
