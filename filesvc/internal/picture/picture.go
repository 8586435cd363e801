// Package picture makes small versions of pictures (docs/files.md, "Pictures"). A child process
// decodes them, because a picture that somebody has made for the purpose can take much more
// memory and time than its size tells.
package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"asset-registry/filesvc/internal/file"
)

const (
	work      = 10 * time.Second // of a child, in time of a processor
	within    = time.Minute      // until a child has ended; it had no processor if it lasts so long
	maxMemory = 256 << 20        // of a child, in bytes
	maxDrawn  = 4 << 20          // bytes that a child answers
	maxPixels = 16e6             // of a picture
	maxHead   = 8 << 20          // bytes in which the size of a picture must come
	quality   = 80               // of a JPEG
)

// Argument is the argument of a program that makes it a child. No help text names it.
const Argument = "draw-a-picture"

// Exit codes of a child. Go itself exits with 2, without memory too.
const (
	refused = 1 // there is no picture, or it is too large
	unfit   = 3 // the child has no bounds
)

// Drawer draws in child processes. It is safe for concurrent use.
type Drawer struct {
	Command []string      // the program and its arguments, one of them Argument; Child answers it
	Within  time.Duration // 0: a minute
}

var _ file.Drawer = Drawer{}

// Draw implements file.Drawer.
func (d Drawer) Draw(ctx context.Context, from file.Blob) (file.Drawn, error) {
	limit := d.Within
	if limit == 0 {
		limit = within
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(timed, d.Command[0], d.Command[1:]...)
	cmd.Env, cmd.Dir = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}, "/" // it has no secrets of the parent
	in, out := &source{Reader: from}, &bounded{}
	cmd.Stdin, cmd.Stdout, cmd.WaitDelay = in, out, time.Second
	if f, isFile := from.(*os.File); isFile {
		cmd.Stdin = f // the child reads it by itself
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case timed.Err() != nil:
		return file.Drawn{}, fmt.Errorf("draw a picture: %w", timed.Err())
	case in.hasFailed.Load():
		return file.Drawn{}, errors.New("draw a picture: its bytes could not be read")
	case out.isFull, errors.As(err, &exit) && exit.ExitCode() != unfit:
		return file.Drawn{}, fmt.Errorf("%w: %w", file.ErrNoPicture, err)
	case err != nil:
		return file.Drawn{}, fmt.Errorf("draw a picture: %w", err)
	}
	return out.parts()
}

// source is the bytes of a picture. It notes that they could not be read: the child takes that for
// their end.
type source struct {
	io.Reader
	hasFailed atomic.Bool
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.hasFailed.Store(true)
	}
	return n, err
}

// bounded keeps what a child answers. It ends a child that answers too much.
type bounded struct {
	text   bytes.Buffer
	isFull bool
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxDrawn {
		b.isFull = true
		return 0, io.ErrShortWrite
	}
	return b.text.Write(p)
}

// parts returns the two pictures of an answer: the length of the first one, and both.
func (b *bounded) parts() (file.Drawn, error) {
	text := b.text.Bytes()
	const head = 4
	if len(text) < head || int64(len(text)-head) < int64(binary.BigEndian.Uint32(text)) {
		return file.Drawn{}, errors.New("draw a picture: the child's answer is damaged")
	}
	end := head + int(binary.BigEndian.Uint32(text))
	return file.Drawn{Small: text[head:end], Large: text[end:]}, nil
}

// Child draws the picture of in, and writes the answer for Draw to out. It returns the exit code
// of the process. It bounds the whole process, so the process can do nothing else.
func Child(in io.Reader, out io.Writer) int {
	if err := bound(work); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return unfit
	}
	small, large, err := draw(in)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return refused
	}
	answer := append(binary.BigEndian.AppendUint32(nil, uint32(len(small))), small...)
	if _, err := out.Write(append(answer, large...)); err != nil {
		return refused
	}
	return 0
}
