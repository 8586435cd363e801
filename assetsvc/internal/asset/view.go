package asset

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/assetfields"
)

// View shows assets in the form of one version of the API. It leaves out the fields of later versions, at any
// depth (docs/contract.md, "Versions"). It may also hide groups of fields. It is derived from the field table.
// A View is immutable and safe for concurrent use.
type View struct {
	asset  *hiding
	access *hiding  // fields that are hidden in the access block of the answer to a creation
	marks  [][]byte // the names of all hidden fields of the asset, as JSON strings
}

// hiding lists the fields that a view leaves out in the objects of one model. Nil means that it leaves out
// none.
type hiding struct {
	fields map[string]bool
	within map[string]*hiding // keys: names of fields; values: the fields left out within the values of these fields
}

// NewView returns the view of a version. The view also leaves out the fields of the hidden groups.
func NewView(v Version, hidden ...Group) *View {
	view := &View{asset: assetModel.hiding(v, hidden), access: accessModel.hiding(v, nil)}
	for _, path := range view.Hidden() {
		name := path[strings.LastIndexByte(path, '.')+1:]
		view.marks = append(view.marks, record.AppendString(nil, name))
	}
	return view
}

// hiding returns the fields that a view leaves out, in a model and in the models within it. These are the fields that a
// version lacks, and the fields of hidden groups.
func (m *model) hiding(v Version, hidden []Group) *hiding {
	h := &hiding{fields: map[string]bool{}, within: map[string]*hiding{}}
	for _, f := range m.fields {
		if v.before(f.since) || slices.Contains(hidden, f.group) {
			h.fields[f.name] = true
		} else if inner := modelOf(f.of); inner != nil {
			if below := inner.hiding(v, hidden); below != nil {
				h.within[f.name] = below
			}
		}
	}
	if len(h.fields)+len(h.within) == 0 {
		return nil
	}
	return h
}

// Hidden returns the dotted paths of the hidden fields, without the indexes of lists. Fields of the asset itself come
// first, then fields one level deeper, and so on. Paths of the same level are sorted.
func (v *View) Hidden() []string {
	paths := v.asset.paths("", nil)
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "."), strings.Count(b, ".")), cmp.Compare(a, b))
	})
	return paths
}

// paths appends the paths of the hidden fields to the given list. The parameter `parent` is the path of the object that
// h belongs to.
func (h *hiding) paths(parent string, paths []string) []string {
	if h == nil {
		return paths
	}
	for name := range h.fields {
		paths = append(paths, record.Join(parent, name))
	}
	for name, below := range h.within {
		paths = below.paths(record.Join(parent, name), paths)
	}
	return paths
}

// IsWhole reports whether the view has every field of an asset.
func (v *View) IsWhole() bool { return v.asset == nil }

// MayHide reports whether an encoded asset or field may have a hidden field. If the result is false, it has none.
// If the result is true, it may still have none; this costs only time.
func (v *View) MayHide(encoded []byte) bool {
	return slices.ContainsFunc(v.marks, func(mark []byte) bool { return bytes.Contains(encoded, mark) })
}

// AppendMembers appends the members of an encoded asset that are wanted and visible, each after a comma. A member
// without hidden fields is copied without parsing.
func (v *View) AppendMembers(dst, encoded []byte, wanted func(name string) bool) ([]byte, error) {
	for name, value := range record.Members(encoded) {
		if value == nil {
			return nil, fmt.Errorf("the stored asset is damaged after field %q", name)
		}
		if !wanted(name) || v.asset.hides(name) {
			continue
		}
		dst = append(record.AppendString(append(dst, ','), name), ':')
		below := v.asset.below(name)
		if below == nil || !v.MayHide(value) {
			dst = append(dst, value...)
			continue
		}
		parsed, err := record.Parse(value)
		if err != nil {
			return nil, err
		}
		dst = record.Append(dst, below.prune(parsed))
	}
	return dst, nil
}

// Access returns the access block of a creation in the form of the version.
func (v *View) Access(access record.Object) record.Object {
	shown, _ := v.access.prune(access).(record.Object)
	return shown
}

// Part returns a part in the form of the version. The part must be a result of Asset.Part or Rules.ChangePart.
func (v *View) Part(p Part, part record.Object) record.Object {
	if part == nil {
		return nil
	}
	below := v.asset.below(p.field)
	shown, _ := below.prune(part).(record.Object)
	if previous, there := part.Lookup(previousVersions); there {
		shown = withThumbnails(shown.With(previousVersions, below.prune(previous)))
	}
	return shown
}

