package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/storetest"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/authapi"
	"asset-registry/shared/dataformat"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// TestARedisOfAnotherFormatIsRefused tries data in the formats from before the first release, and in a later
// format. The refusal must be one line, and name the version that reads the data.
func TestARedisOfAnotherFormatIsRefused(t *testing.T) {
	for _, c := range []struct{ name, key, value, found string }{
		{"keys of commands apart, without a format", "registry:key-name:{acme-1}", "hash", noFormat},
		{"tokens without a format", recordKey("a"), "text", noFormat},
		{"keys without a format", keysKey, "text", noFormat},
		{"the number of the second format", formatKey, "2", "2"},
		{"a later format", formatKey, "asset-registry tokens 4", "asset-registry tokens 4"},
	} {
		s := open(t, redistest.Start(t).URL())
		expect.OK(t, s.client.Set(t.Context(), c.key, c.value, 0).Err())
		_, found := s.FindSecret(t.Context(), authapi.Hash("one"))
		_, saved := s.Save(t.Context(), token.Record{AssetID: "b", Generation: 1})
		want := fmt.Sprintf("%q, not %q: the commit %s ", c.found, format, dataformat.UpgradesCommit)
		for does, err := range map[string]error{
			"ready": s.Ready(t.Context()), "find a key": found, "save tokens": saved,
			"create a transfer": s.CreateTransfer(t.Context(), token.Transfer{ID: "t"}),
		} {
			text := fmt.Sprint(err)
			if errors.Is(err, apikey.ErrNotFound) || !strings.Contains(text, want) || strings.Contains(text, "\n") {
				t.Errorf("%s, %s: got %v, want one line with %q", c.name, does, err, want)
			}
		}
		if keys, err := s.client.Keys(t.Context(), "*").Result(); err != nil || len(keys) != 1 {
			t.Errorf("%s: got keys %v, %v; want only the one that was there", c.name, keys, err)
		}
	}
}

// TestARedisWithoutDataGetsTheFormat fills Redis only with data of other programs. There are more names than
// one step of the check reads. The check must then write the format.
func TestARedisWithoutDataGetsTheFormat(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	var others []any
	for i := range 2*scanStep + 1 {
		others = append(others, fmt.Sprint("other:{", i, "}"), "1")
	}
	others = append(others, backupKey, "1", "registry:limits:{broker}", "1")
	expect.OK(t, s.client.MSet(t.Context(), others...).Err())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.FindSecret(ctx, authapi.Hash("one")); err == nil || errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("a canceled check: got %v, want an error other than ErrNotFound", err)
	}
	for _, s := range []*Store{s, open(t, server.URL())} {
		expect.Err(t, s.Ready(t.Context()), nil, "ready")
		expect.Value(t, format, "")(s.client.Get(t.Context(), formatKey).Result())
	}
}

// failing is a hook that calls the function `end` in place of one command. The field `at` is the number of this
// command; the first command has the number 1. The hook also notes the cursors of all scans.
type failing struct {
	at, count int
	end       func() error
	cursors   []string
}

func (f *failing) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "scan" {
			f.cursors = append(f.cursors, fmt.Sprint(cmd.Args()[1]))
		}
		if f.count++; f.count == f.at {
			cmd.SetErr(f.end())
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if f.count++; f.count == f.at {
			return f.end()
		}
		return next(ctx, cmds)
	}
}

// join adds the hook to clients that are already connected, with one connection for commands and one for
// pipelines. So the hook does not see the commands with which a new connection begins.
func join(t *testing.T, hook redis.Hook, clients ...*redis.Client) {
	t.Helper()
	for _, client := range clients {
		ping := func(p redis.Pipeliner) error { return p.Ping(t.Context()).Err() }
		_, err := client.Pipelined(t.Context(), ping)
		expect.OK(t, errors.Join(err, client.Ping(t.Context()).Err()))
		client.AddHook(hook)
	}
}

var errFailing = errors.New("the command failed")

