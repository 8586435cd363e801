package registryctl

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// say prints a message to the standard error.
func (p *program) say(format string, args ...any) error {
	_, err := fmt.Fprintln(p.errOut, strings.Join(lines(p.inWords(fmt.Sprintf(format, args...))), "\n"))
	return err
}

const (
	drawEvery = 200 * time.Millisecond // time between two updates on a terminal
	tellEvery = 10 * time.Second       // time between two lines, if the output is no terminal
)

// line shows how far a command is. On a terminal it redraws one line. If the output is no terminal, it prints a new
// line every 10 seconds.
type line struct {
	out      io.Writer
	terminal bool
	begun    time.Time
	next     time.Time
	drawn    bool
}

func newLine(out io.Writer) *line {
	now := time.Now()
	p := &line{out: out, begun: now, next: now.Add(tellEvery)}
	if file, ok := out.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.terminal, p.next = true, now
		}
	}
	return p
}

// show prints the result of the function `text`, to which it passes the time since the command began. If it is too
// early for the next line, show does nothing. Errors of writing are ignored.
func (p *line) show(text func(in time.Duration) string) {
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	line := text(now.Sub(p.begun))
	if p.terminal {
		p.next, p.drawn = now.Add(drawEvery), true
		_, _ = fmt.Fprintf(p.out, "\r%s\x1b[K", line)
		return
	}
	p.next = now.Add(tellEvery)
	_, _ = fmt.Fprintln(p.out, line)
}

// end removes the line from the terminal.
func (p *line) end() {
	if p.drawn {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}
