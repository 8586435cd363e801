package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/filesvc"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/fault"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// TestAMirrorIsReadyOnlyWithoutDoubts has a mirror of a copy that is up to date, and gives it each reason not to be
// ready. After the reason has gone, the mirror must be ready again.
func TestAMirrorIsReadyOnlyWithoutDoubts(t *testing.T) {
	discard := slog.New(slog.DiscardHandler)
	files := expect.Get(filesvc.OpenCopies(filesvc.CopiesConfig{Dir: t.TempDir(), Of: "http://registry.example"}))(t)
	defer files.Close()
	for _, c := range []struct {
		name       string
		come, gone func(*keeper)
		says       string
	}{
		{"a log with a wrong signature",
			func(k *keeper) { k.heard(fmt.Errorf("look: %w", translog.ErrSignature)) }, func(k *keeper) { k.heard(nil) },
			"not signed as this mirror demands"},
		{"a log with too few witnesses",
			func(k *keeper) { k.heard(translog.ErrQuorum) }, func(k *keeper) { k.heard(nil) }, "not signed as this mirror demands"},
		{"a doubt about the log",
			func(k *keeper) { k.doubts.add(aboutLog, translog.ErrConsistency) }, func(k *keeper) { k.heard(nil) },
			"shows other data or another log"},
		{"a copy that is too old",
			func(k *keeper) { k.fresh.Restart(time.Now().Add(-2 * time.Hour)) },
			func(k *keeper) { k.fresh.Restart(time.Now().Add(time.Minute)) }, "behind the registry"},
		{"removals of files that were not read for long",
			func(k *keeper) { k.files, k.config.MaxBehind = files, time.Nanosecond },
			func(k *keeper) { k.config.MaxBehind = time.Hour }, "which files were removed"},
		{"an asset that differs from the log",
			func(k *keeper) { k.checker.Load().note(replica.Entry{ID: known}, differs) },
			func(k *keeper) { k.checker.Load().note(replica.Entry{ID: known}, matches) }, "differ from the public log (1 so far)"},
		{"assets that the registry does not prove",
			func(k *keeper) {
				for range mostRefused {
					k.checker.Load().note(replica.Entry{ID: known}, refused)
				}
			},
			func(k *keeper) { k.checker.Load().note(replica.Entry{ID: known}, matches) }, "does not prove its assets"},
	} {
		k := &keeper{
			mirror:   &mirror{config: Config{MaxBehind: time.Hour}, log: discard, failures: failurelog.New(discard, "")},
			compared: make(chan struct{}),
		}
		k.fresh.Restart(time.Now().Add(time.Minute)) // the copy does not get old during the test
		k.checker.Store(&checker{log: discard})
		expect.Must(t, k.ready(t.Context()), "%s: before it", c.name)
		c.come(k)
		if err := k.ready(t.Context()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want a fault of kind Unavailable with %q", c.name, err, c.says)
		}
		c.gone(k)
		expect.Err(t, k.ready(t.Context()), nil, "%s: after it", c.name)
	}
}

// TestAMirrorThatDemandsALogServesNothingWithout tells mirrors that their copies match the log. A mirror that
// demands a signed log may serve a copy only after it knows that the registry has a log, or if it has served the
// copy before.
func TestAMirrorThatDemandsALogServesNothingWithout(t *testing.T) {
	key := expect.Get(translog.GenerateKey(translog.ForLog, "registry.example/log"))(t)
	policy := expect.Get(translog.LogPolicy(key.Public()))(t)
	for _, c := range []struct {
		name                string
		demands, had, serve bool
	}{
		{"no demand", false, false, true},
		{"a demand", true, false, false},
		{"a demand, and a copy that was served", true, true, true},
	} {
		k := &keeper{mirror: &mirror{config: Config{Data: t.TempDir()}}, compared: make(chan struct{})}
		if c.demands {
			k.policy = policy
		}
		if c.had {
			expect.OK(t, k.noteServed())
		}
		k.heard(nil)
		serve := false
		select {
		case <-k.compared:
			serve = true
		default:
		}
		expect.ErrorIf(t, serve != c.serve, "%s: got served: %t, want %t", c.name, serve, c.serve)
	}
}

// answers is a registry with an empty feed. It answers each request with the next id of the list `ids`. After the
// last id, it calls the function `end`, which ends the test.
type answers struct {
	ids []string
	end func()
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	http.SetCookie(w, &http.Cookie{Name: "SERVER_ID", Value: a.ids[0]})
	_, _ = io.WriteString(w, `{"data":[]}`)
	if a.ids = a.ids[1:]; len(a.ids) == 0 {
		a.end()
	}
	return w.Result(), nil
}

// TestOneAnswerWithOtherDataVoidsNoCopy asks a registry for the end of its feed. The copy is void only after three
// answers in a row that belong to other data.
func TestOneAnswerWithOtherDataVoidsNoCopy(t *testing.T) {
	for _, c := range []struct {
		name   string
		ids    []string
		isVoid bool
	}{
		{"two answers with other data", []string{"other", "other", "copied", "other", "other", "copied"}, false},
		{"three answers with other data", []string{"other", "other", "other", "copied"}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			m := &mirror{config: Config{Data: t.TempDir(), Of: "http://registry.example"}, transport: &answers{c.ids, end}}
			k := &keeper{mirror: m}
			k.serverID.Store("copied")
			if err := k.ask(ctx); errors.Is(err, replica.ErrOtherData) != c.isVoid {
				t.Errorf("%s: got %v, want ErrOtherData: %t", c.name, err, c.isVoid)
			}
		})
	}
}
