package boltfile

import (
	"context"
	"os"
	"syscall"

	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/telemetry"
)

// Measure tells a meter of the file and of the disk that it lies on, when it
// asks, until silence. The name says what the file keeps.
func (f *File) Measure(meter metric.Meter, name string) (silence func() error, err error) {
	path := f.db.Path() // which a closed one has not
	return telemetry.MeasureStore(meter, name, func(context.Context) (use telemetry.StoreUse) {
		if info, err := os.Stat(path); err == nil {
			use.Size = info.Size()
		}
		var disk syscall.Statfs_t
		if err := syscall.Statfs(path, &disk); err == nil {
			use.DiskFree = int64(disk.Bavail) * int64(disk.Bsize)
			use.DiskSize = int64(disk.Blocks) * int64(disk.Bsize)
		}
		return use
	})
}
