package mongostore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/mongotest"
)

// replicaSet is a replica set of two members. The primary passes commands on to the one server of the rig. The other
// member refuses commands. As in MongoDB, an election breaks the connections on which commands are under way. If the
// driver sends a write a second time, the write is done only once.
type replicaSet struct {
	*node
	hosts [2]string
	lost  atomic.Int64 // commands that were done, but whose answer did not reach the client

	running sync.RWMutex // each command holds it for reading
	term    uint32
	primary int // index in hosts; -1: there is no primary

	mu   sync.Mutex
	done map[string][]byte // the answers to writes that were done, by session and number
}

// newReplicaSet returns a replica set and the address of a database on it.
func newReplicaSet(t *testing.T, database string) (*replicaSet, string) {
	t.Helper()
	n, _ := newNode(t, mongotest.Start(t), database)
	r := &replicaSet{node: n, done: map[string][]byte{}}
	for i := range r.hosts {
		r.hosts[i] = accept(t, func(client net.Conn) { r.serve(client, i) })
	}
	return r, fmt.Sprintf("mongodb://%s,%s/%s?replicaSet=set", r.hosts[0], r.hosts[1], database)
}

// elect makes the other member the primary. For some time before that, the set has no primary.
func (r *replicaSet) elect() {
	r.running.Lock()
	next := 1 - r.primary
	r.primary = -1
	r.term++
	r.running.Unlock()
	time.Sleep(50 * time.Millisecond)
	r.running.Lock()
	r.primary = next
	r.running.Unlock()
}

