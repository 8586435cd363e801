package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"asset-registry/deploy/registry/client"
)

func TestDecimals(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{"240.5", "000000000000000000000000 0024b288"},
		{"0", "000000000000000000000000 00000000"},
		{"0.0001", "000000000000000000000000 00000001"},
		{"-0.0001", "ffffffffffffffffffffffff ffffffff"},
		{"-1", "ffffffffffffffffffffffff ffffd8f0"},
		{"999999999999999999999999999999.9999", "0001ed09bead87c0378d8e63 ffffffff"},
	} {
		got, err := decimalOf(client.Decimal(c.sent))
		if want := strings.ReplaceAll(c.want, " ", ""); err != nil || hex.EncodeToString(got) != want {
			t.Errorf("%s: got %x, %v, want %s", c.sent, got, err, want)
		}
	}
	if got, err := decimalOf(""); got != nil || err != nil {
		t.Errorf("no decimal: got %x, %v, want nil", got, err)
	}
	for _, bad := range []client.Decimal{"1.00001", "x", "1e60"} {
		if got, err := decimalOf(bad); err == nil {
			t.Errorf("%s: got %x, want an error", bad, got)
		}
	}
}

// asset returns an asset of about size bytes.
func asset(i, size int) string {
	return fmt.Sprintf(`{"id":"%032x","dateModified":"2026-11-23T05:37:39.%06d+00:00","description":"%s"}`,
		i, i, strings.Repeat("x", size))
}

func TestRowGroupsAreBounded(t *testing.T) {
	const assets, size = 40, 1 << 20
	name := filepath.Join(t.TempDir(), "assets.parquet")
	lines, write := io.Pipe()
	go func() {
		for i := range assets {
			fmt.Fprintln(write, asset(i, size))
		}
		write.Close()
	}()
	if err := run(t.Context(), []string{"--lines", "-", name}, lines, io.Discard); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	read, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	for i, group := range read.RowGroups() {
		rows += group.NumRows()
		if most := int64(groupBytes>>20) + 1; group.NumRows() > most {
			t.Errorf("row group %d: got %d rows of 1 MiB, want at most %d", i, group.NumRows(), most)
		}
	}
	if rows != assets {
		t.Errorf("got %d rows, want %d", rows, assets)
	}
}

func TestAFailureLeavesTheOldFile(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		lines string
	}{
		{"a line is no JSON", t.Context(), asset(1, 10) + "\n{\n"},
		{"an asset has no id", t.Context(), `{"dateModified":"2026-11-23T05:37:39.714729+00:00"}`},
		{"an asset has no time", t.Context(), `{"id":"a"}`},
		{"a quantity is too long", t.Context(), strings.Replace(asset(1, 1), `"desc`, `"items":[{"quantity":0.00001}],"desc`, 1)},
		{"the program is stopped", stopped, asset(1, 10)},
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, "assets.parquet")
		if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(c.ctx, []string{"--lines", "-", name}, strings.NewReader(c.lines), io.Discard); err == nil {
			t.Errorf("%s: got no error", c.name)
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, []byte("old")) {
			t.Errorf("%s: got the file %.20q, %v, want the old one", c.name, got, err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("%s: got %d files, %v, want only the old one", c.name, len(files), err)
		}
	}
}

func TestTheCommandLine(t *testing.T) {
	for _, args := range [][]string{nil, {"a", "b"}, {"--unknown", "a"}, {"--url", "ftp://x", "a"}} {
		var help bytes.Buffer
		if err := run(t.Context(), args, strings.NewReader(""), &help); err == nil {
			t.Errorf("%v: got no error", args)
		}
	}
}