// Parts returns a list of parts in the form of the version.
func (v *View) Parts(p Part, parts record.List) record.List {
	shown, _ := v.asset.below(p.field).prune(parts).(record.List)
	return shown
}

// Patch returns a JSON Patch of an asset (RFC 6902) without operations on hidden fields. The values of the remaining
// operations have no hidden fields either.
func (v *View) Patch(patch record.List) record.List {
	if v.IsWhole() {
		return patch
	}
	shown := make(record.List, 0, len(patch))
	for _, element := range patch {
		operation, _ := element.(record.Object)
		at, visible := v.asset.follow(operation.Text("path"))
		if !visible {
			continue
		}
		if value, there := operation.Lookup("value"); there && at != nil {
			operation = operation.With("value", at.prune(value))
		}
		shown = append(shown, operation)
	}
	return shown
}

// follow follows a JSON Pointer (RFC 6901). The result `below` has the fields that are hidden within the value at the
// pointer. The result `visible` reports whether the value itself is visible.
func (h *hiding) follow(pointer string) (below *hiding, visible bool) {
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if step == "" || isIndex(step) {
			continue
		}
		if h.hides(step) {
			return nil, false
		}
		h = h.below(step)
	}
	return h, true
}

// isIndex reports whether a step of a pointer is the index of a list, or "-", which stands for the end of a
// list. No field has a name of this form.
func isIndex(step string) bool { return strings.Trim(step, "0123456789-") == "" }

func (h *hiding) hides(name string) bool { return h != nil && h.fields[name] }

// The method `below` returns what is hidden within the value of a field.
func (h *hiding) below(name string) *hiding {
	if h == nil {
		return nil
	}
	return h.within[name]
}

// prune returns an object, or every object of a list, without the hidden fields.
func (h *hiding) prune(value record.Value) record.Value {
	if h == nil {
		return value
	}
	switch v := value.(type) {
	case record.List:
		shown := make(record.List, len(v))
		for i, element := range v {
			shown[i] = h.prune(element)
		}
		return shown
	case record.Object:
		shown := make(record.Object, 0, len(v))
		for _, m := range v {
			if !h.fields[m.Name] {
				shown = append(shown, record.Member{Name: m.Name, Value: h.within[m.Name].prune(m.Value)})
			}
		}
		return shown
	default:
		return value
	}
}

// Version is the name of a version of the API, such as "2.5". The zero value
// stands for the newest version, which has every field.
type Version string

// The method `before` reports whether the version v is older than the version `since`, in which a field was added.
// If `since` is "", all versions have the field, and the result is false.
func (v Version) before(since Version) bool {
	if v == "" || since == "" {
		return false
	}
	major, minor := v.numbers()
	sinceMajor, sinceMinor := since.numbers()
	return major < sinceMajor || major == sinceMajor && minor < sinceMinor
}

// numbers returns the two numbers of a version. Versions are compared by these numbers, because 2.10 is newer than
// 2.9.
func (v Version) numbers() (major, minor int) {
	first, second, _ := strings.Cut(string(v), ".")
	major, _ = strconv.Atoi(first) // cannot fail: a test checks every version of the field table
	minor, _ = strconv.Atoi(second)
	return major, minor
}

// Group is a group of fields that an operator may hide from callers without an API key (docs/contract.md, "Hidden
// fields"). The field table names the group of each field. An operator cannot hide fields whose group is "".
type Group = assetfields.Group

// The groups.
const (
	Contacts  = assetfields.Contacts
	Addresses = assetfields.Addresses
	Locations = assetfields.Locations
)

var groups = []Group{Contacts, Addresses, Locations}

// ParseGroups returns the groups with these names, sorted and without duplicates. The error lists the names
// that do not exist.
func ParseGroups(names []string) ([]Group, error) {
	var all []Group
	var faults []error
	for _, name := range names {
		if !slices.Contains(groups, Group(name)) {
			known := strings.Trim(fmt.Sprint(groups), "[]")
			faults = append(faults, fmt.Errorf("there is no group %q of fields to hide; the groups are %s", name, known))
		}
		all = append(all, Group(name))
	}
	slices.Sort(all)
	return slices.Compact(all), errors.Join(faults...)
}

// HasGroups reports whether every group in the second list is also in the first one.
func HasGroups(others, some []Group) bool {
	return !slices.ContainsFunc(some, func(g Group) bool { return !slices.Contains(others, g) })
}