// serve answers the commands that a client sends to a member until the client leaves.
func (r *replicaSet) serve(client net.Conn, member int) {
	defer client.Close()
	server, err := net.Dial("tcp", r.rig)
	if err != nil {
		return
	}
	defer server.Close()
	for {
		message, err := readMessage(client)
		if err != nil {
			return
		}
		answer, err := r.reply(server, message, member)
		if err != nil {
			return
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

const notWritablePrimary = 10107

var errElection = errors.New("the member stepped down")

func (r *replicaSet) reply(server net.Conn, message []byte, member int) ([]byte, error) {
	if binary.LittleEndian.Uint32(message[12:]) != opMsg {
		return packReply(binary.LittleEndian.Uint32(message[4:]), r.hello(member)), nil
	}
	c, err := parse(message)
	if err != nil {
		return nil, err
	}
	if c.body[0].Key == "hello" {
		return pack(c.id, r.hello(member), nil), nil
	}
	r.running.RLock()
	term, primary := r.term, r.primary
	if primary != member {
		r.running.RUnlock()
		return pack(c.id, refusal(notWritablePrimary, "not primary"), nil), nil
	}
	answer, err := r.once(server, message, c)
	r.running.RUnlock()
	r.running.RLock() // if an election waits for the lock, it takes place here
	defer r.running.RUnlock()
	if err == nil && r.term != term {
		r.lost.Add(1)
		return nil, errElection
	}
	return answer, err
}

// The method `once` passes on a command. If the command is a write that was done earlier, it returns the earlier answer
// instead.
func (r *replicaSet) once(server net.Conn, message []byte, c command) ([]byte, error) {
	number, err := c.raw.LookupErr("txnNumber")
	if err != nil {
		return r.exchange(server, message)
	}
	key := c.raw.Lookup("lsid").String() + number.String()
	r.mu.Lock()
	answer, done := r.done[key]
	r.mu.Unlock()
	if done {
		answer = slices.Clone(answer)
		binary.LittleEndian.PutUint32(answer[8:], c.id) // responseTo: the id of the message that is answered
		return answer, nil
	}
	answer, err = r.exchange(server, message)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[key] = answer
	return answer, err
}

func (r *replicaSet) hello(member int) bson.D {
	r.running.RLock()
	defer r.running.RUnlock()
	primary := ""
	if r.primary >= 0 {
		primary = r.hosts[r.primary]
	}
	var election bson.ObjectID
	binary.BigEndian.PutUint32(election[:], 1+r.term)
	hello := helloOf(r.hosts[member], primary, r.hosts[:]...)
	if r.primary == member {
		hello = append(hello, bson.E{Key: "electionId", Value: election})
	}
	return hello
}

// change is the id of a changed asset, with the position of the change.
type change struct {
	id       string
	position int64
}

// TestAnElectionLosesNoAcknowledgedChange elects primaries while two stores write. Each change that a store has
// acknowledged must be in the record, once and at its position. No change may appear at a position that a reader
// has already passed.
func TestAnElectionLosesNoAcknowledgedChange(t *testing.T) {
	set, uri := newReplicaSet(t, "elections")
	stores := []*Store{openWith(t, uri, Options{FreshReads: true}), openWith(t, uri, Options{FreshReads: true})}
	const elections, each, writers = 4, 25, 6
	var acknowledged atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	acks := make([][]change, writers)
	var writing, reading sync.WaitGroup
	for i := range writers {
		writing.Go(func() { acks[i] = writeUntil(ctx, stores[i%2], &acknowledged) })
	}
	var seen []change
	reading.Go(func() { seen = followUntil(ctx, stores[0]) })
	for end := time.Now().Add(2 * time.Minute); acknowledged.Load() < elections*each; {
		for goal := acknowledged.Load() + each; acknowledged.Load() < goal; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("got %d acknowledged changes, want %d", acknowledged.Load(), elections*each)
			}
		}
		set.elect()
	}
	stop()
	writing.Wait()
	reading.Wait()
	if set.lost.Load() == 0 {
		t.Error("got no command that an election interrupted, want some")
	}
	var last int64
	for _, of := range acks {
		last = max(last, of[len(of)-1].position)
	}
	all := readUpTo(t, stores[1], last)
	if upto := len(seen); upto == 0 || cmp.Diff(seen, all[:min(upto, len(all))], cmp.AllowUnexported(change{})) != "" {
		t.Errorf("a reader during the elections got %v, want the beginning of %v", seen, all)
	}
	for _, of := range acks {
		for i, a := range of {
			if !slices.Contains(all, a) || i > 0 && of[i-1].position >= a.position {
				t.Errorf("acknowledged change %v is lost or out of order", a)
			}
		}
	}
	t.Logf("%d acknowledged of %d changes, %d answers lost", acknowledged.Load(), len(all), set.lost.Load())
}

// writeUntil creates and changes assets until ctx ends, and returns the acknowledged changes. After each write it
// reads the asset again; if it cannot read the asset, it goes on with a new one.
func writeUntil(ctx context.Context, s *Store, acknowledged *atomic.Int64) (acks []change) {
	var r registry.Record
	for ctx.Err() == nil {
		write := s.Replace
		if r.Revision == 0 {
			r, write = registry.Record{ID: storetest.NewID(), Listed: true, Body: body}, s.Create
		}
		position, err := write(ctx, r)
		if err == nil {
			acknowledged.Add(1)
			acks = append(acks, change{r.ID, position})
		}
		if r, err = s.Get(ctx, r.ID, registry.AnySize); err != nil {
			r = registry.Record{}
		}
	}
	return acks
}

// followUntil reads the record until ctx ends.
func followUntil(ctx context.Context, s *Store) (seen []change) {
	for after := int64(0); ctx.Err() == nil; {
		page, err := s.Changes(ctx, registry.ChangesQuery{After: after, Limit: 100, Bytes: registry.AnySize})
		if err != nil {
			continue
		}
		for _, c := range page.Changes {
			seen = append(seen, change{c.ID, c.Position})
		}
		after = max(after, page.Upto)
	}
	return seen
}

// readUpTo reads the record up to a position. A batch that an election interrupted hides the changes above it until its
// writer settles it.
func readUpTo(t *testing.T, s *Store, last int64) (all []change) {
	t.Helper()
	after := int64(0)
	eventually(t, func() bool {
		page, err := s.Changes(t.Context(), registry.ChangesQuery{After: after, Limit: 100, Bytes: registry.AnySize})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Changes {
			all = append(all, change{c.ID, c.Position})
		}
		after = max(after, page.Upto)
		return !page.More && after >= last
	}, "the whole record")
	return all
}
