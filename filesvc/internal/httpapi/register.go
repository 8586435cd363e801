package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
	"asset-registry/shared/filesapi"
)

const (
	maxField  = 64 << 10 // bytes of a field of a form, and of a registration
	hashField = "hash"
	hashType  = "md5:"
	hashSize  = len(hashType) + 32
)

// readRegistration returns the data of a registration: the member `data` of a JSON body, or the fields of a form. A
// body that is declared as JSON must be JSON. If a body is neither JSON nor a form, readRegistration returns the
// fault for a missing hash. The systems from which this API comes do the same.
func readRegistration(r *http.Request) (map[string]json.RawMessage, error) {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxField+1))
	if err != nil {
		return nil, bodyFault(cut(err))
	}
	if len(text) > maxField {
		return nil, fault.New(fault.TooLarge, fault.Body, "data", "The body has more than %d bytes.", maxField)
	}
	isJSON := mediaType(r.Header.Get("Content-Type")) == "application/json"
	if isJSON && !utf8.Valid(text) {
		const says = "could not decode params: the body is not valid UTF-8"
		return nil, fault.New(fault.Invalid, fault.Body, dataField, says)
	}
	var body struct {
		Data json.RawMessage `json:"data"`
	}
	err = json.Unmarshal(text, &body)
	if broken, is := errors.AsType[*json.SyntaxError](err); is && isJSON {
		return nil, fault.BrokenJSON(broken.Offset)
	}
	if err == nil || isJSON {
		var data map[string]json.RawMessage
		_ = json.Unmarshal(body.Data, &data) // data that are no object have no hash
		return data, nil
	}
	var fields url.Values
	if boundary, isForm := filesapi.FormBoundary(r.Header); isForm {
		form, err := multipart.NewReader(strings.NewReader(string(text)), boundary).ReadForm(maxField)
		if err != nil {
			return nil, bodyFault(err)
		}
		fields = form.Value // no file is temporary, because the whole body fits into memory
	} else if fields, err = url.ParseQuery(string(text)); err != nil {
		return nil, missing(hashField)
	}
	data := map[string]json.RawMessage{}
	for name := range fields {
		if data[name], err = json.Marshal(fields.Get(name)); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func missing(field string) error { return fault.New(fault.NotFound, fault.Body, field, "Not Found") }

// parseHash returns the MD5 of a registration, without the prefix that names its type.
func parseHash(data map[string]json.RawMessage) (string, error) {
	sent, isSent := data[hashField]
	if !isSent {
		return "", missing(hashField)
	}
	var hash string
	says := ""
	switch err := json.Unmarshal(sent, &hash); {
	case err != nil || !strings.HasPrefix(hash, hashType):
		says = "Hash type is not supported."
	case len(hash) != hashSize:
		says = "Hash value is wrong length."
	case !filelink.IsID(hash[len(hashType):]):
		says = "Hash value is not hexadecimal."
	default:
		return hash[len(hashType):], nil
	}
	return "", fault.New(fault.Unprocessable, fault.Body, hashField, "%s", says)
}
