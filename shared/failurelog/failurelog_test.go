package failurelog

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestAnOutageIsAState simulates two outages. In the first outage, a failure comes every 99 ms, so no failure comes
// when the log's timer fires. The log must have the first failure, a line per minute, and the end.
func TestAnOutageIsAState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		withoutTime := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		l := New(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: withoutTime})), "it fails")
		for range 1500 { // two and a half minutes
			l.Failed(errors.New("refused"))
			time.Sleep(99 * time.Millisecond)
		}
		time.Sleep(over)
		l.Failed(errors.New("again"))
		time.Sleep(over)
		synctest.Wait()
		want := `level=WARN msg="it fails" error=refused
level=WARN msg="it fails: it goes on" times=708 seconds=69.994 error=refused
level=WARN msg="it fails: it goes on" times=1415 seconds=139.987 error=refused
level=INFO msg="it fails: no more" times=1500 seconds=148.401
level=WARN msg="it fails" error=again
level=INFO msg="it fails: no more" times=1 seconds=0
`
		if got := text.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

// TestSilenceIsNoEnd simulates an outage of an hour in which a request comes every 30 s. The log
// must show the end only after a call of Worked.
func TestSilenceIsNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		l := NewState(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelInfo})), "it fails")
		defer l.Close()
		l.Worked()
		for range 120 {
			l.Failed(errors.New("refused"))
			time.Sleep(30 * time.Second)
		}
		synctest.Wait() // a timer may have ended at the same moment as the sleep
		if got := bytes.Count(text.Bytes(), []byte("no more")); got > 0 {
			t.Errorf("during the outage: got %s, want no end", text.String())
		}
		if got := bytes.Count(text.Bytes(), []byte(`msg="it fails" `)); got != 1 {
			t.Errorf("got %d beginnings in %s, want 1", got, text.String())
		}
		l.Worked()
		l.Failed(errors.New("not yet"))
		time.Sleep(2 * over)
		l.Worked()
		time.Sleep(over)
		synctest.Wait()
		if got := bytes.Count(text.Bytes(), []byte("no more")); got != 1 {
			t.Errorf("after the outage: got %d ends, want 1:\n%s", got, text.String())
		}
	})
}

// TestNothingIsLoggedAfterClose closes a Log whose timer runs. Nothing may be logged afterwards.
func TestNothingIsLoggedAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		l := New(slog.New(slog.NewTextHandler(&text, nil)), "it fails")
		l.Failed(errors.New("refused"))
		l.Close()
		text.Reset()
		l.Failed(errors.New("again"))
		time.Sleep(2 * over)
		synctest.Wait()
		expect.Equal(t, text.String(), "", "after Close")
	})
}
