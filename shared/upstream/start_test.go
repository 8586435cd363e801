package upstream

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestASilentServerIsNotReady checks a server that takes the connection and says nothing.
func TestASilentServerIsNotReady(t *testing.T) {
	t.Parallel()
	silent := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	p := &Pool{name: "filesvc", log: slog.New(slog.DiscardHandler)}
	_, port, _ := net.SplitHostPort(silent.Addr().String())
	expect.Says(t, newServer(p, source{port: port}, "127.0.0.1").check(t.Context()), "it did not answer within 1s", "")
}

// TestAServerThatStartsIsNoWarning tells the results of checks, one a second. A server that has answered before is told
// at once, one that may still start only after ten seconds, and each once.
func TestAServerThatStartsIsNoWarning(t *testing.T) {
	for name, c := range map[string]struct {
		checks     string // one letter a second: + ready, - not
		away, back int    // lines
	}{
		"at once":              {"++++", 0, 0},
		"after a start":        {"-----++", 0, 0},
		"after a long start":   {"-------------++", 1, 1},
		"away later":           {"-++--+-", 2, 1},
		"away for a long time": {"+---------------+", 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			p := &Pool{name: "filesvc", log: slog.New(slog.NewJSONHandler(&log, nil))}
			s := newServer(p, source{port: "1"}, "127.0.0.1")
			for _, check := range c.checks {
				var err error
				if check == '-' {
					err = errors.New("connection refused")
				}
				p.noteReady(s, err)
				expect.Equal(t, s.ready.Load(), err == nil, "%s: ready", name)
				time.Sleep(time.Second)
			}
			const of = `"upstream":"filesvc","server":"127.0.0.1:1"`
			expect.Equal(t, strings.Count(log.String(), `"msg":"a server is not ready",`+of), c.away, "%s: lines of its absence", name)
			expect.Equal(t, strings.Count(log.String(), `"msg":"a server is ready again",`+of), c.back, "%s: lines of its return", name)
		})
	}
}
