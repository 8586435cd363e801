package registry

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/durable"
	"asset-registry/shared/testing/expect"
)

// TestBackupsThatAreKept checks which backups are kept. A day or a week without a backup does not count.
func TestBackupsThatAreKept(t *testing.T) {
	var daily []string
	for day := time.Date(2026, 11, 27, 2, 30, 0, 0, time.UTC); len(daily) < 30; day = day.AddDate(0, 0, -1) {
		daily = append(daily, day.Format(time.RFC3339))
	}
	for _, c := range []struct {
		name       string
		keep       Keep
		made, kept []string
	}{
		{"none", Keep{1, 1}, nil, nil},
		{"one of a day", Keep{2, 0},
			[]string{"2026-11-27T02:00:00Z", "2026-11-27T23:59:59Z", "2026-11-26T00:00:00Z", "2026-11-25T00:00:00Z"},
			[]string{"2026-11-27T23:59:59Z", "2026-11-26T00:00:00Z"}},
		{"a machine that stood still for years", Keep{2, 1},
			[]string{"2026-11-27T02:00:00Z", "2021-05-01T02:00:00Z"}, []string{"2026-11-27T02:00:00Z", "2021-05-01T02:00:00Z"}},
		{"three days and three weeks, which end on Sundays", Keep{3, 3}, daily,
			[]string{daily[0], daily[1], daily[2], "2026-11-22T02:30:00Z", "2026-11-15T02:30:00Z"}},
		{"a week over the new year", Keep{1, 2},
			[]string{"2027-01-03T01:00:00Z", "2026-12-31T01:00:00Z", "2026-12-27T01:00:00Z", "2026-12-20T01:00:00Z"},
			[]string{"2027-01-03T01:00:00Z", "2026-12-27T01:00:00Z"}},
	} {
		into := t.TempDir()
		names := map[string]string{}
		for _, text := range c.made {
			at := expect.Get(time.Parse(time.RFC3339, text))(t)
			names[text] = at.Format(backupForm)
			write(t, into, names[text])
		}
		foreign := []string{"registry-20200101.tar", "other.tar", "registry-20200101T000000Z.tar.part"}
		for _, name := range foreign {
			write(t, into, name)
		}
		kept, removed, err := removeOld(into, c.keep, time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC))
		expect.ErrorIf(t, err != nil || kept != len(c.kept) || removed != len(c.made)-len(c.kept),
			"%s: got %d kept, %d removed, %v; want %d kept", c.name, kept, removed, err, len(c.kept))
		want := map[string]bool{}
		for _, name := range foreign {
			want[name] = true
		}
		for _, text := range c.kept {
			want[names[text]] = true
		}
		expect.NoDiff(t, cmp.Diff(want, listing(t, into)), "%s: the directory differs", c.name)
	}
}

// TestABackupOfAWrongClockTakesNoPlace adds backups that a wrong clock has made on two days. The backups of the last two
// days must stay, and the age of the last backup is not known if it is in the future.
func TestABackupOfAWrongClockTakesNoPlace(t *testing.T) {
	now := time.Date(2026, 11, 27, 2, 30, 0, 0, time.UTC)
	for _, ahead := range []time.Duration{-10 * year, -day, -time.Minute, time.Minute, day, 10 * year} {
		into := t.TempDir()
		for _, at := range []time.Time{now, now.Add(-day), now.Add(ahead + time.Second), now.Add(ahead + day + time.Second)} {
			write(t, into, at.Format(backupForm))
		}
		if _, _, err := removeOld(into, Keep{2, 1}, now); err != nil {
			t.Fatal(err)
		}
		got := listing(t, into)
		today := slices.ContainsFunc(slices.Collect(maps.Keys(got)), func(name string) bool {
			return strings.HasPrefix(name, now.Add(-day).Format("registry-20060102"))
		})
		expect.ErrorIf(t, !got[now.Format(backupForm)] || !today,
			"a clock that was %v ahead: got %v, want the backups of two days in it", ahead, got)
		var s Status
		s.tellBackup(LastBackup{Finished: now.Add(ahead)}, now)
		found := slices.ContainsFunc(s.Problems, func(p Problem) bool { return p.Alert == "BackupTooOld" })
		expect.Equal(t, found, ahead != -day && ahead.Abs() != time.Minute, "a backup %v ahead: too old", ahead)
	}
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// TestAFailedBackupIsNoted tries to back up a directory that is not a data directory. The failure must be recorded,
// and the record of the last successful backup must stay.
func TestAFailedBackupIsNoted(t *testing.T) {
	dir, into := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	write(t, dir, "a.tar")
	files{formatFile: format, assetsFile: "x"}.write(t, dir)
	expect.Get(noteBackup(dir, filepath.Join(dir, "a.tar"), true))(t)
	expect.Err(t, BackupInto(t.Context(), dir, into, Keep{1, 0}, BackupOptions{}, t.Output()), os.ErrNotExist, "")
	last, err := readBackup(dir)
	if err != nil || !last.Checked || last.Finished.IsZero() || last.Failed.IsZero() || !strings.Contains(last.Fault, secretFile) {
		t.Errorf("got %+v, %v; want the backup before and the fault", last, err)
	}
	if err := BackupInto(t.Context(), dir, into, Keep{}, BackupOptions{}, t.Output()); err == nil ||
		!strings.Contains(err.Error(), "--keep-days") {
		t.Errorf("without a day: got %v, want an error that names --keep-days", err)
	}
}

// TestARunRemovesWhatAKilledOneLeft begins a backup and a restore where killed ones have left their parts. Both fail,
// and nothing is left.
func TestARunRemovesWhatAKilledOneLeft(t *testing.T) {
	dir := t.TempDir()
	text, tar, data := filepath.Join(dir, "text"), filepath.Join(dir, "b.tar"), filepath.Join(dir, "data")
	expect.OK(t, os.WriteFile(text, []byte("no backup"), 0o600),
		os.WriteFile(expect.Get(durable.Temporary(tar))(t), []byte("secret"), 0o600))
	left := expect.Get(durable.Temporary(data))(t)
	expect.OK(t, os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, secretFile), []byte("secret"), 0o600))
	expect.Fails(t, Backup(t.Context(), filepath.Join(dir, "none"), tar, BackupOptions{}), "backup of no directory")
	expect.Fails(t, Restore(t.Context(), text, data, "", ""), "restore of a text")
	entries := expect.Get(os.ReadDir(dir))(t)
	expect.ErrorIf(t, len(entries) != 1, "got %v, want %s alone", entries, text)
}

// TestOneBackupAtATime starts a backup while the lock of the directory is held. The backup must fail.
func TestOneBackupAtATime(t *testing.T) {
	into := t.TempDir()
	unlock, err := lockBackups(into)
	expect.OK(t, err)
	dir := t.TempDir()
	files{formatFile: format, assetsFile: "x"}.write(t, dir)
	err = BackupInto(t.Context(), dir, into, Keep{1, 0}, BackupOptions{}, t.Output())
	expect.ErrorIf(t, err == nil || !strings.Contains(err.Error(), "under way"),
		"got %v, want an error that says that another backup is under way", err)
	unlock()
	if unlock, err = lockBackups(into); err != nil {
		t.Fatalf("after the other has ended: %v", err)
	}
	unlock()
}

func write(t *testing.T, dir, name string) {
	t.Helper()
	expect.OK(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
}

func listing(t *testing.T, dir string) map[string]bool {
	t.Helper()
	entries := expect.Get(os.ReadDir(dir))(t)
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	return names
}
