// Command mongoset runs a command beside a replica set of three real MongoDB servers: mongoset COMMAND [ARGUMENT...]
//
// The variable MONGOD names the program of the servers. The command finds the set in MONGODB_URI. The set ends with the
// command, and its data are removed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"asset-registry/shared/porttest"
	"asset-registry/shared/sleep"
)

const (
	members  = 3
	election = 2 * time.Second  // how long a primary may be silent before the others elect another one
	starting = 60 * time.Second // longest start of a set
	ending   = 20 * time.Second // longest end of a member, then it is killed
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Getenv("MONGOD"), os.Args[1:])
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(max(1, exit.ExitCode()))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mongoset:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, mongod string, command []string) (err error) {
	if len(command) == 0 {
		return errors.New("usage: mongoset COMMAND [ARGUMENT...]")
	}
	if mongod == "" {
		return errors.New("set MONGOD to the program of a MongoDB server")
	}
	dir, err := os.MkdirTemp("", "mongoset")
	if err != nil {
		return err
	}
	s := &set{mongod: mongod, dir: dir}
	defer func() { err = errors.Join(err, s.end()) }()
	uri, err := s.start(ctx)
	if err != nil {
		return fmt.Errorf("start the replica set: %w\n%s", err, s.lastWords())
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "MONGODB_URI="+uri)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, ending
	return cmd.Run()
}

// set is a replica set of processes of this machine.
type set struct {
	mongod, dir string
	running     []*exec.Cmd
}

// start starts the members, and returns the address of the set once it has a primary.
func (s *set) start(ctx context.Context) (uri string, err error) {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	var hosts []string
	config := bson.A{}
	for n := range members {
		host, err := s.startMember(fmt.Sprint("member", n))
		if err != nil {
			return "", err
		}
		hosts = append(hosts, host)
		config = append(config, bson.D{{Key: "_id", Value: n}, {Key: "host", Value: host}})
	}
	first, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + hosts[0] + "/?directConnection=true"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, first.Disconnect(context.WithoutCancel(ctx))) }()
	initiate := bson.D{{Key: "replSetInitiate", Value: bson.D{
		{Key: "_id", Value: "rs0"}, {Key: "members", Value: config},
		{Key: "settings", Value: bson.D{{Key: "electionTimeoutMillis", Value: election.Milliseconds()}}},
	}}}
	for { // it fails until all members listen
		err := first.Database("admin").RunCommand(ctx, initiate).Err()
		if err == nil {
			break
		}
		if !sleep.For(ctx, 100*time.Millisecond) {
			return "", fmt.Errorf("initiate: %w", err)
		}
	}
	for {
		var hello struct{ Primary string }
		err := first.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello)
		if err == nil && hello.Primary != "" {
			return "mongodb://" + strings.Join(hosts, ",") + "/?replicaSet=rs0", nil
		}
		if !sleep.For(ctx, 100*time.Millisecond) {
			return "", fmt.Errorf("no primary: %w", errors.Join(err, ctx.Err()))
		}
	}
}

func (s *set) startMember(name string) (host string, err error) {
	host, err = porttest.FreeAddr()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(s.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	ip, port, _ := strings.Cut(host, ":")
	cmd := exec.Command(s.mongod, "--replSet", "rs0", "--bind_ip", ip, "--port", port,
		"--dbpath", dir, "--logpath", dir+".log", "--wiredTigerCacheSizeGB", "0.25",
		"--oplogSize", "512", "--setParameter", "enableTestCommands=1")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		return "", err
	}
	s.running = append(s.running, cmd)
	return host, nil
}

// lastWords returns the end of each member's log.
func (s *set) lastWords() string {
	var all strings.Builder
	logs, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		fmt.Fprintf(&all, "%s:\n%s\n", filepath.Base(name), text[max(0, len(text)-2000):])
	}
	return all.String()
}

// end ends all members and removes their data.
func (s *set) end() error {
	for _, member := range s.running {
		_ = member.Process.Signal(syscall.SIGTERM) // a member that has ended needs no signal
	}
	for _, member := range s.running {
		late := time.AfterFunc(ending, func() { _ = member.Process.Kill() })
		_ = member.Wait() // it was told to end
		late.Stop()
	}
	return os.RemoveAll(s.dir)
}
