package faults

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// stepDown is a proxy between service and store. It answers some commands itself, with the error of a replica set
// member that is no longer the primary. The stand-in for MongoDB has no replica set, so it cannot do this.
type stepDown struct {
	store   string
	command atomic.Value // a string: command and collection, for example "update assets"
	left    atomic.Int64 // number of further commands that the proxy answers itself
}

// opMsg is the opcode of OP_MSG. Current drivers send all messages with it.
const opMsg = 2013

func (s *stepDown) serve(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		store, err := net.Dial("tcp", s.store)
		if err != nil {
			client.Close()
			continue
		}
		var mu sync.Mutex // lock for writes to the client
		go func() {
			defer client.Close()
			for {
				message, err := read(store)
				if err != nil {
					return
				}
				mu.Lock()
				_, err = client.Write(message)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		}()
		go func() {
			defer store.Close()
			for {
				message, err := read(client)
				if err != nil {
					return
				}
				if s.takes(message) {
					mu.Lock()
					_, err = client.Write(refusal(binary.LittleEndian.Uint32(message[4:])))
					mu.Unlock()
				} else {
					_, err = store.Write(message)
				}
				if err != nil {
					return
				}
			}
		}()
	}
}

// takes reports whether the proxy itself answers a message. Before the message's body there are 16 bytes of header,
// 4 bytes of flags and 1 byte for the kind of section.
func (s *stepDown) takes(message []byte) bool {
	if binary.LittleEndian.Uint32(message[12:]) != opMsg {
		return false
	}
	elements, err := bson.Raw(message[21:]).Elements()
	if err != nil || len(elements) == 0 {
		return false
	}
	collection, _ := elements[0].Value().StringValueOK()
	return elements[0].Key()+" "+collection == s.command.Load() && s.left.Add(-1) >= 0
}

// read reads one message.
func read(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	message := make([]byte, binary.LittleEndian.Uint32(length[:]))
	copy(message, length[:])
	_, err := io.ReadFull(r, message[4:])
	return message, err
}

// refusal returns the answer "not primary" to a request.
func refusal(request uint32) []byte {
	body, err := bson.Marshal(bson.D{
		{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: "not primary"}, {Key: "code", Value: int32(10107)},
		{Key: "codeName", Value: "NotWritablePrimary"},
		{Key: "errorLabels", Value: bson.A{"RetryableWriteError"}},
	})
	if err != nil {
		panic(err)
	}
	message := binary.LittleEndian.AppendUint32(nil, uint32(21+len(body)))
	message = binary.LittleEndian.AppendUint32(message, 1)
	message = binary.LittleEndian.AppendUint32(message, request)
	message = binary.LittleEndian.AppendUint32(message, opMsg)
	message = binary.LittleEndian.AppendUint32(message, 0)
	return append(append(message, 0), body...)
}

func TestServiceSurvivesAChangeOfThePrimary(t *testing.T) {
	server := mongotest.Start(t)
	for _, command := range []string{"update clock", "update assets", "insert assets", "find assets", "find clock",
		"findAndModify numbers"} {
		t.Run(command, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			expect.OK(t, err)
			defer listener.Close()
			database := "primary" + strings.ReplaceAll(command, " ", "")
			uri, store := mongotest.Through(t, server.URI(t, database), listener.Addr().String())
			between := &stepDown{store: store}
			between.command.Store(command)
			go between.serve(listener)
			l := &ledger{service: start(t, uri)}
			l.create(t)
			l.change(t, l.assets[0])
			for i := range 5 {
				between.left.Store(int64(i % 3))
				changed := l.change(t, l.assets[0])
				between.left.Store(int64(i % 3))
				l.create(t)
				between.left.Store(0)
				if changed != http.StatusOK && !strings.HasPrefix(command, "find") {
					t.Errorf("a change: got %d, want 200", changed)
				}
			}
			l.recovers(t)
			l.check(t)
		})
	}
}
