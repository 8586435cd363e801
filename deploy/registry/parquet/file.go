package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
)

// Bounds of a row group, which is held in memory until it is written.
const (
	groupBytes = 16 << 20 // of JSON
	groupRows  = 50_000
)

// file is a Parquet file that is written. It has its name once it is whole.
type file struct {
	name   string
	out    *os.File
	writer *parquet.GenericWriter[row]
	rows   []row // 1, reused

	assets      int64
	group, size int // rows and bytes of JSON of the row group
}

func newFile(name string) (*file, error) {
	out, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".new")
	if err != nil {
		return nil, err
	}
	return &file{name: name, out: out, rows: make([]row, 1), writer: parquet.NewGenericWriter[row](out,
		parquet.Compression(&parquet.Zstd), parquet.SkipPageBounds("json"), parquet.SkipPageBounds("description"),
		parquet.CreatedBy("asset-registry", "1", ""))}, nil
}

// add writes an asset.
func (f *file) add(text []byte) (err error) {
	if f.rows[0], err = rowOf(text); err != nil {
		return err
	}
	if _, err := f.writer.Write(f.rows); err != nil {
		return err
	}
	f.assets++
	f.group++
	if f.size += len(text); f.size < groupBytes && f.group < groupRows {
		return nil
	}
	f.group, f.size = 0, 0
	return f.writer.Flush()
}

// finish completes the file. The properties become metadata of the file.
func (f *file) finish(properties map[string]string) error {
	for name, value := range properties {
		f.writer.SetKeyValueMetadata("registry."+name, value)
	}
	if err := errors.Join(f.writer.Close(), f.out.Sync(), f.out.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", f.name, err), os.Remove(f.out.Name()))
	}
	return os.Rename(f.out.Name(), f.name)
}

// discard removes an unfinished file.
func (f *file) discard() error { return errors.Join(f.out.Close(), os.Remove(f.out.Name())) }
