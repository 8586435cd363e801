package mirror

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"asset-registry/shared/durable"
	"asset-registry/shared/replica"
)

// keepEqual stores when the copy was last as new as the origin, for the next start.
func (k *keeper) keepEqual() {
	text := k.fresh.Equal().UTC().Format(time.RFC3339Nano) + "\n"
	if text == k.equalKept {
		return
	}
	if err := durable.WriteFile(filepath.Join(k.config.Data, equalFile), []byte(text), 0o600); err != nil {
		k.unkept.Failed(err)
		return
	}
	k.equalKept = text
}

// lastEqual returns a time at which a copy in a directory was certainly as new as the origin.
// Without the file of keepEqual it is the position of the copy, which has all changes up to
// then. For a copy that is not complete it is now: nothing is served before the copy has
// reached the end of the feed.
func lastEqual(dir string, s replica.State) (time.Time, error) {
	now := time.Now()
	if !isComplete(s) {
		return now, nil
	}
	position, err := s.Upto()
	if err != nil {
		return time.Time{}, err
	}
	equal := time.UnixMicro(position)
	text, err := os.ReadFile(filepath.Join(dir, equalFile))
	if err == nil {
		if kept, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(text))); err == nil && kept.After(equal) {
			equal = kept
		}
	}
	if equal.After(now) { // a clock was set back, or that of the registry is ahead
		return now, nil
	}
	return equal, nil
}
