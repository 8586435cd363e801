package mirror

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"asset-registry/shared/durable"
	"asset-registry/shared/replica"
)

// keepEqual stores the last time at which the copy was as new as the origin. The next start reads it.
func (k *keeper) keepEqual() {
	text := k.fresh.Equal().UTC().Format(time.RFC3339Nano) + "\n"
	if text == k.equalKept {
		return
	}
	if err := durable.WriteFile(filepath.Join(k.config.Data, equalFile), []byte(text)); err != nil {
		k.unkept.Failed(err)
		return
	}
	k.equalKept = text
}

// lastEqual returns a time at which the copy in a directory was certainly as new as the origin. It takes the later
// one of two times: the time that keepEqual stored, and the time of the copy's position, because the copy has all
// changes up to its position. For an incomplete copy it returns the current time, which does no harm: nothing is
// served before the copy has reached the end of the feed.
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
		kept, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(text)))
		if err == nil && kept.After(equal) && !kept.After(now) { // a later time comes from a wrong clock
			equal = kept
		}
	}
	// A later position comes from the registry's clock. The result has a monotonic time: the clock may be set later.
	return now.Add(-max(0, now.Sub(equal))), nil
}
