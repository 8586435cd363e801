package registryctl

import (
	"testing"
	"time"

	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

func TestTheProgressOfASync(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		done replica.Progress
		want string
	}{
		{"a snapshot", replica.Progress{Assets: 1000, Bytes: 30 * mib, OfAssets: 4000, OfBytes: 120 * mib},
			"1000 assets, 30 MiB, 3.0 MiB/s, 25 % of the snapshot, 30s left"},
		{"the beginning of a snapshot", replica.Progress{OfAssets: 4000, OfBytes: 120 * mib},
			"0 assets, 0 MiB, 0.0 MiB/s, 0 % of the snapshot"},
		{"the feed", replica.Progress{Assets: 7, Bytes: 5 * mib, Position: "2026\x1b"},
			"7 assets, 5 MiB, 0.5 MiB/s, the feed up to 2026?"},
	} {
		t.Run(c.name, func(t *testing.T) { expect.Equal(t, progressLine(c.done, 10*time.Second), c.want, "") })
	}
}

func TestAWrongCommandLineOfSyncMakesNoCopy(t *testing.T) {
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"a key without a verification", "--verify", []string{"sync", "--public-key", "k"}},
		{"a verification without a key", "--public-key", []string{"sync", "--verify"}},
		{"a negative sample", "--verify-sample", []string{"sync", "--verify-sample", "-1"}},
		{"an export without a copy", "no copy", []string{"sync", "export"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir() + "/copy"
			_, err := run(t, append(c.args, dir)...)
			expect.Says(t, err, c.want, "")
			expect.FailsOf(t, "")(replica.OpenExisting(dir))
		})
	}
}
