package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// maxMessage is the maximum number of bytes of one message of a stream.
const maxMessage = 8 << 20

var errLongMessage = fmt.Errorf("a message of the stream has more than %d bytes", maxMessage)

// message is a message of an event stream. A heartbeat has no fields.
type message struct {
	event string
	id    string
	data  []byte
	retry time.Duration // 0: none
}

// messages reads a stream of server-sent events.
type messages struct {
	in    *bufio.Reader
	heard bool // the stream has sent something besides the field `retry`
}

func newMessages(in io.Reader) *messages { return &messages{in: bufio.NewReaderSize(in, 64<<10)} }

// The method `next` returns the next message. It returns io.EOF at the end of the stream. If the stream ends within a
// message, it ignores this message.
func (m *messages) next() (message, error) {
	var found message
	for size := 0; ; {
		line, err := m.line(maxMessage - size)
		if err != nil {
			return message{}, err
		}
		if len(line) == 0 {
			return found, nil
		}
		size += len(line)
		found.add(line)
		m.heard = m.heard || found.retry == 0 || found.data != nil
	}
}

// waiting reports whether a whole message has arrived, so that next does not block.
func (m *messages) waiting() bool {
	arrived, err := m.in.Peek(m.in.Buffered())
	return err == nil && bytes.Contains(arrived, []byte("\n\n"))
}

// line returns a line of at most the given size, without its end.
func (m *messages) line(most int) ([]byte, error) {
	var line []byte
	for {
		part, err := m.in.ReadSlice('\n')
		if len(line)+len(part) > most+len("\r\n") {
			return nil, errLongMessage
		}
		line = append(line, part...)
		if err == nil {
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// add adds the field of a line. It ignores comments and unknown fields.
func (m *message) add(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		m.event = string(value)
	case "id":
		m.id = string(value)
	case "data":
		if m.data != nil {
			m.data = append(m.data, '\n')
		}
		m.data = append(m.data, value...)
	case "retry":
		if milliseconds, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			m.retry = time.Duration(milliseconds) * time.Millisecond
		}
	}
}
