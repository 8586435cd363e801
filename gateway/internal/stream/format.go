package stream

import (
	"bytes"
	"mime"
	"strconv"
	"strings"
	"time"
)

// Format is the media type of a stream.
type Format string

// The formats of streams.
const (
	None   Format = "" // a page instead of a stream
	Events Format = "text/event-stream"
	Lines  Format = "application/x-ndjson"
)

// FormatOf returns the format that a client accepts. If the client also accepts JSON, FormatOf returns None, because
// the client then wants a page.
func FormatOf(accept string) Format {
	if accept == "" || accept == "*/*" {
		return None
	}
	format := None
	for item := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(item)
		if err != nil {
			continue
		}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil && q <= 0 {
			continue
		}
		switch {
		case media == "application/json":
			return None
		case format == None && (media == string(Events) || media == string(Lines)):
			format = Format(media)
		}
	}
	return format
}

// Parts of an event (HTML Standard, "Server-sent events").
const (
	eventID   = "id: "
	eventData = "\ndata: "
	eventEnd  = "\n\n"
)

// event returns an entry in the form of an event.
func event(offset string, data []byte) []byte {
	e := make([]byte, 0, len(eventID)+len(offset)+len(eventData)+len(data)+len(eventEnd))
	e = append(append(e, eventID...), offset...)
	return append(append(append(e, eventData...), data...), eventEnd...)
}

// entry converts an event to the format f. If f is Events, the result is the event itself. Otherwise the result is a
// line with the same entry.
func (f Format) entry(event []byte) []byte {
	if f == Events {
		return event
	}
	begin := bytes.IndexByte(event, '\n') + len(eventData)
	return event[begin : len(event)-len(eventEnd)+1]
}

// entryHead returns the text before the JSON of an entry.
func (f Format) entryHead(offset string) string {
	if f == Events {
		return eventID + offset + eventData
	}
	return ""
}

// entryEnd returns the text after the JSON of an entry.
func (f Format) entryEnd() string {
	if f == Events {
		return eventEnd
	}
	return "\n"
}

func (f Format) bookmark(offset string) string {
	if f == Events {
		return "event: bookmark\n" + eventID + offset + eventData + `{"offset":"` + offset + `"}` + eventEnd
	}
	return `{"bookmark":{"offset":"` + offset + "\"}}\n"
}

func (f Format) heartbeat() string {
	if f == Events {
		return ":\n\n"
	}
	return "\n"
}

// retry returns a message that tells the client how long to wait before it connects again.
func (f Format) retry(after time.Duration) string {
	if f == Events {
		return "retry: " + strconv.FormatInt(after.Milliseconds(), 10) + eventEnd
	}
	return ""
}
