// Command registry-parquet writes all assets of a registry into one Parquet file
// (docs/snapshot.md, "Parquet").
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"

	"asset-registry/deploy/registry/client"
)

const usage = `Usage: registry-parquet [--url URL | --lines FILE] OUTPUT

Write all assets into one Parquet file: those of the registry's newest snapshot, or the lines of a file, one asset as
JSON in each, such as registryctl sync export prints.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdin, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "registry-parquet:", err)
		stop()
		os.Exit(1)
	}
}

// options are the command line.
type options struct{ url, lines, output string }

func parse(args []string, help io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("registry-parquet", flag.ContinueOnError)
	flags.SetOutput(help)
	flags.Usage = func() {
		_, _ = io.WriteString(help, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.url, "url", "http://127.0.0.1:8080", "address of the registry")
	flags.StringVar(&o.lines, "lines", "", "file of lines instead; - is the standard input")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() != 1 {
		return o, fmt.Errorf("give the name of the file to write, got %d names", flags.NArg())
	}
	o.output = flags.Arg(0)
	return o, nil
}

func run(ctx context.Context, args []string, in io.Reader, log io.Writer) error {
	o, err := parse(args, log)
	if err != nil {
		return err
	}
	var assets int64
	if o.lines == "" {
		assets, err = fromSnapshot(ctx, o)
	} else {
		assets, err = fromLines(ctx, o, in)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(log, "%s has %d assets.\n", o.output, assets)
	return err
}

// mostTries is how many snapshots are begun, if one is removed while it is read.
const mostTries = 3

const callTimeout = 5 * time.Minute // of one segment, by a slow line

// fromSnapshot writes the newest snapshot of a registry.
func fromSnapshot(ctx context.Context, o options) (assets int64, err error) {
	c, err := client.New(client.Config{URL: o.url, UserAgent: "registry-parquet", Timeout: callTimeout,
		Retry: client.Retry{Tries: 8, Total: time.Minute}})
	if err != nil {
		return 0, err
	}
	for try := 1; ; try++ {
		s, err := c.Snapshot(ctx)
		if client.IsNotFound(err) {
			return 0, fmt.Errorf("%w; without a snapshot use registryctl sync, and the lines that it exports", err)
		}
		if err != nil {
			return 0, err
		}
		properties := map[string]string{"url": o.url, "position": string(s.Position), "date": string(s.Date),
			"checkpoint": s.Checkpoint}
		assets, err = write(o.output, properties, func(add func([]byte) error) error { return segments(ctx, c, s, add) })
		if !client.IsNotFound(err) || try == mostTries {
			return assets, err
		}
	}
}

// write makes the file of the assets that each adds.
func write(name string, properties map[string]string, each func(add func([]byte) error) error) (int64, error) {
	f, err := newFile(name)
	if err != nil {
		return 0, err
	}
	if err := each(f.add); err != nil {
		return 0, errors.Join(err, f.discard())
	}
	return f.assets, f.finish(properties)
}

const maxLines = 64 << 20 // bytes of one segment's lines; the registry makes 4 MiB, or one asset

// segments adds the assets of a snapshot, and checks their number.
func segments(ctx context.Context, c *client.Client, s client.Snapshot, add func([]byte) error) error {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxLines), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer decoder.Close()
	var lines []byte
	for _, segment := range s.Segments {
		packed, err := c.Segment(ctx, segment)
		if err != nil {
			return err
		}
		if lines, err = decoder.DecodeAll(packed, lines[:0]); err != nil {
			return fmt.Errorf("unpack %s: %w", segment.Path, err)
		}
		assets := int64(0)
		for line := range bytes.Lines(lines) {
			if err := add(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
				return err
			}
			assets++
		}
		if assets != segment.Assets {
			return fmt.Errorf("%s has %d assets, want %d", segment.Path, assets, segment.Assets)
		}
	}
	return nil
}

const maxLine = 16 << 20 // bytes; an asset has at most 4 MiB

// fromLines writes the lines of a file.
func fromLines(ctx context.Context, o options, in io.Reader) (assets int64, err error) {
	if o.lines != "-" {
		file, err := os.Open(o.lines)
		if err != nil {
			return 0, err
		}
		defer file.Close() // it was only read
		in = file
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	return write(o.output, nil, func(add func([]byte) error) error {
		for ctx.Err() == nil && lines.Scan() {
			if err := add(lines.Bytes()); err != nil {
				return err
			}
		}
		return errors.Join(ctx.Err(), lines.Err())
	})
}
