package httpapi

import (
	"encoding"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/fault"
)

// sent is the body of a request of the admin API.
type sent struct {
	data  map[string]json.RawMessage
	rogue []string // fields of the body other than "data", which are not allowed
}

// readData reads a body of the form {"data": {...}}.
func readData(c *gin.Context) (sent, error) {
	text, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return sent{}, fault.New(fault.TooLarge, fault.Body, "data", "The body is too long: at most %d KiB.", maxBody>>10)
	}
	if err != nil {
		return sent{}, fault.New(fault.Invalid, fault.Body, "data", "The body is incomplete. Send it again.")
	}
	return parseData(text)
}

// form describes the form of a body in error messages.
const form = `{"data": {...}}`

func parseData(text []byte) (sent, error) {
	if !utf8.Valid(text) {
		return sent{}, fault.New(fault.Invalid, fault.Body, "data", "could not decode params: the body is not valid UTF-8")
	}
	var broken *json.SyntaxError
	if err := json.Unmarshal(text, new(any)); errors.As(err, &broken) {
		return sent{}, fault.BrokenJSON(broken.Offset)
	}
	var s sent
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || json.Unmarshal(members["data"], &s.data) != nil || s.data == nil {
		return sent{}, fault.New(fault.Invalid, fault.Body, "data",
			"Data not available: the body must have the form %s.", form)
	}
	delete(members, "data")
	s.rogue = slices.Sorted(maps.Keys(members))
	return s, nil
}

// The method `into` stores the data in a struct; the argument `of` is a pointer to it. The method changes only the
// fields that the data names; null clears a field. It returns a problem for each value that it cannot read. A field
// with such a value keeps its old value. In a list, each such element becomes a zero value.
func (s sent) into(of any) *problems.List {
	var found problems.List
	for _, name := range s.rogue {
		found.Add(name, `Rogue field: the body takes only "data".`)
	}
	decodeMembers(&found, "", s.data, reflect.ValueOf(of).Elem())
	return &found
}

// decodeMembers decodes the members of a JSON object into the fields of a struct.
func decodeMembers(found *problems.List, path string, members map[string]json.RawMessage, v reflect.Value) {
	fields, names := map[string]reflect.Value{}, []string{}
	for _, f := range reflect.VisibleFields(v.Type()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name], names = v.FieldByIndex(f.Index), append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if field, known := fields[name]; known {
			decode(found, path+name, members[name], field)
		} else {
			found.Add(path+name, "Rogue field: this call takes %s.", orNone(names))
		}
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "no fields"
	}
	return strings.Join(names, ", ")
}

// decode decodes a JSON value into v. It adds a problem for each part of the value that has a wrong type, with
// the path of this part.
func decode(found *problems.List, path string, text json.RawMessage, v reflect.Value) {
	switch {
	case string(text) == "null":
		v.SetZero()
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		decode(found, path, text, v.Elem())
	case v.Kind() == reflect.Map:
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil {
			found.Add(path, "This must be an object.")
			return
		}
		v.Set(reflect.MakeMapWithSize(v.Type(), len(members)))
		for _, name := range slices.Sorted(maps.Keys(members)) {
			element := reflect.New(v.Type().Elem()).Elem()
			decode(found, path+"."+name, members[name], element)
			v.SetMapIndex(reflect.ValueOf(name), element)
		}
	case v.Kind() == reflect.Slice:
		var elements []json.RawMessage
		if json.Unmarshal(text, &elements) != nil {
			found.Add(path, "This must be a list.")
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
		for i, element := range elements {
			decode(found, path+"."+strconv.Itoa(i), element, v.Index(i))
		}
	default:
		if json.Unmarshal(text, v.Addr().Interface()) != nil {
			found.Add(path, "This must be %s.", wanted(v))
		}
	}
}

// wanted describes the values that a field accepts.
func wanted(v reflect.Value) string {
	if _, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return "a time such as 2027-01-31T00:00:00Z"
	}
	switch v.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "a whole number"
	default:
		return "a string"
	}
}
