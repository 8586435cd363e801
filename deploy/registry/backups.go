package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
	"asset-registry/shared/telemetry"
)

// Keep says how many backups a directory keeps. Only days and weeks that have a backup count. So a machine that was
// switched off for a time does not lose old backups.
type Keep struct {
	Days  int `name:"keep-days" default:"14" help:"With --into: the newest backup of each of so many days stays."`
	Weeks int `name:"keep-weeks" default:"8" help:"With --into: the newest backup of each of so many weeks stays."`
}

const (
	// backupForm is the name of a checked backup, as a layout for time.Format in UTC.
	backupForm = "registry-20060102T150405Z.tar"

	// unchecked is the prefix of all files that a run leaves behind if it is killed or finds a fault.
	unchecked = "unchecked"
)

// BackupInto makes a backup in a directory (the argument `into`), and restores it there to check it. After the check it
// gives the backup its name, and removes the backups that are too old for the given rules. It writes to w what it
// checked. If it returns no error, the backup is valid. If the data is damaged, the error wraps ErrDamaged, and the bad
// backup stays as unchecked.tar until the next run. After an error, no other backup is removed.
func BackupInto(ctx context.Context, dir, into string, keep Keep, o BackupOptions, w io.Writer) (err error) {
	if keep.Days < 1 || keep.Weeks < 0 {
		return errors.New("--keep-days must be at least 1, and --keep-weeks at least 0")
	}
	if isWithin(dir, into) {
		return fmt.Errorf("%s is in the data directory: name another directory for backups", into)
	}
	if err := mustBeKnown(dir); err != nil {
		return err
	}
	if err := makeDirectory(into); err != nil {
		return fmt.Errorf("create the directory of backups: %w", err)
	}
	unlock, err := lockBackups(into)
	if err != nil {
		return err
	}
	defer unlock()
	defer func() {
		if err != nil {
			err = errors.Join(err, noteFailure(dir, err))
		}
	}()
	if err := removeUnchecked(into); err != nil {
		return err
	}
	made, restored := filepath.Join(into, unchecked+".tar"), filepath.Join(into, unchecked)
	now := time.Now().UTC().Truncate(time.Second)
	if err := takeWhole(ctx, dir, made, o); err != nil {
		return err
	}
	bucket, err := bucketOf(dir)
	if err != nil {
		return err
	}
	if err := Restore(ctx, made, restored, "", bucket); err != nil {
		return errors.Join(fmt.Errorf("restore the backup to check it: %w", err), os.Remove(made))
	}
	if err := Check(restored, bucket == "", w); err != nil { // bytes that are in a bucket are not in the backup
		return errors.Join(fmt.Errorf("check %s: %w", made, err), os.RemoveAll(restored))
	}
	if err := os.RemoveAll(restored); err != nil {
		return err
	}
	file := filepath.Join(into, now.Format(backupForm))
	if err := durable.Link(made, file); err != nil {
		return err
	}
	kept, removed, err := removeOld(into, keep, now)
	if err != nil {
		return err
	}
	last, err := noteBackup(dir, file, true)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s: %d bytes, checked; backups kept: %d, removed: %d\n", file, last.Bytes, kept, removed)
	return err
}

// isWithin reports whether a path is a directory or lies in it, also by links. The path need not exist.
func isWithin(dir, path string) bool {
	whole, errDir := os.Stat(dir)
	path, errPath := filepath.Abs(path)
	if errDir != nil || errPath != nil {
		return false
	}
	for {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if is, err := os.Stat(path); err == nil && os.SameFile(whole, is) {
			return true
		}
		above := filepath.Dir(path)
		if above == path {
			return false
		}
		path = above
	}
}

// lockBackups makes sure that only one run at a time works in a directory of backups.
func lockBackups(into string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(into, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the directory of backups: %w", err)
	}
	if durable.Hold(f) != nil {
		const says = "the directory of backups %s is locked: another backup is under way, so wait for its end"
		return nil, errors.Join(fmt.Errorf(says, into), f.Close())
	}
	return func() { _ = f.Close() }, nil // nothing was written to the file, so an error of Close does not matter
}

// removeUnchecked removes the files that a former run left behind.
func removeUnchecked(into string) error {
	left, err := filepath.Glob(filepath.Join(into, unchecked+"*"))
	for _, name := range left {
		err = errors.Join(err, os.RemoveAll(name))
	}
	return err
}

