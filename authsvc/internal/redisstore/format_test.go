package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// TestARedisOfAnotherFormatIsRefused tries the second format and a later one. The refusal must be one line, and name
// the version that reads the data.
func TestARedisOfAnotherFormatIsRefused(t *testing.T) {
	for _, c := range []struct{ name, key, value, found string }{
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

// TestARedisWithoutDataGetsTheFormat fills Redis only with data of other programs. The check must then write the
// format. A check that its caller has left tells of no key.
func TestARedisWithoutDataGetsTheFormat(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	expect.OK(t, s.client.MSet(t.Context(), "other", "1", backupKey, "1", "registry:limits:{broker}", "1").Err())
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
// command; the first command has the number 1.
type failing struct {
	at, count int
	end       func() error
}

func (f *failing) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
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
	const write = 2 // the number of the command that writes, after GET
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
