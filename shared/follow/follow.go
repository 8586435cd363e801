// Package follow helps services to pass on the feed as it grows (docs/architecture.md,
// "Live feed"). A Ring holds the newest entries for any number of followers. A Reader
// reads the messages that one service sends another.
//
// A follower's whole state is its position. It asks a Ring for the entries after that
// position. If the Ring no longer has these entries, the follower reads pages until it
// has caught up.
package follow

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// ContentType is the media type of messages between services. A message is one line:
//
//	POSITION OFFSET JSON     an entry
//	POSITION OFFSET          a bookmark
//	POSITION OFFSET !        a gap
//
// POSITION is a decimal number of microseconds. OFFSET is the same
// position, written as a timestamp without blanks.
const ContentType = "application/x-registry-feed"

// PagePath returns the path at which one service asks another for a page of the feed, in the given version of the API.
func PagePath(version string) string { return "/feed/" + version + "/page" }

// LivePath returns the path at which one service asks another for the live feed, in the given version of the API.
func LivePath(version string) string { return "/feed/" + version + "/live" }

// MaxData is the maximum number of bytes of an entry that a live stream carries. In place of a larger entry, the stream
// has a gap.
const MaxData = 64 << 10

// Kind says what a Message means.
type Kind int

// The kinds of messages.
const (
	// EntryKind is an asset at its position. All entries before it were sent.
	EntryKind Kind = iota
	// BookmarkKind means that all entries up to its position were sent.
	BookmarkKind
	// GapKind means that the stream skipped entries up to its position. Followers read them from pages.
	GapKind
)

// Message is one line without the JSON of an entry.
type Message struct {
	Kind     Kind
	Position int64
	Offset   string // Position as a timestamp
}

// AppendEntry appends an entry with its JSON, which must have no line break.
func AppendEntry(dst []byte, position int64, offset string, data []byte) []byte {
	dst = appendHead(dst, position, offset)
	return append(append(append(dst, ' '), data...), '\n')
}

// AppendBookmark appends a bookmark.
func AppendBookmark(dst []byte, position int64, offset string) []byte {
	return append(appendHead(dst, position, offset), '\n')
}

// AppendGap appends a gap.
func AppendGap(dst []byte, position int64, offset string) []byte {
	return append(appendHead(dst, position, offset), " !\n"...)
}

func appendHead(dst []byte, position int64, offset string) []byte {
	dst = strconv.AppendInt(dst, position, 10)
	return append(append(dst, ' '), offset...)
}

// Reader reads messages. It keeps at most a few KiB in memory, even if a line is longer.
type Reader struct {
	r    *bufio.Reader
	rest bool // the JSON of the current entry is not read yet
}

// bufferSize is large enough for the head of any message.
const bufferSize = 4 << 10

// NewReader returns a Reader of the messages in r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, bufferSize)} }

// errMalformed is returned for a line that is no message.
var errMalformed = errors.New("a message of the feed is malformed")

// Next returns the next message. It skips the rest of the previous message. At the end of the stream it returns
// io.EOF. If the stream ends inside a message, it returns io.ErrUnexpectedEOF.
func (r *Reader) Next() (Message, error) {
	if r.rest {
		if err := r.CopyData(io.Discard); err != nil {
			return Message{}, err
		}
	}
	number, end, err := r.word()
	if err == io.ErrUnexpectedEOF && number == "" {
		return Message{}, io.EOF
	}
	if err != nil {
		return Message{}, err
	}
	m := Message{Kind: BookmarkKind}
	if m.Position, err = strconv.ParseInt(number, 10, 64); err != nil || end == '\n' {
		return Message{}, fmt.Errorf("%w: it begins with %q", errMalformed, number)
	}
	if m.Offset, end, err = r.word(); err != nil {
		return Message{}, err
	}
	if end == '\n' {
		return m, nil
	}
	first, err := r.r.ReadByte()
	switch {
	case err != nil:
		return Message{}, unexpected(err)
	case first == '!':
		if end, err = r.r.ReadByte(); err != nil {
			return Message{}, unexpected(err)
		}
		if end != '\n' {
			return Message{}, errMalformed
		}
		m.Kind = GapKind
	case first == '{':
		m.Kind, r.rest = EntryKind, true
		err = r.r.UnreadByte()
	default:
		return Message{}, errMalformed
	}
	return m, err
}

// maxWord is the maximum number of bytes of a position or an offset.
const maxWord = 64

// word returns the text before the next blank or line break, and which of the two came.
func (r *Reader) word() (text string, end byte, err error) {
	word := make([]byte, 0, maxWord)
	for {
		b, err := r.r.ReadByte()
		switch {
		case err != nil:
			return string(word), 0, unexpected(err)
		case b == ' ' || b == '\n':
			return string(word), b, nil
		case len(word) == maxWord:
			return "", 0, errMalformed
		}
		word = append(word, b)
	}
}

// Data returns the JSON of the current entry. If the JSON has more than `most` bytes, Data skips it and returns nil.
func (r *Reader) Data(most int) ([]byte, error) {
	to := limited{most: most}
	err := r.CopyData(&to)
	if err != nil || to.large {
		return nil, err
	}
	return to.Bytes(), nil
}

// limited keeps the bytes that are written to it, up to a maximum number.
type limited struct {
	bytes.Buffer
	most  int
	large bool // more was written
}

func (l *limited) Write(p []byte) (int, error) {
	if l.large = l.large || l.Len()+len(p) > l.most; l.large {
		l.Buffer = bytes.Buffer{}
		return len(p), nil
	}
	return l.Buffer.Write(p)
}

// CopyData writes the JSON of the current entry to w, in parts.
func (r *Reader) CopyData(w io.Writer) error {
	for r.rest {
		part, err := r.r.ReadSlice('\n')
		switch {
		case err == nil:
			part, r.rest = part[:len(part)-1], false
		case !errors.Is(err, bufio.ErrBufferFull):
			return unexpected(err)
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// unexpected returns the error for a stream that ends inside a message.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