// TestACheckOfTheFormatLooksAtAllKeys stops a check of the keys in its second step, because the caller leaves
// or the server fails. If the caller left, the next check must continue at this step. If the server failed, the
// next check must begin again, because another server may answer it.
func TestACheckOfTheFormatLooksAtAllKeys(t *testing.T) {
	server := redistest.Start(t)
	var others []any
	for i := range 4 * scanStep {
		others = append(others, fmt.Sprint("other:", i), "1")
	}
	expect.OK(t, open(t, server.URL()).client.MSet(t.Context(), others...).Err())
	for _, leaves := range []bool{true, false} {
		s := open(t, server.URL())
		expect.OK(t, s.client.Del(t.Context(), formatKey).Err())
		ctx, leave := context.WithCancel(t.Context())
		hook := &failing{at: 3, end: func() error { // the second SCAN, after GET and the first SCAN
			if leaves {
				leave()
			}
			return errFailing
		}}
		join(t, hook, s.client)
		expect.Err(t, s.format.run(ctx, s.client), errFailing, "caller leaves: %t", leaves)
		leave()
		first := hook.cursors
		hook.cursors = nil
		expect.Err(t, s.format.run(t.Context(), s.client), nil, "caller leaves: %t: the next check", leaves)
		expect.FatalIf(t, len(first) != 2 || first[0] != "0" || first[1] == "0", "got the steps %q, want two", first)
		want := first[0]
		if leaves {
			want = first[1]
		}
		if hook.cursors[0] != want || len(slices.Compact(hook.cursors)) < 3 {
			t.Errorf("caller leaves: %t: got the steps %q, want three or more from %s", leaves, hook.cursors, want)
		}
	}
}

// TestEachFailureOfRedisIsTold repeats each call. The first time, the first command of the call fails. The second
// time, its second command fails, and so on. The call must return this failure, and no error about the data in Redis.
func TestEachFailureOfRedisIsTold(t *testing.T) {
	server := redistest.Start(t)
	restore := storetest.Call{Name: "RestoreTransfer", Do: func(ctx context.Context, s storetest.Store) error {
		claim := token.Claim{AssetID: "asset", Generation: 1}
		return s.(*Store).RestoreTransfer(ctx, token.Transfer{ID: "restored", Claim: claim})
	}}
	for _, call := range append(storetest.Calls(), restore) {
		for at := 1; ; at++ {
			server.Flush(t)
			storetest.Fill(t, open(t, server.URL()))
			s := open(t, server.URL())
			hook := &failing{at: at, end: func() error { return errFailing }}
			join(t, hook, s.client, s.watcher)
			err := call.Do(t.Context(), s)
			if hook.count < at { // each command of the call has failed once
				if err != nil || at == 1 {
					t.Errorf("%s: got %v after %d commands, want no error after one or more", call.Name, err, hook.count)
				}
				break
			}
			expect.Err(t, err, errFailing, "%s, command %d", call.Name, at)
		}
	}
}

// TestAnEmptyRedisGetsOneFormat lets a check fail at each of its commands. The next check must then succeed. In the
// last case, another program writes a different format just before the check writes. The check must then refuse that
// format.
func TestAnEmptyRedisGetsOneFormat(t *testing.T) {
	server := redistest.Start(t)
	const write = 3 // the number of the command that writes, after GET and SCAN
	for at := 1; at <= write+1; at++ {
		server.Flush(t)
		s := open(t, server.URL())
		join(t, &failing{at: at, end: func() error { return errFailing }}, s.client)
		expect.Err(t, s.format.run(t.Context(), s.client), errFailing, "command %d", at)
		expect.Err(t, s.format.run(t.Context(), s.client), nil, "command %d, the next check", at)
	}
	server.Flush(t)
	s, other := open(t, server.URL()), open(t, server.URL())
	join(t, &failing{at: write, end: func() error {
		return other.client.Set(t.Context(), formatKey, "asset-registry tokens 4", 0).Err()
	}}, s.client)
	if err := s.format.run(t.Context(), s.client); !strings.Contains(fmt.Sprint(err), "tokens 4") {
		t.Errorf("another program was faster: got %v, want a refusal of its format", err)
	}
}
