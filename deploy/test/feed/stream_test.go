package feed

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// message is one entry or bookmark of a stream (docs/contract.md, "Streams").
type message struct {
	ID, DateModified, Description string
	Items                         []json.RawMessage // items of a whole asset
	Bookmark                      string            // the offset of a bookmark
}

// errMalformed is the error for an answer that breaks the contract.
var errMalformed = errors.New("the answer is malformed")

// errTorn is the error for a stream that ends inside a message although its connection was closed in the normal
// way.
var errTorn = fmt.Errorf("%w: it is complete, but its last message is not", errMalformed)

// readStream reads messages until the stream ends or the function `take` returns false. It calls the function `alive`
// for each line.
func readStream(body io.Reader, w way, alive func(), take func(message) bool) error {
	r := bufio.NewReader(body)
	next := nextLine
	if w == events {
		next = nextEvent
	}
	for {
		m, is, err := next(r, alive)
		if err != nil {
			return err
		}
		if is && !take(m) {
			return nil
		}
	}
}

// nextLine reads one line of JSON. It returns false for an empty line.
func nextLine(r *bufio.Reader, alive func()) (m message, is bool, err error) {
	text, err := r.ReadString('\n')
	if err != nil {
		return m, false, torn(err, text != "")
	}
	alive()
	if text == "\n" {
		return m, false, nil
	}
	line := struct {
		*message
		Bookmark *struct{ Offset string }
	}{message: &m}
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		return m, false, fmt.Errorf("%w: the line %.200q: %w", errMalformed, text, err)
	}
	if line.Bookmark != nil {
		m.Bookmark = line.Bookmark.Offset
	}
	return m, true, validate(m)
}

// nextEvent reads one event (HTML Standard, "Server-sent events"). It returns false for an event that has no data.
func nextEvent(r *bufio.Reader, alive func()) (m message, is bool, err error) {
	var id, kind, data string
	for inside := false; ; inside = true {
		text, err := r.ReadString('\n')
		if err != nil {
			return m, false, torn(err, inside || text != "")
		}
		alive()
		if text == "\n" {
			break
		}
		switch name, value, _ := strings.Cut(strings.TrimSuffix(text, "\n"), ":"); name {
		case "id":
			id = strings.TrimPrefix(value, " ")
		case "event":
			kind = strings.TrimPrefix(value, " ")
		case "data":
			data += strings.TrimPrefix(value, " ")
		}
	}
	if data == "" {
		return m, false, nil
	}
	var bookmark struct{ Offset string }
	into := any(&m)
	if kind == "bookmark" {
		into = &bookmark
	}
	if err := json.Unmarshal([]byte(data), into); err != nil {
		return m, false, fmt.Errorf("%w: the event %.200q: %w", errMalformed, data, err)
	}
	m.Bookmark = bookmark.Offset
	if at := m.DateModified + m.Bookmark; id != at {
		return m, false, fmt.Errorf("%w: got the id %q of the event at %q, want them equal", errMalformed, id, at)
	}
	return m, true, validate(m)
}

// validate returns an error for a message that is neither an entry nor a bookmark.
func validate(m message) error {
	if m.Bookmark == "" && (m.ID == "" || m.DateModified == "") {
		return fmt.Errorf("%w: got the message %+v, want an entry or a bookmark", errMalformed, m)
	}
	return nil
}

// torn returns the error for a stream that has ended with err. The parameter `inside` says whether the end was
// inside a message.
func torn(err error, inside bool) error {
	if err == io.EOF && inside {
		return errTorn
	}
	return err
}

func TestStreamsAreRead(t *testing.T) {
	entry, bookmark := message{ID: "a", DateModified: "1"}, message{Bookmark: "2"}
	for _, c := range []struct {
		name string
		way  way
		text string
		want []message
		err  error
	}{
		{"lines", lines, "{\"id\":\"a\",\"dateModified\":\"1\"}\n\n{\"bookmark\":{\"offset\":\"2\"}}\n",
			[]message{entry, bookmark}, io.EOF},
		{"a torn line", lines, "{\"id\":\"a\",\"dateModified\":\"1\"}\n{\"id\":", []message{entry}, errTorn},
		{"events", events, "retry: 9\n\n:\n\nid: 1\ndata: {\"id\":\"a\",\"dateModified\":\"1\"}\n\n" +
			"event: bookmark\nid: 2\ndata: {\"offset\":\"2\"}\n\n", []message{entry, bookmark}, io.EOF},
		{"a torn event", events, "id: 1\ndata: {\"id\":\"a\",\"dateModified\":\"1\"}\n", nil, errTorn},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []message
			err := readStream(strings.NewReader(c.text), c.way, func() {}, func(m message) bool {
				got = append(got, m)
				return true
			})
			if diff := cmp.Diff(c.want, got); diff != "" || err != c.err {
				t.Errorf("got %v, want %v (-want +got):\n%s", err, c.err, diff)
			}
		})
	}
}
