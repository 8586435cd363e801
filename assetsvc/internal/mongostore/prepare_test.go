package mongostore

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/net/dns/dnsmessage"

	"asset-registry/shared/logtest"
	"asset-registry/shared/sleep"
	"asset-registry/shared/testing/expect"
)

// prepared answers the commands of a store that prepares its database.
func prepared(c command) bson.D {
	if c.body[0].Key == "find" && c.body[0].Value == "clock" {
		return found(bson.D{{Key: "_id", Value: clockID}, {Key: "format", Value: format}})
	}
	if c.body[0].Key == "find" {
		return found()
	}
	return nil
}

// openQuickly opens a store whose operations have a short timeout.
func openQuickly(t *testing.T, uri string) (*Store, *logtest.Log) {
	t.Helper()
	log := &logtest.Log{}
	s := expect.Get(Open(t.Context(), uri, Options{
		Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil)), Timeout: 500 * time.Millisecond,
	}))(t)
	t.Cleanup(func() { s.Close() })
	return s, log
}

// eventually waits until the function `done` returns true. It fails the test after rigTimeout.
func eventually(t *testing.T, done func() bool, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rigTimeout)
	defer cancel()
	for !done() {
		if !sleep.For(ctx, 10*time.Millisecond) {
			t.Fatalf("got nothing within %v, want %s", rigTimeout, what)
		}
	}
}

// TestAnIndexIsBuiltWithoutTheTimeoutOfAnOperation has a server that takes longer to build indexes than one
// operation may take. Then the server says that the indexes are built although they are not. The store must not
// be ready until it can use them.
func TestAnIndexIsBuiltWithoutTheTimeoutOfAnOperation(t *testing.T) {
	p, uri := newPeer(t)
	build, stands := make(chan struct{}), make(chan struct{})
	is := func(done chan struct{}) bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
	p.answers(func(c command) bson.D {
		_, hinted := c.raw.LookupErr("hint")
		switch {
		case c.body[0].Key == "createIndexes":
			<-build
		case hinted == nil && c.body[0].Value == "changes" && !is(stands):
			return refusal(badHint, "hint provided does not correspond to an existing index")
		}
		return prepared(c)
	})
	s, log := openQuickly(t, uri)
	defer func() {
		if !is(build) {
			close(build)
		}
	}()
	expect.Says(t, s.Ready(t.Context()), errIndexes.Error(), "Ready while an index is built")
	asked := p.named("createIndexes")
	if len(asked) != 1 {
		t.Fatalf("got %d commands that create indexes, want 1", len(asked))
	}
	if quorum, _ := asked[0].raw.Lookup("commitQuorum").StringValueOK(); quorum != "majority" {
		t.Errorf("got the commit quorum %q, want majority", quorum)
	}
	if limit, limited := asked[0].raw.Lookup("maxTimeMS").AsInt64OK(); limited && limit < time.Hour.Milliseconds() {
		t.Errorf("got a limit of %d ms, want an hour at least", limit)
	}
	if indexes, err := asked[0].raw.Lookup("indexes").Array().Values(); err != nil || len(indexes) != 5 {
		t.Errorf("got %d indexes in one command, %v; want all five of the assets", len(indexes), err)
	}
	close(build)
	eventually(t, func() bool { return strings.Contains(log.String(), errNoIndex.Error()) }, "a refused hint in the log")
	if err := s.Ready(t.Context()); err == nil || strings.Contains(log.String(), "the store is ready now") {
		t.Errorf("Ready without an index: got %v and the log %s; want an error and no word of being ready", err, log)
	}
	close(stands)
	eventually(t, func() bool { return s.Ready(t.Context()) == nil }, "a ready store")
	eventually(t, func() bool { return strings.Contains(log.String(), "the store is ready now") }, "a line of the log")
}

