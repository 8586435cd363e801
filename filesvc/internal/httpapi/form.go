package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/filesapi"
)

const (
	maxParts  = 16
	fileField = "file"
)

// form is the body of an upload: fields and one file. The file is read while it arrives.
type form struct {
	parts  *multipart.Reader
	heads  *bounded
	length int64 // length of the whole body; -1: not known
	count  int

	fields map[string]json.RawMessage // fields of a document; nil: they are not needed
	kept   int64                      // bytes of the fields that were read so far
}

// openForm returns the form of a request. If the body is not a form, it returns the fault for a missing file. Earlier
// systems with the same API return this fault, too.
func openForm(r *http.Request, body io.Reader) (*form, error) {
	boundary, isForm := filesapi.FormBoundary(r.Header)
	if !isForm {
		return nil, missing(fileField)
	}
	heads := &bounded{from: body}
	return &form{parts: multipart.NewReader(heads, boundary), heads: heads, length: r.ContentLength}, nil
}

// bounded is the body of a form. It limits the bytes between the contents of two parts, because the multipart
// reader would keep up to 10 MiB of headers.
type bounded struct {
	from   io.Reader
	isHead bool
	count  int   // bytes since isHead last became true
	failed error // error of reading the body; nil: no error so far
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.count += n
	if b.isHead && b.count > maxField {
		n = 0
		err = fault.New(fault.TooLarge, fault.Body, dataField, "The header of a part has more than %d bytes.", maxField)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = cut(err)
		b.failed = err
	}
	return n, err
}

// The method `next` ends the current part and returns the next one, or io.EOF.
func (f *form) next() (*multipart.Part, error) {
	f.heads.isHead, f.heads.count = true, 0
	part, err := f.parts.NextRawPart()
	f.heads.isHead = false
	if err != nil {
		return nil, f.why(err)
	}
	if f.count++; f.count > maxParts {
		return nil, fault.New(fault.Invalid, fault.Body, "data", "The form has more than %d parts.", maxParts)
	}
	return part, nil
}

// The method `why` returns the reason for which there is no next part. It is needed because the multipart reader hides
// some errors of the body, and because its own errors have no type.
func (f *form) why(err error) error {
	switch {
	case f.heads.failed != nil:
		return f.heads.failed
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, multipart.ErrMessageTooLarge):
		return err
	}
	return fmt.Errorf("%w: %w", fault.New(fault.Invalid, fault.Body, dataField, "The form is malformed."), err)
}

// dataField is the name of a field whose text is a JSON object. Its members become fields of the document.
const dataField = "data"

// take reads a field to its end. It keeps the field if f.fields is not nil.
func (f *form) take(part *multipart.Part) error {
	name := part.FormName()
	if f.fields == nil {
		n, err := io.Copy(io.Discard, io.LimitReader(part, maxField+1))
		if err == nil && n > maxField {
			err = fault.New(fault.TooLarge, fault.Body, name, "A field has more than %d bytes.", maxField)
		}
		return err
	}
	text, err := io.ReadAll(io.LimitReader(part, maxField+1-f.kept))
	if err != nil {
		return err
	}
	if f.kept += int64(len(text)); f.kept > maxField {
		return fault.New(fault.TooLarge, fault.Body, name, "The fields have more than %d bytes.", maxField)
	}
	if name == dataField {
		var object map[string]json.RawMessage
		if json.Unmarshal(text, &object) != nil || object == nil {
			return fault.New(fault.Invalid, fault.Body, dataField, "The field must be a JSON object.")
		}
		maps.Copy(f.fields, object)
		return nil
	}
	if !utf8.Valid(text) {
		return fault.New(fault.Invalid, fault.Body, name, "The field must be UTF-8.")
	}
	f.fields[name], err = json.Marshal(string(text))
	return err
}

// file returns the file of the form. It reads the fields before the file. The fields after the file are read at
// the end of Upload.Body, which returns io.EOF only when the whole form has arrived.
func (f *form) file() (file.Upload, error) {
	for {
		part, err := f.next()
		if errors.Is(err, io.EOF) {
			return file.Upload{}, missing(fileField)
		}
		if err != nil {
			return file.Upload{}, bodyFault(err)
		}
		if part.FormName() == fileField && part.FileName() != "" {
			return file.Upload{
				Body: &fileBody{form: f, part: part}, Length: f.length, Title: nameOf(part),
				Declared: mediaType(part.Header.Get("Content-Type")),
			}, nil
		}
		if err := f.take(part); err != nil {
			return file.Upload{}, bodyFault(err)
		}
	}
}

// nameOf returns the name of a file as the client sent it. Part.FileName would remove the path by the rules of
// this machine's system.
func nameOf(part *multipart.Part) string {
	sent := part.Header.Get("Content-Disposition")
	_, params, err := mime.ParseMediaType(sent)
	switch {
	case err != nil:
		return ""
	case strings.Contains(sent, "filename*"): // a name without escapes that are left
		return params["filename"]
	}
	return escaped.Replace(params["filename"])
}

// escaped has the characters that browsers escape in the name of a file. They escape no percent sign.
var escaped = strings.NewReplacer("%22", `"`, "%0D", "\r", "%0A", "\n")

// maxType is the maximum number of bytes of a media type (RFC 6838, 4.2). Proxies refuse answers with a very long
// header.
const maxType = 127 + len("/") + 127

// mediaType returns a media type without parameters. It returns "" for a text that is not type/subtype.
func mediaType(sent string) string {
	media, _, err := mime.ParseMediaType(sent)
	if err != nil || len(media) > maxType || !strings.Contains(media, "/") {
		return ""
	}
	return media
}

// fileBody reads the bytes of the file in a form.
type fileBody struct {
	form *form
	part *multipart.Part
	end  error // how the whole form ended: io.EOF, or an error; nil: it has not ended yet
}

func (b *fileBody) Read(p []byte) (int, error) {
	if b.end != nil {
		return 0, b.end
	}
	n, err := b.part.Read(p)
	if errors.Is(err, io.EOF) {
		b.end = b.form.rest()
		err = b.end
	}
	return n, err
}

// rest reads the parts after the file. It returns io.EOF at the end of the form.
func (f *form) rest() error {
	for {
		part, err := f.next()
		// An error that only wraps io.EOF means that the body ended before the form's last boundary.
		if err != io.EOF && errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if part.FileName() != "" {
			return fault.New(fault.Invalid, fault.Body, part.FormName(), "The form has more than one file.")
		}
		if err := f.take(part); err != nil {
			return err
		}
	}
}

// cut marks an error after which the body cannot be read any more, so that bodyFault reports it to the client.
func cut(err error) error { return fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err) }

// bodyFault returns the fault to report for err. An error with a different cause than the body is returned
// unchanged.
func bodyFault(err error) error {
	if fault.KindOf(err) != fault.Internal {
		return err
	}
	says := ""
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		says = "The body did not arrive in time."
	case errors.Is(err, multipart.ErrMessageTooLarge):
		says = "A part of the form has too many headers."
	case errors.Is(err, io.ErrUnexpectedEOF):
		says = "The body ended before it was complete."
	default:
		return err
	}
	return fmt.Errorf("%w: %w", fault.New(fault.Invalid, fault.Body, fileField, "%s", says), err)
}
