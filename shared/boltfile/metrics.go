package boltfile

import (
	"context"
	"os"
	"syscall"

	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/telemetry"
)

// Measure registers metrics of the file and its disk until the function `stop` is called. The
// name says what the file holds.
func (f *File) Measure(meter metric.Meter, name string) (stop func() error, err error) {
	path := f.db.Path() // read now, because a closed file has no path
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
