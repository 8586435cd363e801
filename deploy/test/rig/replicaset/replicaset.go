// Package replicaset runs a replica set of real MongoDB servers on this machine. A test can kill, freeze and command
// each member.
package replicaset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/sleep"
)

const (
	members   = 3
	election  = 2 * time.Second  // how long a primary may be silent before the others elect another one
	starting  = 60 * time.Second // longest start of a set
	answering = 10 * time.Second // longest time of a command
	poll      = 100 * time.Millisecond
)

// Set is a replica set of processes of this machine. Test commands, such as configureFailPoint, are enabled.
type Set struct {
	Members []*Member

	dir    string
	output processes.Output
}

// Member is a server of a Set. Only one goroutine may use it at a time.
type Member struct {
	*processes.Process
	Addr string

	set    *Set
	args   []string
	binary string
	direct *mongo.Client // asks only this member
}

// Start starts a set whose servers run the program mongod. The set has a primary when Start returns.
func Start(ctx context.Context, mongod string) (*Set, error) {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	dir, err := os.MkdirTemp("", "mongoset")
	if err != nil {
		return nil, err
	}
	s := &Set{dir: dir}
	if err := s.start(ctx, mongod); err != nil {
		return nil, errors.Join(fmt.Errorf("start the replica set: %w\n%s", err, s.LastWords()), s.End())
	}
	return s, nil
}

func (s *Set) start(ctx context.Context, mongod string) error {
	config := bson.A{}
	for n := range members {
		m, err := s.add(ctx, mongod, fmt.Sprint("member", n))
		if err != nil {
			return err
		}
		config = append(config, bson.D{{Key: "_id", Value: n}, {Key: "host", Value: m.Addr}})
	}
	initiate := bson.D{{Key: "replSetInitiate", Value: bson.D{
		{Key: "_id", Value: "rs0"}, {Key: "members", Value: config},
		{Key: "settings", Value: bson.D{{Key: "electionTimeoutMillis", Value: election.Milliseconds()}}},
	}}}
	for { // it fails while a member does not answer yet
		err := s.Members[0].Run(ctx, initiate, nil)
		if err == nil {
			break
		}
		if !sleep.For(ctx, poll) {
			return fmt.Errorf("initiate: %w", err)
		}
	}
	_, err := s.Primary(ctx)
	return err
}

// add starts a new member.
func (s *Set) add(ctx context.Context, mongod, name string) (*Member, error) {
	addr, err := porttest.FreeAddr()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	ip, port, _ := strings.Cut(addr, ":")
	m := &Member{Addr: addr, set: s, binary: mongod, args: []string{"--replSet", "rs0", "--bind_ip", ip, "--port", port,
		"--dbpath", dir, "--logpath", dir + ".log", "--logappend", "--wiredTigerCacheSizeGB", "0.25",
		"--oplogSize", "512", "--setParameter", "enableTestCommands=1"}}
	m.direct, err = mongo.Connect(options.Client().ApplyURI("mongodb://" + addr + "/?directConnection=true").
		SetTimeout(answering))
	if err != nil {
		return nil, err
	}
	s.Members = append(s.Members, m)
	return m, m.Restart(ctx)
}

// Restart starts the member after Kill or Stop, with its data. The member accepts connections when Restart returns.
func (m *Member) Restart(ctx context.Context) (err error) {
	m.Process, err = processes.StartAny(ctx, m.Addr, &m.set.output, m.binary, m.args...)
	return err
}

// Run sends a command for the database admin to this member, and decodes the answer into `into`, which may be nil.
func (m *Member) Run(ctx context.Context, command bson.D, into any) error {
	answer := m.direct.Database("admin").RunCommand(ctx, command)
	if into == nil {
		return answer.Err()
	}
	return answer.Decode(into)
}

// URI returns the address of a database of the set. The name may be empty.
func (s *Set) URI(database string) string {
	var hosts []string
	for _, m := range s.Members {
		hosts = append(hosts, m.Addr)
	}
	return "mongodb://" + strings.Join(hosts, ",") + "/" + database + "?replicaSet=rs0"
}

// Primary waits until a member can write for a majority, and returns it. All members must answer.
func (s *Set) Primary(ctx context.Context) (*Member, error) {
	for {
		var errs []error
		for _, m := range s.Members {
			var hello struct{ IsWritablePrimary bool }
			err := m.Run(ctx, bson.D{{Key: "hello", Value: 1}}, &hello)
			if err == nil && hello.IsWritablePrimary {
				return m, nil
			}
			errs = append(errs, err)
		}
		if !sleep.For(ctx, poll) {
			return nil, fmt.Errorf("no primary: %w", errors.Join(append(errs, ctx.Err())...))
		}
	}
}

// LastWords returns the fatal errors and the end of each member's log.
func (s *Set) LastWords() string {
	var all strings.Builder
	all.WriteString(s.output.String())
	logs, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		fmt.Fprintf(&all, "%s:\n", filepath.Base(name))
		for line := range bytes.Lines(text) {
			if bytes.Contains(line, []byte(`"s":"F"`)) {
				all.Write(line)
			}
		}
		all.Write(text[max(0, len(text)-2000):])
	}
	return all.String()
}

// End kills all members and removes their data.
func (s *Set) End() error {
	var errs []error
	for _, m := range s.Members {
		if m.Process != nil {
			errs = append(errs, m.Kill())
		}
		errs = append(errs, m.direct.Disconnect(context.Background()))
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