// removeOld removes the backups that are too old for the given rules. It never removes other files or the
// backup that was just made, even if the clock was wrong before. A backup of the future, which a wrong clock has made,
// stays until its time has come, and takes no other one's place.
func removeOld(into string, keep Keep, now time.Time) (kept, removed int, err error) {
	entries, err := os.ReadDir(into)
	if err != nil {
		return 0, 0, err
	}
	var made []time.Time
	ahead := 0
	for _, e := range entries {
		at, err := time.Parse(backupForm, e.Name())
		switch {
		case err != nil:
		case at.Sub(now) > clockError:
			ahead++
		default:
			made = append(made, at)
		}
	}
	old := slices.DeleteFunc(keep.old(made), now.Equal)
	for _, at := range old {
		if err := os.Remove(filepath.Join(into, at.Format(backupForm))); err != nil {
			return 0, 0, err
		}
	}
	return len(made) + ahead - len(old), len(old), durable.SyncDirectory(into)
}

// old returns the times of the backups to be removed.
func (k Keep) old(made []time.Time) (old []time.Time) {
	days, weeks := map[string]bool{}, map[string]bool{}
	for _, at := range slices.SortedFunc(slices.Values(made), func(a, b time.Time) int { return b.Compare(a) }) {
		year, week := at.ISOWeek()
		stays := newestOf(days, at.Format(time.DateOnly), k.Days)
		stays = newestOf(weeks, fmt.Sprint(year, " ", week), k.Weeks) || stays
		if !stays {
			old = append(old, at)
		}
	}
	return old
}

// newestOf reports whether a backup is the first one of its span of time (a day or a week), and notes the span. The
// newest backup is passed first, so the first one of a span is the newest. If `most` spans are already noted,
// newestOf returns false.
func newestOf(seen map[string]bool, span string, most int) bool {
	if seen[span] || len(seen) == most {
		return false
	}
	seen[span] = true
	return true
}

// LastBackup is the record of the last backup, which the data directory keeps.
type LastBackup struct {
	File     string    `json:"file,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	Finished time.Time `json:"finished,omitzero"` // zero: no backup was made
	Checked  bool      `json:"checked"`           // the backup was restored and read
	Failed   time.Time `json:"failed,omitzero"`   // end of a later run with --into, if that run failed
	Fault    string    `json:"fault,omitempty"`   // why that run failed
}

// clockError is the largest difference of clocks that has no consequence.
const clockError = time.Hour

// isWrong reports whether a wrong clock has set the end of the backup: it is in the future, and counts as none.
func (b LastBackup) isWrong(now time.Time) bool { return b.Finished.Sub(now) > clockError }

// readBackup reads the record of the last backup. If no backup was made, it returns the zero value.
func readBackup(dir string) (last LastBackup, err error) {
	text, err := os.ReadFile(filepath.Join(dir, backupFile))
	if errors.Is(err, fs.ErrNotExist) {
		return LastBackup{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	return last, errs.In(err, "read when the last backup was made")
}

// noteBackup records a backup in the data directory.
func noteBackup(dir, file string, checked bool) (LastBackup, error) {
	info, err := os.Stat(file)
	if err != nil {
		return LastBackup{}, err
	}
	if file, err = filepath.Abs(file); err != nil {
		return LastBackup{}, err
	}
	last := LastBackup{File: file, Bytes: info.Size(), Finished: time.Now().UTC(), Checked: checked}
	return last, writeBackup(dir, last)
}

// noteFailure records that a run has failed. The record of the last successful backup stays.
func noteFailure(dir string, fault error) error {
	last, err := readBackup(dir)
	if err != nil {
		last = LastBackup{} // writeBackup replaces the broken file
	}
	last.Failed, last.Fault = time.Now().UTC(), fault.Error()
	return writeBackup(dir, last)
}

// writeBackup writes the file that readBackup reads. The registry may run as another user than the command, so the file
// gets the owner of the data.
func writeBackup(dir string, last LastBackup) error {
	text, err := json.Marshal(last)
	if err == nil {
		err = durable.WriteLike(filepath.Join(dir, backupFile), append(text, '\n'), filepath.Join(dir, formatFile))
	}
	return errs.In(err, "note the backup")
}

// measureBackup adds a metric to meter: the time when the last backup ended.
func measureBackup(meter metric.Meter, dir string) {
	telemetry.Must(meter.Float64ObservableGauge("registry.backup.finished.timestamp", metric.WithUnit("s"),
		metric.WithDescription("End of the last complete backup, since the Unix epoch; 0: there is none."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			last, err := readBackup(dir)
			if err != nil {
				return err
			}
			finished := 0.0
			if !last.Finished.IsZero() && !last.isWrong(time.Now()) {
				finished = float64(last.Finished.Unix())
			}
			o.Observe(finished)
			return nil
		})))
}
