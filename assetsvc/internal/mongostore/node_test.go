package mongostore

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// node is a proxy that makes the rig behave like a member of a replica set: its answers have an operation time,
// and it obeys read concerns as MongoDB does. It can also behave like a primary that was voted out and does not
// know it.
type node struct {
	rig string // address

	mu       sync.Mutex
	time     uint32            // operation time; each command adds one
	timeless bool              // answers have no operation time, like the answers of a single server
	deposed  uint32            // operation time when the node was voted out; 0: the node is the primary
	found    bool              // linearizable reads reach the new primary
	answers  map[string]bson.D // answers to earlier reads; the keys are values of command.asks
	reads    []arrival         // in the order in which they arrived
}

// newNode returns a node and the address of a database on it.
func newNode(tb testing.TB, server *mongotest.Server, database string) (*node, string) {
	tb.Helper()
	if server.Real {
		tb.Skip("a test cannot depose the primary of a real server")
	}
	n := &node{rig: server.Addr, answers: map[string]bson.D{}}
	uri, _ := mongotest.Through(tb, server.URI(tb, database), accept(tb, n.serve))
	return n, uri
}

// accept serves clients until the test ends, and returns the address for them.
func accept(tb testing.TB, serve func(client net.Conn)) (addr string) {
	tb.Helper()
	listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(tb)
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			clients.Go(func() { serve(client) })
		}
	})
	tb.Cleanup(func() {
		listener.Close()
		clients.Wait() // waits until the stores of the test have disconnected
	})
	return listener.Addr().String()
}

// serve answers the commands of a client until the client leaves.
func (n *node) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", n.rig)
	if err != nil {
		return
	}
	defer server.Close()
	for {
		message, err := readMessage(client)
		if err != nil {
			return
		}
		answer, err := n.exchange(server, message)
		if err != nil {
			return
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

func (n *node) exchange(server net.Conn, message []byte) ([]byte, error) {
	if binary.LittleEndian.Uint32(message[12:]) != opMsg {
		return forward(server, message)
	}
	c, err := parse(message)
	if err != nil {
		return nil, err
	}
	now, answer := n.arrives(c)
	if answer == nil {
		theirs, err := forward(server, pack(c.id, without(c.body, "readConcern", "txnNumber"), c.documents))
		if err != nil {
			return nil, err
		}
		if err := bson.Unmarshal(theirs[bodyOffset:], &answer); err != nil {
			return nil, err
		}
		answer = n.answered(c, now, answer)
	}
	return pack(c.id, answer, nil), nil
}

// MongoDB's codes of errors.
const (
	badValue       = 2
	timeExpired    = 50
	invalidOptions = 72
)

// arrives notes a command. If the rig must answer it, arrives returns the operation time for that answer.
// Otherwise it returns the answer that the node gives instead of the rig. While the node is deposed, its operation
// time stands still.
func (n *node) arrives(c command) (now uint32, answer bson.D) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.time++
	if c.isRead {
		n.reads = append(n.reads, arrival{c, n.time})
	}
	old, knows := n.answers[c.asks]
	switch linear := c.level == "linearizable"; {
	case linear && c.after > 0:
		return 0, refusal(invalidOptions, "linearizable with afterClusterTime")
	case c.after > n.time:
		return 0, refusal(badValue, "afterClusterTime is in the future")
	case n.deposed == 0 || linear && n.found:
		return n.time, nil
	case !c.isRead:
		return n.deposed, nil
	case linear || c.after > n.deposed || !knows:
		return 0, refusal(timeExpired, "operation exceeded time limit")
	default:
		return 0, old
	}
}

// answered stores an answer of the rig, and returns it with the operation time.
func (n *node) answered(c command, now uint32, answer bson.D) bson.D {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.timeless {
		return answer
	}
	answer = append(answer, bson.E{Key: "operationTime", Value: bson.Timestamp{T: now}})
	if c.isRead && n.deposed == 0 {
		n.answers[c.asks] = finished(answer)
	}
	return answer
}

// arrived returns the reads that have arrived since the last call.
func (n *node) arrived() []arrival {
	n.mu.Lock()
	defer n.mu.Unlock()
	reads := n.reads
	n.reads = nil
	return reads
}

// finished returns an answer whose cursor is at its end.
func finished(answer bson.D) bson.D {
	answer = slices.Clone(answer)
	for i, e := range answer {
		if cursor, ok := e.Value.(bson.D); ok && e.Key == "cursor" {
			answer[i].Value = append(without(cursor, "id"), bson.E{Key: "id", Value: int64(0)})
		}
	}
	return answer
}

// depose makes the node behave like a primary that was voted out. If the parameter `found` is true, linearizable reads
// reach the new primary instead of this node.
func (n *node) depose(found bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deposed, n.found = n.time, found
}

// reelect makes the node the primary again.
func (n *node) reelect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deposed = 0
}

// arrival is a command and the time at which it arrived.
type arrival struct {
	command
	time uint32
}

// command is a command that a client has sent.
type command struct {
	id        uint32
	raw       bson.Raw
	body      bson.D
	documents []byte // documents of a write, which come after the body
	isRead    bool
	asks      string // the body without the fields about the session
	level     string // level of the read concern
	after     uint32 // seconds (T) of afterClusterTime
}

const (
	opMsg      = 2013 // opcode of every message except the first one of a connection
	bodyOffset = 21   // 16 bytes of header, 4 of flags, 1 for the kind of section
)

func parse(message []byte) (c command, err error) {
	length := binary.LittleEndian.Uint32(message[bodyOffset:])
	c.id = binary.LittleEndian.Uint32(message[4:])
	c.raw, c.documents = message[bodyOffset:][:length], message[bodyOffset+length:]
	if err := bson.Unmarshal(c.raw, &c.body); err != nil {
		return c, err
	}
	c.isRead = c.body[0].Key == "find" || c.body[0].Key == "aggregate"
	c.level, _ = c.raw.Lookup("readConcern", "level").StringValueOK()
	c.after, _, _ = c.raw.Lookup("readConcern", "afterClusterTime").TimestampOK()
	asks, err := bson.Marshal(without(c.body, "readConcern", "$clusterTime", "lsid", "maxTimeMS"))
	c.asks = string(asks)
	return c, err
}

func without(d bson.D, names ...string) bson.D {
	return slices.DeleteFunc(slices.Clone(d), func(e bson.E) bool { return slices.Contains(names, e.Key) })
}

// pack returns a message that has a command and the id of the command. It is also used for an answer to a command. The
// parameter `id` is then the id of that command.
func pack(id uint32, body bson.D, documents []byte) []byte {
	encoded, err := bson.Marshal(body)
	if err != nil {
		panic(err)
	}
	var message []byte
	for _, n := range []uint32{uint32(bodyOffset + len(encoded) + len(documents)), id, id, opMsg, 0} {
		message = binary.LittleEndian.AppendUint32(message, n)
	}
	return append(append(append(message, 0), encoded...), documents...)
}

func refusal(code int32, text string) bson.D {
	return bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: code}, {Key: "errmsg", Value: text}}
}

// forward sends a message and returns the answer.
func forward(server net.Conn, message []byte) ([]byte, error) {
	if _, err := server.Write(message); err != nil {
		return nil, err
	}
	return readMessage(server)
}

// readMessage reads one message. The first four bytes of a message are its length.
func readMessage(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	message := make([]byte, binary.LittleEndian.Uint32(length[:]))
	copy(message, length[:])
	_, err := io.ReadFull(r, message[len(length):])
	return message, err
}