// TestFaultsOfTheConfigurationEndInOneLine opens stores on servers that refuse them. The log and Ready must say
// in one short line what to check.
func TestFaultsOfTheConfigurationEndInOneLine(t *testing.T) {
	long := strings.Repeat("{ insert: secret }", 50)
	for _, c := range []struct {
		name, user, query string
		refuses           string // name of the command that the server refuses
		code              int32
		want              string
	}{
		{"a wrong password", "u:wrong@", "", "saslStart", 18, "check both, and authSource"},
		{"a missing role", "", "", "insert", unauthorized, "has the role readWrite"},
		{"a wrong database", "", "", "find", unauthorized, "the database peer: check its name"},
		{"a wrong set", "", "?replicaSet=other", "", 0, "the replica set other: check replicaSet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, uri := newPeer(t)
			p.answers(func(asked command) bson.D {
				if asked.body[0].Key == c.refuses {
					return refusal(c.code, "not authorized to execute command "+long)
				}
				return prepared(asked)
			})
			s, log := openQuickly(t, strings.Replace(uri, "mongodb://", "mongodb://"+c.user, 1)+c.query)
			eventually(t, func() bool { return log.String() != "" }, "a line of the log")
			line, _, _ := strings.Cut(log.String(), "\n")
			err := s.Ready(t.Context())
			for _, text := range []string{line, err.Error()} {
				if !strings.Contains(text, c.want) || len(text) > 350 || strings.Contains(text, "secret") {
					t.Errorf("got %q, want one short line with %q", text, c.want)
				}
			}
		})
	}
}

// names is a DNS server. Until the field `peer` is set, it answers each question with a failure.
type names struct {
	mu   sync.Mutex
	peer *net.TCPAddr
}

func (n *names) serve(conn net.PacketConn) {
	question := make([]byte, 512)
	for {
		length, from, err := conn.ReadFrom(question)
		if err != nil {
			return
		}
		if answer := n.answer(question[:length]); answer != nil {
			_, _ = conn.WriteTo(answer, from) // if the answer is lost, the client asks again
		}
	}
}

func (n *names) answer(question []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.Additionals = true, nil
	q := m.Questions[0]
	head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
	switch {
	case n.peer == nil:
		m.RCode = dnsmessage.RCodeServerFailure
	case q.Type == dnsmessage.TypeSRV:
		one := &dnsmessage.SRVResource{Target: dnsmessage.MustNewName("one.registry.test."), Port: uint16(n.peer.Port)}
		m.Answers = []dnsmessage.Resource{{Header: head, Body: one}}
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
	}
	answer, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return answer
}

// TestAStoreWaitsForDNS opens a store with an address of mongodb+srv while DNS fails. The store must become
// ready once DNS answers.
func TestAStoreWaitsForDNS(t *testing.T) {
	conn := expect.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	defer conn.Close()
	dns, before := &names{}, net.DefaultResolver
	go dns.serve(conn)
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = before })
	p, uri := newPeer(t)
	p.answers(prepared)
	s, log := openQuickly(t, "mongodb+srv://db.registry.test/peer?tls=false")
	for name, do := range map[string]func() error{
		"Ready": func() error { return s.Ready(t.Context()) },
		"Get": func() error {
			_, err := s.Get(t.Context(), "a", 1)
			return err
		},
		"Endpoint": func() error {
			_, err := s.Endpoint(t.Context(), "a")
			return err
		},
	} {
		expect.Fails(t, do(), "%s without DNS", name)
	}
	at := expect.Get(net.ResolveTCPAddr("tcp", strings.TrimSuffix(strings.TrimPrefix(uri, "mongodb://"), "/peer")))(t)
	eventually(t, func() bool { return strings.Contains(log.String(), errNotOpened.Error()) }, "a line about DNS in the log")
	dns.mu.Lock()
	dns.peer = at
	dns.mu.Unlock()
	eventually(t, func() bool { return s.Ready(t.Context()) == nil }, "a ready store")
}
