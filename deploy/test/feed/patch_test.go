package feed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// operation is an operation of a JSON Patch (RFC 6902). It supports only the operations that occur in a record:
// add, remove and replace.
type operation struct {
	Op, Path string
	Value    any // numbers are json.Number
}

// UnmarshalJSON decodes an operation. It keeps every digit of numbers.
func (o *operation) UnmarshalJSON(text []byte) error {
	type plain operation
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode((*plain)(o))
}

// apply returns the value after the operation. It may also change its argument.
func (o operation) apply(value any) (any, error) {
	if o.Path == "" {
		if o.Op == "remove" {
			return nil, nil
		}
		return o.Value, nil
	}
	if !strings.HasPrefix(o.Path, "/") {
		return nil, fmt.Errorf("got the path %q, want a JSON Pointer", o.Path)
	}
	path := strings.Split(o.Path[1:], "/")
	for i, name := range path {
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	}
	return o.within(value, path)
}

// The method `within` applies the operation to a part of a value. The path leads from the value to that part.
func (o operation) within(value any, path []string) (any, error) {
	name, last := path[0], len(path) == 1
	switch value := value.(type) {
	case map[string]any:
		child, there := value[name]
		if !there && (!last || o.Op != "add") {
			return nil, fmt.Errorf("%s %s: there is no %q", o.Op, o.Path, name)
		}
		switch {
		case !last:
			changed, err := o.within(child, path[1:])
			value[name] = changed
			return value, err
		case o.Op == "remove":
			delete(value, name)
		default:
			value[name] = o.Value
		}
		return value, nil
	case []any:
		i, err := strconv.Atoi(name)
		if end := last && o.Op == "add"; err != nil || i < 0 || i > len(value) || i == len(value) && !end {
			return nil, fmt.Errorf("%s %s: there is no element %q of %d", o.Op, o.Path, name, len(value))
		}
		switch {
		case !last:
			value[i], err = o.within(value[i], path[1:])
			return value, err
		case o.Op == "add":
			return slices.Insert(value, i, o.Value), nil
		case o.Op == "remove":
			return slices.Delete(value, i, i+1), nil
		default:
			value[i] = o.Value
			return value, nil
		}
	default:
		return nil, fmt.Errorf("%s %s: %q is within no object or list", o.Op, o.Path, name)
	}
}

func TestPatchesAreApplied(t *testing.T) {
	for _, c := range []struct{ name, value, patch, want string }{
		{"the whole value", `null`, `[{"op":"add","path":"","value":{"a":1.00}}]`, `{"a":1.00}`},
		{"a member is added", `{"a":1}`, `[{"op":"add","path":"/b","value":2}]`, `{"a":1,"b":2}`},
		{"a member is replaced", `{"a":{"b":1}}`, `[{"op":"replace","path":"/a/b","value":2}]`, `{"a":{"b":2}}`},
		{"a member is removed", `{"a":1,"b":2}`, `[{"op":"remove","path":"/b"}]`, `{"a":1}`},
		{"a name is escaped", `{"a/b":1,"~":2}`, `[{"op":"remove","path":"/a~1b"},{"op":"remove","path":"/~0"}]`, `{}`},
		{"an element is added", `[1,3]`, `[{"op":"add","path":"/1","value":2},{"op":"add","path":"/3","value":4}]`,
			`[1,2,3,4]`},
		{"an element is removed", `[1,2,3]`, `[{"op":"remove","path":"/1"}]`, `[1,3]`},
		{"an element within is replaced", `[{"a":1}]`, `[{"op":"replace","path":"/0/a","value":2}]`, `[{"a":2}]`},
		{"a missing member", `{"a":1}`, `[{"op":"replace","path":"/b","value":2}]`, ""},
		{"a missing element", `[1]`, `[{"op":"remove","path":"/1"}]`, ""},
		{"a member of a number", `{"a":1}`, `[{"op":"add","path":"/a/b","value":2}]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var start operation
			var patch []operation
			expect.OK(t, json.Unmarshal([]byte(`{"value":`+c.value+`}`), &start))
			expect.OK(t, json.Unmarshal([]byte(c.patch), &patch))
			got, err := start.Value, error(nil)
			for _, o := range patch {
				if got, err = o.apply(got); err != nil {
					break
				}
			}
			if c.want == "" {
				if err == nil {
					t.Errorf("got %v, want an error", got)
				}
				return
			}
			text, _ := json.Marshal(got)
			if diff := cmp.Diff(c.want, string(text)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
