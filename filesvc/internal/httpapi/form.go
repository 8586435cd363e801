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
	"unicode/utf8"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/filesapi"
)

const (
	maxParts  = 16
	fileField = "file"
)

// form is the body of an upload: fields and one file, which is read as it comes.
type form struct {
	parts  *multipart.Reader
	heads  *bounded
	length int64 // of the whole body; -1: not known
	count  int

	fields map[string]json.RawMessage // of a document; nil: they are not kept
	kept   int64                      // bytes of fields
}

// openForm returns the form of a request; for another body, the family's fault for a missing
// file.
func openForm(r *http.Request, body io.Reader) (*form, error) {
	boundary, isForm := filesapi.FormBoundary(r.Header)
	if !isForm {
		return nil, missing(fileField)
	}
	heads := &bounded{from: body}
	return &form{parts: multipart.NewReader(heads, boundary), heads: heads, length: r.ContentLength}, nil
}

// bounded is the body of a form. It ends what comes between the bodies of two parts, because the
// multipart reader would keep 10 MiB of a header.
type bounded struct {
	from   io.Reader
	isHead bool
	count  int   // bytes since isHead became true
	failed error // nil: all could be read, so far
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.isHead {
		b.count += n
	}
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

// next returns the next part, or io.EOF. It ends the part before.
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

// why returns the reason why there is no next part. The multipart reader hides some errors of the
// body, and its own have no type.
func (f *form) why(err error) error {
	switch {
	case f.heads.failed != nil:
		return f.heads.failed
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, multipart.ErrMessageTooLarge):
		return err
	}
	return fmt.Errorf("%w: %w", fault.New(fault.Invalid, fault.Body, dataField, "The form is malformed."), err)
}

// dataField is a field whose text is a JSON object with fields of the document.
const dataField = "data"

// take reads a field to its end, and keeps it if fields are kept.
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

// file returns the file of the form. Fields before it are read, those after it when all of
// the file was read. The body of the file ends only when the whole form has come.
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

// nameOf returns the name of a file as the client sent it: Part.FileName leaves out its path
// by the rules of this machine.
func nameOf(part *multipart.Part) string {
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return ""
	}
	return params["filename"]
}

// maxType is how long a type can be (RFC 6838, 4.2). Proxies refuse answers with a very long header.
const maxType = 127 + len("/") + 127

// mediaType returns a type without parameters; "" for none.
func mediaType(sent string) string {
	media, _, err := mime.ParseMediaType(sent)
	if err != nil || len(media) > maxType {
		return ""
	}
	return media
}

// fileBody is the bytes of the file of a form.
type fileBody struct {
	form *form
	part *multipart.Part
	end  error // of the whole form; nil: it has not come
}

// Read implements io.Reader.
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

// rest reads what comes after the file. It returns io.EOF at the end of the form.
func (f *form) rest() error {
	for {
		part, err := f.next()
		if err != io.EOF && errors.Is(err, io.EOF) { // of the body, before the last boundary
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

// cut returns the error of a body of which no more can be read, whatever the reason, for bodyFault.
func cut(err error) error { return fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err) }

// bodyFault returns err, or the fault for a body that could not be read.
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
