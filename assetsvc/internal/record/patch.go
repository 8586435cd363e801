package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Patch returns a JSON Patch (RFC 6902) that turns the first value into the second. Its operations are add, remove
// and replace. If the values are equal, the patch is empty.
func Patch(before, after Value) List { return patch(List{}, "", before, after) }

// patchDepth is how much deeper a value is nested in a patch than in an asset: it is inside the list and the
// operation.
const patchDepth = 2

// ParsePatch reads a patch that Patch has made.
func ParsePatch(text []byte) (List, error) {
	value, err := parse(text, MaxDepth+patchDepth)
	operations, _ := value.(List)
	return operations, err
}

// patch appends the operations that turn the first value (before) into the second one (after). The string argument is
// the JSON Pointer (RFC 6901) of the first value.
func patch(operations List, at string, before, after Value) List {
	if Equal(before, after) {
		return operations
	}
	switch before := before.(type) {
	case Object:
		if after, ok := after.(Object); ok {
			return patchObject(operations, at, before, after)
		}
	case List:
		if after, ok := after.(List); ok {
			return patchList(operations, at, before, after)
		}
	}
	return append(operations, operation("replace", at, after))
}

func patchObject(operations List, at string, before, after Object) List {
	was, is := before.lookups(), after.lookups()
	for _, m := range before {
		if _, stays := is(m.Name); !stays {
			operations = append(operations, Object{{"op", "remove"}, {"path", Pointer(at, m.Name)}})
		}
	}
	for _, m := range after {
		within := Pointer(at, m.Name)
		if old, there := was(m.Name); there {
			operations = patch(operations, within, old, m.Value)
		} else {
			operations = append(operations, operation("add", within, m.Value))
		}
	}
	return operations
}

// patchList skips equal elements at the start and at the end of both lists. So an element that was removed from
// the middle, or inserted there, needs only one operation.
func patchList(operations List, at string, before, after List) List {
	start := 0
	for start < min(len(before), len(after)) && Equal(before[start], after[start]) {
		start++
	}
	for len(before) > start && len(after) > start && Equal(before[len(before)-1], after[len(after)-1]) {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	both := min(len(before), len(after))
	for i := start; i < both; i++ {
		operations = patch(operations, Pointer(at, strconv.Itoa(i)), before[i], after[i])
	}
	for i := len(before) - 1; i >= both; i-- {
		operations = append(operations, Object{{"op", "remove"}, {"path", Pointer(at, strconv.Itoa(i))}})
	}
	for i := both; i < len(after); i++ {
		operations = append(operations, operation("add", Pointer(at, strconv.Itoa(i)), after[i]))
	}
	return operations
}

func operation(op, path string, value Value) Object {
	return Object{{"op", op}, {"path", path}, {"value", value}}
}

// escapes replaces the characters of a name that a JSON Pointer reserves.
var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer returns the JSON Pointer of a member or an element. The argument `path` is the pointer of the object or
// list that has it.
func Pointer(path, name string) string { return path + "/" + escapes.Replace(name) }

// Apply applies a patch to a value, and returns the result. The function Patch must have made the patch. Apply
// changes the given value, and the result may share values with the patch. So the caller must use neither the value
// nor the patch afterwards. An operation on a list does not allocate memory, however long the list is.
func Apply(to Value, patch List) (Value, error) {
	for _, element := range patch {
		o, _ := element.(Object)
		path := o.Text("path")
		var steps []string
		if path != "" {
			steps = strings.Split(path, "/")[1:]
		}
		var fits bool
		if to, fits = applyAt(to, steps, o); !fits {
			return nil, fmt.Errorf("the operation %q does not fit the value at %q", o.Text("op"), path)
		}
	}
	return to, nil
}

// unescapes restores a name that the replacer escapes has changed.
var unescapes = strings.NewReplacer("~1", "/", "~0", "~")

// applyAt applies the operation o to the value at a JSON Pointer, whose parts are the steps. It reports whether the
// operation fits that value.
func applyAt(to Value, steps []string, o Object) (_ Value, fits bool) {
	if len(steps) == 0 {
		return o.Lookup("value")
	}
	step, rest := unescapes.Replace(steps[0]), steps[1:]
	switch to := to.(type) {
	case Object:
		return applyToObject(to, step, rest, o)
	case List:
		return applyToList(to, step, rest, o)
	default:
		return nil, false
	}
}

func applyToObject(to Object, step string, rest []string, o Object) (_ Value, fits bool) {
	op := o.Text("op")
	i := slices.IndexFunc(to, func(m Member) bool { return m.Name == step })
	switch {
	case i < 0 && len(rest) == 0 && op == "add":
		value, there := o.Lookup("value")
		return append(to, Member{step, value}), there
	case i < 0 || len(rest) == 0 && op == "add":
		return nil, false
	case len(rest) == 0 && op == "remove":
		return slices.Delete(to, i, i+1), true
	}
	to[i].Value, fits = applyAt(to[i].Value, rest, o)
	return to, fits
}

func applyToList(to List, step string, rest []string, o Object) (_ Value, fits bool) {
	op := o.Text("op")
	i, err := strconv.Atoi(step)
	adds := len(rest) == 0 && op == "add"
	switch {
	case err != nil || i < 0 || i > len(to) || i == len(to) && !adds:
		return nil, false
	case len(rest) == 0 && op == "remove":
		return slices.Delete(to, i, i+1), true
	case adds:
		value, there := o.Lookup("value")
		return slices.Insert(to, i, value), there
	}
	to[i], fits = applyAt(to[i], rest, o)
	return to, fits
}
