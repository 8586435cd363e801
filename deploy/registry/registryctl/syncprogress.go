package registryctl

import (
	"fmt"
	"io"
	"os"
	"time"

	"asset-registry/shared/replica"
)

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

// syncProgress shows how far a synchronisation is.
type syncProgress struct{ *line }

func newSyncProgress(out io.Writer) syncProgress { return syncProgress{newLine(out)} }

func (p syncProgress) tell(done replica.Progress) {
	p.show(func(in time.Duration) string { return progressLine(done, in) })
}

// progressLine returns a line about the progress, with the time that the rest of a snapshot will take. The argument
// `in` is the time since the command began.
func progressLine(done replica.Progress, in time.Duration) string {
	const mib = 1 << 20
	rate := float64(done.Bytes) / mib / max(in.Seconds(), 0.001)
	line := fmt.Sprintf("%d assets, %d MiB, %.1f MiB/s", done.Assets, done.Bytes/mib, rate)
	if done.OfBytes == 0 {
		return line + ", the feed up to " + plain(string(done.Position))
	}
	line += fmt.Sprintf(", %d %% of the snapshot", 100*done.Bytes/done.OfBytes)
	if done.Bytes > 0 {
		left := time.Duration(float64(in) * float64(done.OfBytes-done.Bytes) / float64(done.Bytes))
		line += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	return line
}
