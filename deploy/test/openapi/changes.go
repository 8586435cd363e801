package openapi

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// tree is a JSON object in a document.
type tree = map[string]any

// Breaks returns the changes from an old document to a new one that can break a client of the old one. The changes are
// sorted. A change breaks a client if it forbids a request that was permitted. It also breaks a client if an answer may
// now contain something that it could not contain before.
func Breaks(old, new []byte) ([]string, error) {
	c := comparison{visited: map[string]bool{}}
	if err := json.Unmarshal(old, &c.old); err != nil {
		return nil, fmt.Errorf("read the old document: %w", err)
	}
	if err := json.Unmarshal(new, &c.new); err != nil {
		return nil, fmt.Errorf("read the new document: %w", err)
	}
	for path, item := range inOrder(object(c.old["paths"])) {
		for method, operation := range inOrder(object(item)) {
			if method == "parameters" || method == "servers" {
				continue
			}
			now := object(object(object(c.new["paths"])[path])[method])
			c.operation(strings.ToUpper(method)+" "+path, object(operation), now)
		}
	}
	slices.Sort(c.breaks)
	return slices.Compact(c.breaks), nil
}

// inOrder returns the members of an object, sorted by name. So a schema that several operations share is always
// compared in the same operation. A change in the schema then always gets the same name.
func inOrder(o tree) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if !yield(name, o[name]) {
				return
			}
		}
	}
}

// comparison compares two documents.
type comparison struct {
	old, new tree
	breaks   []string
	visited  map[string]bool // pairs of references that were compared already; prevents endless recursion
}

func (c *comparison) add(format string, args ...any) {
	c.breaks = append(c.breaks, fmt.Sprintf(format, args...))
}

func object(value any) tree {
	o, _ := value.(tree)
	return o
}

// follow returns the object to which a reference leads.
func follow(document tree, value any) tree {
	o := object(value)
	ref, isRef := o["$ref"].(string)
	if !isRef {
		return o
	}
	var at any = document
	for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = object(at)[strings.ReplaceAll(step, "~1", "/")]
	}
	return follow(document, at)
}

func (c *comparison) operation(name string, old, new tree) {
	if new == nil {
		c.add("%s: removed", name)
		return
	}
	c.parameters(name, old, new)
	was, now := c.body(c.old, old), c.body(c.new, new)
	if was == nil && now != nil {
		c.add("%s: needs a body", name)
	}
	if was != nil && now != nil {
		c.sent(name+": body", was, now)
	}
	for status, response := range inOrder(object(old["responses"])) {
		then := follow(c.old, response)
		after := follow(c.new, object(new["responses"])[status])
		if after == nil { // the new document may describe this status by its answer for all other statuses
			after = follow(c.new, object(new["responses"])["default"])
		}
		if after == nil {
			c.add("%s: no longer answers %s", name, status)
			continue
		}
		for header := range object(then["headers"]) {
			if object(after["headers"])[header] == nil && object(c.new["x-common-headers"])[header] == nil {
				c.add("%s: %s lost the header %s", name, status, header)
			}
		}
		for media, content := range inOrder(object(then["content"])) {
			schema := object(object(after["content"])[media])["schema"]
			if schema == nil {
				schema = object(object(after["x-other-media"])[media])["schema"]
			}
			if schema == nil {
				c.add("%s: %s lost the media type %s", name, status, media)
				continue
			}
			c.shown(name+": "+status, object(content)["schema"], schema)
		}
	}
}

// body returns the schema of an operation's request body, or nil if it has none.
func (c *comparison) body(document, operation tree) any {
	body := follow(document, operation["requestBody"])
	return object(object(body["content"])["application/json"])["schema"]
}

// parameters compares the parameters of an operation.
func (c *comparison) parameters(name string, old, new tree) {
	then, after := byName(c.old, old), byName(c.new, new)
	for parameter, was := range then {
		now, there := after[parameter]
		if !there {
			c.add("%s: lost the parameter %s", name, parameter)
			continue
		}
		c.sent(name+": parameter "+parameter, was["schema"], now["schema"])
	}
	for parameter, now := range after {
		if _, there := then[parameter]; !there && now["required"] == true {
			c.add("%s: needs the parameter %s", name, parameter)
		}
	}
}

func byName(document, operation tree) map[string]tree {
	all := map[string]tree{}
	own, _ := operation["parameters"].([]any)
	common, _ := document["x-common-parameters"].([]any)
	list := slices.Concat(common, own)
	for _, p := range list {
		parameter := follow(document, p)
		all[fmt.Sprint(parameter["in"], " ", parameter["name"])] = parameter
	}
	return all
}

