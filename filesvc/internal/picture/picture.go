// Package picture makes small versions of pictures (docs/files.md, "Pictures"). A child process decodes them,
// because a picture that was made with bad intent can take much more memory and time than its size suggests.
package picture

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync/atomic"
	"time"

	"asset-registry/filesvc/internal/file"
)

const (
	work      = 10 * time.Second // processor time of a child
	within    = time.Minute      // time for a child, including the time in which it waits for a processor
	maxMemory = 256 << 20        // memory of a child, in bytes
	grace     = 5                // seconds of a processor in which a child that has used up its time can say so
	maxDrawn  = 4 << 20          // bytes of a child's answer
	maxSaid   = 4 << 10          // bytes of a child's error that are kept
	maxPixels = 16e6             // pixels of a picture
	maxHead   = 8 << 20          // a file must name the size of its picture within this number of bytes
	quality   = 80               // quality of the JPEGs, from 1 to 100
)

// Argument is the argument with which a program runs as a child. No help text mentions it.
const Argument = "draw-a-picture"

// Exit codes of a child.
const (
	refused = 1 // the file is not a picture, or the picture is too large, or takes too long
	crashed = 2 // Go itself exits so; ownFault tells why
	unfit   = 3 // the limits of the child could not be set, or its files could not be read or written
)

// ownFault matches the error of a child that exits with crashed because of its picture: the decoder has a fault, or
// takes more memory than the child may have. Go also exits with crashed after some signals, and if it gets no thread.
var ownFault = regexp.MustCompile(
	`(?m)^(panic: |(fatal error|runtime): .*(out of memory|cannot allocate memory|stack overflow))`)

// Drawer draws in child processes. It is safe for concurrent use.
type Drawer struct {
	Command []string      // a program that calls Child, and its arguments; one argument must be Argument
	Within  time.Duration // how long a child may run; 0: a minute
}

var _ file.Drawer = Drawer{}

func (d Drawer) Draw(ctx context.Context, from file.Blob) (file.Drawn, error) {
	limit := cmp.Or(d.Within, within)
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(timed, d.Command[0], d.Command[1:]...)
	cmd.Env, cmd.Dir = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}, "/" // no secrets of the parent
	in, out, said := &source{Reader: from}, &bounded{}, &head{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = in, out, said, time.Second
	if f, isFile := from.(*os.File); isFile {
		cmd.Stdin = f // the child reads the file directly
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case timed.Err() != nil:
		return file.Drawn{}, fmt.Errorf("draw a picture: %w", timed.Err())
	case in.hasFailed.Load():
		return file.Drawn{}, errors.New("draw a picture: its bytes could not be read")
	case out.isFull, errors.As(err, &exit) && isVerdict(exit.ExitCode(), said.text):
		return file.Drawn{}, fmt.Errorf("%w: %w", file.ErrNoPicture, err)
	case exit != nil && exit.ExitCode() != unfit:
		return file.Drawn{}, fmt.Errorf("%w: %w", file.ErrEnded, err)
	case err != nil:
		return file.Drawn{}, fmt.Errorf("draw a picture: %w", err)
	}
	return out.parts()
}

// isVerdict reports whether a child has ended because of its picture, by the exit code and the error of the child.
func isVerdict(code int, said []byte) bool {
	return code == refused || code == crashed && ownFault.Match(said)
}

// head keeps the first maxSaid bytes that are written.
type head struct{ text []byte }

func (h *head) Write(p []byte) (int, error) {
	h.text = append(h.text, p[:min(len(p), maxSaid-len(h.text))]...)
	return len(p), nil
}

// source reads the bytes of a picture. It remembers an error of reading, because a decoder and a child see only that
// the bytes end.
type source struct {
	io.Reader
	hasFailed atomic.Bool
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.hasFailed.Store(true)
	}
	return n, err
}

// bounded keeps the answer of a child. An answer that is too long ends the child.
type bounded struct {
	text   bytes.Buffer
	isFull bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxDrawn {
		b.isFull = true
		return 0, io.ErrShortWrite
	}
	return b.text.Write(p)
}

// parts splits an answer into its two pictures. The answer is the length of the first picture, and then both
// pictures.
func (b *bounded) parts() (file.Drawn, error) {
	text := b.text.Bytes()
	const head = 4
	if len(text) < head || int64(len(text)-head) < int64(binary.BigEndian.Uint32(text)) {
		return file.Drawn{}, errors.New("draw a picture: the child's answer is damaged")
	}
	end := head + int(binary.BigEndian.Uint32(text))
	return file.Drawn{Small: text[head:end], Large: text[end:]}, nil
}

// Child reads a picture from its input, draws it, and writes the answer for Draw to its output. It returns the
// exit code of the process. It limits the memory and time of the whole process, so the process should do
// nothing else.
func Child(in io.Reader, out io.Writer) int {
	if err := bound(work); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return unfit
	}
	from := &source{Reader: in}
	small, large, err := draw(from)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if from.hasFailed.Load() {
			return unfit
		}
		return refused
	}
	answer := append(binary.BigEndian.AppendUint32(nil, uint32(len(small))), small...)
	if _, err := out.Write(append(answer, large...)); err != nil {
		return unfit
	}
	return 0
}
