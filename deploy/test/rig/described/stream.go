package described

import (
	"fmt"
	"strings"
)

// The media types of streams (docs/contract.md, "Streams").
const (
	events = "text/event-stream"
	lines  = "application/x-ndjson"
)

// ofStreams are the parameters that streams use. Streams ignore all other parameters.
var ofStreams = []string{"offset", "mode", "opt_fields"}

// IsStream reports whether a media type is one of the two that streams have.
func IsStream(media string) bool { return media == events || media == lines }

// checkStream checks the complete messages of a stream. If the stream was cut off, it ignores the last, incomplete
// message. The parameter `pointer` leads to the answer's media type in the document.
func (d *Document) checkStream(pointer, media, body string) error {
	separator, check := "\n", d.checkLine
	if media == events {
		separator, check = "\n\n", d.checkEvent
	}
	messages := strings.Split(body, separator)
	for _, message := range messages[:len(messages)-1] {
		if err := check(pointer, message); err != nil {
			return fmt.Errorf("message %.200q of a stream: %w", message, err)
		}
	}
	return nil
}

func (d *Document) checkLine(pointer, line string) error {
	if line == "" { // an empty line is a heartbeat
		return nil
	}
	return d.checkSchema(pointer+"/schema/contentSchema", []byte(line))
}

// checkEvent checks one event. An event must have an id, and data that fit the schema. Only a comment, or an event that
// sets the retry time, may have no data.
func (d *Document) checkEvent(pointer, text string) error {
	fields := map[string]string{"event": "message"}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimPrefix(value, " ")
	}
	data, has := fields["data"]
	if _, retry := fields["retry"]; !has && (retry || strings.HasPrefix(text, ":")) {
		return nil
	}
	if fields["id"] == "" {
		return fmt.Errorf("the event has no id")
	}
	return d.checkSchema(pointer+"/x-events/"+fields["event"], []byte(data))
}