// sent compares schemas of requests. The new schema must permit everything that the old one permitted.
func (c *comparison) sent(at string, old, new any) {
	was, now, again := c.both("sent", old, new)
	if again {
		return
	}
	was, now = plain(c.old, was), plain(c.new, now)
	c.narrower(at, was, now, "no longer accepts")
	for name, property := range inOrder(object(was["properties"])) {
		after, there := object(now["properties"])[name]
		if !there && now["additionalProperties"] == false {
			c.add("%s: no longer accepts %s", at, name)
		}
		if there {
			c.sent(at+"."+name, property, after)
		}
	}
	for _, name := range missing(now["required"], was["required"]) {
		c.add("%s: needs %s", at, name)
	}
	c.inner(at, was, now, c.sent)
}

// shown compares schemas of answers. The new schema may permit only what the old one permitted.
func (c *comparison) shown(at string, old, new any) {
	was, now, again := c.both("shown", old, new)
	if again {
		return
	}
	was, now = plain(c.old, was), plain(c.new, now)
	c.narrower(at, now, was, "may now be")
	for name, property := range inOrder(object(was["properties"])) {
		after, there := object(now["properties"])[name]
		if !there {
			c.add("%s: lost %s", at, name)
			continue
		}
		c.shown(at+"."+name, property, after)
	}
	for _, name := range missing(was["required"], now["required"]) {
		c.add("%s: %s may be missing", at, name)
	}
	c.inner(at, was, now, c.shown)
}

// plain returns a schema whose anyOf is replaced by a list of types, and by a list of values if a choice has one. If
// anyOf contains more than these, it returns the schema unchanged.
func plain(document, schema tree) tree {
	choices, _ := schema["anyOf"].([]any)
	var types, values []any
	limited := false
	for _, choice := range choices {
		o := maps.Clone(follow(document, choice))
		delete(o, "x-go-type")
		enum, has := o["enum"].([]any)
		if o["type"] == nil || len(o) > 2 || len(o) == 2 && !has {
			return schema
		}
		if o["type"] == "null" {
			enum = []any{nil}
		}
		limited = limited || has
		types, values = append(types, asList(o["type"])...), append(values, enum...)
	}
	if len(types) == 0 || limited && len(values) < len(types) {
		return schema
	}
	schema = maps.Clone(schema)
	delete(schema, "anyOf")
	schema["type"] = types
	if limited {
		schema["enum"] = values
	}
	return schema
}

// The method `both` follows two references, and returns the schemas. The result `again` says whether the same pair
// was compared before.
func (c *comparison) both(direction string, old, new any) (was, now tree, again bool) {
	pair := fmt.Sprint(direction, object(old)["$ref"], object(new)["$ref"])
	if object(old)["$ref"] != nil && object(new)["$ref"] != nil {
		again = c.visited[pair]
		c.visited[pair] = true
	}
	return follow(c.old, old), follow(c.new, new), again
}

// narrower reports the values that the schema `wide` permits, but the schema `narrow` does not.
func (c *comparison) narrower(at string, wide, narrow tree, verb string) {
	for _, keyword := range []string{"type", "enum"} {
		if narrow[keyword] == nil {
			continue
		}
		if wide[keyword] == nil {
			c.add("%s: %s any %s", at, verb, keyword)
			continue
		}
		for _, value := range missing(wide[keyword], narrow[keyword]) {
			c.add("%s: %s %s", at, verb, value)
		}
	}
	for _, keyword := range []string{
		"pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "const", "format",
	} {
		if narrow[keyword] != nil && !reflect.DeepEqual(wide[keyword], narrow[keyword]) {
			c.add("%s: has another %s", at, keyword)
		}
	}
}

// inner compares the schemas in items and anyOf.
func (c *comparison) inner(at string, was, now tree, compare func(string, any, any)) {
	if was["items"] != nil && now["items"] != nil {
		compare(at+"[]", was["items"], now["items"])
	}
	then, _ := was["anyOf"].([]any)
	after, _ := now["anyOf"].([]any)
	if len(then) != len(after) {
		c.add("%s: has other choices", at)
		return
	}
	for i := range then {
		compare(at, then[i], after[i])
	}
}

// missing compares two lists, and returns the elements of the first that the second does not have, sorted. A single
// value counts as a list of one element.
func missing(of, in any) []string {
	have := map[string]bool{}
	for _, value := range asList(in) {
		have[fmt.Sprint(value)] = true
	}
	lacking := map[string]bool{}
	for _, value := range asList(of) {
		if name := fmt.Sprint(value); !have[name] {
			lacking[name] = true
		}
	}
	return slices.Sorted(maps.Keys(lacking))
}

func asList(value any) []any {
	switch v := value.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}
