package mirror

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

func TestACopyIsAsOldAfterARestartAsBefore(t *testing.T) {
	now := time.Now()
	at := func(minutes int) time.Time {
		return now.Add(time.Duration(minutes) * time.Minute).Round(time.Microsecond)
	}
	complete := func(position time.Time) replica.State {
		offset := client.Timestamp(position.Format(time.RFC3339Nano))
		return replica.State{Complete: true, Position: client.Position{Offset: offset}}
	}
	loading := complete(at(-60))
	loading.Loading = true
	for _, c := range []struct {
		name  string
		kept  time.Time // time that keepEqual has stored; zero: nothing was stored
		state replica.State
		want  time.Time // zero: the time when the mirror starts
	}{
		{"an idle registry", at(-5), complete(at(-60)), at(-5)},
		{"changes after the last look", at(-60), complete(at(-5)), at(-5)},
		{"no file", time.Time{}, complete(at(-60)), at(-60)},
		{"no file and no asset", time.Time{}, replica.State{Complete: true}, time.UnixMicro(0)},
		{"a clock that was a minute ahead", at(1), complete(at(-60)), at(-60)},
		{"a clock that was a day ahead", at(24 * 60), complete(at(-60)), at(-60)},
		{"a clock that was ten years ahead", at(10 * 365 * 24 * 60), complete(at(-60)), at(-60)},
		{"a clock that was a minute behind", at(-6), complete(at(-60)), at(-6)},
		{"a clock that was ten years behind", at(-10 * 365 * 24 * 60), complete(at(-60)), at(-60)},
		{"a registry whose clock is ahead", at(-60), complete(at(60)), time.Time{}},
		{"a copy that is not complete", at(-60), loading, time.Time{}},
		{"a new copy", at(-60), replica.State{}, time.Time{}},
	} {
		dir := t.TempDir()
		if !c.kept.IsZero() {
			k := &keeper{mirror: &mirror{config: Config{Data: dir}}}
			k.fresh.Restart(c.kept)
			k.keepEqual()
		}
		before := time.Now()
		got, err := lastEqual(dir, c.state)
		expect.Err(t, err, nil, "%s", c.name)
		expect.ErrorIf(t, c.want.IsZero() && (got.Before(before) || got.After(time.Now())),
			"%s: got %v, want the time of the start, %v", c.name, got, before)
		if off := got.Sub(c.want); !c.want.IsZero() && off.Abs() > time.Microsecond {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAFileThatIsNoTimeDoesNotMakeACopyNew(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(dir, equalFile), []byte("now\n"), 0o600))
	position := client.Position{Offset: "2026-01-02T03:04:05.000006Z"}
	got, err := lastEqual(dir, replica.State{Complete: true, Position: position})
	if want := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC); err != nil || !got.Equal(want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestATimeThatCannotBeStoredIsTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	k := &keeper{mirror: &mirror{config: Config{Data: dir}, unkept: failurelog.New(slog.New(slog.DiscardHandler), "")}}
	at := time.Now().Add(-time.Hour)
	k.fresh.Restart(at)
	k.keepEqual()
	expect.OK(t, os.Mkdir(dir, 0o700))
	k.keepEqual()
	if got, err := lastEqual(dir, replica.State{Complete: true}); err != nil || got.Sub(at).Abs() > time.Microsecond {
		t.Errorf("got %v, %v, want %v", got, err, at)
	}
}
