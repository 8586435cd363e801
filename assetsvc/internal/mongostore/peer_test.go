package mongostore

import (
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/shared/testing/expect"
)

// peer is a stand-in for a primary that is in trouble, in the replica set with the name "set". It speaks MongoDB's
// wire protocol, and a script gives its answers.
type peer struct {
	addr string

	mu      sync.Mutex
	script  func(c command) bson.D // answers a command; without it, or if it returns nil, the peer sends accepted()
	arrived []command              // all commands except hello and endSessions
	clients []net.Conn
}

// newPeer returns a peer and the address of a database on it.
func newPeer(tb testing.TB) (*peer, string) {
	tb.Helper()
	listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(tb)
	p := &peer{addr: listener.Addr().String()}
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.clients = append(p.clients, client)
			p.mu.Unlock()
			clients.Go(func() { p.serve(client) })
		}
	})
	tb.Cleanup(func() {
		listener.Close()
		p.mu.Lock()
		for _, c := range p.clients {
			c.Close()
		}
		p.mu.Unlock()
		clients.Wait()
	})
	return p, "mongodb://" + p.addr + "/peer"
}

// answers gives the peer a new script, and clears the list of commands that have arrived.
func (p *peer) answers(script func(c command) bson.D) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script, p.arrived = script, nil
}

// named returns the commands with this name that have arrived.
func (p *peer) named(name string) []command {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.arrived), func(c command) bool { return c.body[0].Key != name })
}

func (p *peer) serve(client net.Conn) {
	defer client.Close()
	for {
		message, err := readMessage(client)
		if err != nil {
			return
		}
		id, answer := binary.LittleEndian.Uint32(message[4:]), []byte(nil)
		if binary.LittleEndian.Uint32(message[12:]) != opMsg {
			answer = packReply(id, p.hello())
		} else {
			c, err := parse(message)
			if err != nil {
				return
			}
			answer = pack(id, p.answer(c), nil)
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

func (p *peer) answer(c command) bson.D {
	name := c.body[0].Key
	p.mu.Lock()
	script := p.script
	if name != "hello" && name != "endSessions" {
		p.arrived = append(p.arrived, c)
	}
	p.mu.Unlock()
	if script != nil && name != "endSessions" {
		if answer := script(c); answer != nil {
			return answer
		}
	}
	if name == "hello" {
		return p.hello()
	}
	return accepted()
}

func (p *peer) hello() bson.D { return helloOf(p.addr, p.addr, p.addr) }

// helloOf returns the answer of a member of the replica set "set" to the command hello. The parameter `primary` is ""
// while the set has no primary.
func helloOf(me, primary string, hosts ...string) bson.D {
	return accepted(
		bson.E{Key: "helloOk", Value: true}, bson.E{Key: "ismaster", Value: me == primary},
		bson.E{Key: "isWritablePrimary", Value: me == primary}, bson.E{Key: "secondary", Value: me != primary},
		bson.E{Key: "setName", Value: "set"}, bson.E{Key: "hosts", Value: hosts}, bson.E{Key: "me", Value: me},
		bson.E{Key: "primary", Value: primary}, bson.E{Key: "setVersion", Value: 1},
		bson.E{Key: "localTime", Value: time.Now()}, bson.E{Key: "logicalSessionTimeoutMinutes", Value: 30},
		bson.E{Key: "maxBsonObjectSize", Value: 16 << 20}, bson.E{Key: "maxMessageSizeBytes", Value: 48_000_000},
		bson.E{Key: "maxWriteBatchSize", Value: 100_000},
		bson.E{Key: "minWireVersion", Value: 0}, bson.E{Key: "maxWireVersion", Value: 21},
	)
}

// accepted returns the answer to a command that succeeded. The answer also has the given fields.
func accepted(more ...bson.E) bson.D { return append(bson.D{{Key: "ok", Value: 1.0}}, more...) }

// found returns the answer to a read: all documents, and a cursor that has ended.
func found(documents ...bson.D) bson.D {
	documents = append([]bson.D{}, documents...) // so that the answer has an empty array instead of null
	return accepted(bson.E{Key: "cursor", Value: bson.D{
		{Key: "id", Value: int64(0)}, {Key: "ns", Value: "peer.any"}, {Key: "firstBatch", Value: documents},
	}})
}

// The function `at` adds an operation time to an answer, and returns this answer.
func at(time uint32, answer bson.D) bson.D {
	return append(answer, bson.E{Key: "operationTime", Value: bson.Timestamp{T: time}})
}

// packReply returns the answer to a command in the old form of the protocol. The driver uses this form for the
// first message of each connection.
func packReply(id uint32, body bson.D) []byte {
	encoded, err := bson.Marshal(body)
	if err != nil {
		panic(err)
	}
	const opReply, fields = 1, 16 + 4 + 8 + 4 + 4
	var message []byte
	for _, n := range []uint32{uint32(fields + len(encoded)), id, id, opReply, 0, 0, 0, 0, 1} {
		message = binary.LittleEndian.AppendUint32(message, n)
	}
	return append(message, encoded...)
}

// scripted returns a peer, and a database whose server is this peer.
func scripted(t *testing.T) (*peer, *database) {
	t.Helper()
	p, uri := newPeer(t)
	d := expect.Get(connect(uri, rigTimeout))(t)
	t.Cleanup(func() { expect.Try(t, d.disconnect()) })
	return p, d
}
