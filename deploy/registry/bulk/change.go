package bulk

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry.example/client"
	"asset-registry/assetsvc/rehearse"
)

// errOvertaken is the error for a row whose asset was changed after its changes were shown.
var errOvertaken = errors.New("somebody has changed the asset since its changes were shown, so it stays as it is: " +
	"run the command again, to see what would change now")

// plan says what an import does with the asset of a row.
type plan struct {
	steps    []step  // requests, in their order
	changes  []Fault // what they change, if the row or a file was changed: the row, the column, and the values
	tag      client.Tag
	number   string // the asset's own
	isPublic bool
	err      error // why nothing is done
}

// step is one request of a plan. It keeps the tag of the asset.
type step func(ctx context.Context, w *work) error

// refusals is the error for a row that the registry would refuse.
type refusals []Fault

// Error implements error.
func (r refusals) Error() string { return r[0].Text }

func (w *work) refuse(f Fault) { w.refused = append(w.refused, f) }

// change notes a change, once for all fields of a column that change alike.
func (w *work) change(column, says string, args ...any) {
	if f := (Fault{w.row.Number, column, fmt.Sprintf(says, args...)}); !slices.Contains(w.plan.changes, f) {
		w.plan.changes = append(w.plan.changes, f)
	}
}

// look compares the row with its asset, and plans what is to be done.
func (w *work) look(ctx context.Context) error {
	w.plan, w.refused = plan{}, nil
	if err := w.prove(ctx); err != nil {
		return err
	}
	w.plan.tag, w.plan.number, w.plan.isPublic = w.tag, w.held.AssetID, w.held.Status != client.Draft
	sums, err := w.row.sums()
	if err != nil {
		return err
	}
	isNew := !w.row.left && w.at.sums.Same != sums.Same && w.at.sums.Bytes != sums.Bytes
	if isNew {
		if err := w.planFields(); err != nil {
			return err
		}
	}
	switch isDraft := w.held.Status == client.Draft; {
	case isDraft && w.row.left:
		w.plan.steps = append(w.plan.steps, func(ctx context.Context, w *work) error {
			return w.calls.do(ctx, func() error { return w.Registry.Remove(ctx, w.at.id, w.write()) })
		})
	case isDraft:
		w.plan.steps = append(w.plan.steps, func(ctx context.Context, w *work) error { return w.publish(ctx) })
	}
	if w.held.Status != client.Draft || !w.row.left {
		if err := w.planDocuments(isNew); err != nil {
			return err
		}
	}
	if w.row.left {
		w.plan.steps = append(w.plan.steps, patch(client.Fields{"status": client.Deleted}))
		w.change("", "the asset %s %s is deleted: its row %s is not in the table",
			w.held.AssetID, quoted(w.held.Title), quoted(ReadReference(w.row.Reference)))
	}
	if says := closed[w.held.Status]; says != "" && len(w.plan.steps) > 0 {
		w.refused = nil
		w.refuse(Fault{Row: w.row.Number, Text: fmt.Sprintf("the asset is in the state %s: %s", w.held.Status, says)})
	}
	if len(w.refused) > 0 {
		return w.refused
	}
	return nil
}

// act takes the steps of the plan. Each carries the tag of the asset that was shown. If the asset has another tag,
// because an answer was lost or somebody has changed it, act goes on only if the rest was shown.
func (w *work) act(ctx context.Context) error {
	w.tag = w.plan.tag
	for len(w.plan.steps) > 0 {
		err := w.plan.steps[0](ctx, w)
		if err == nil {
			w.plan.steps = w.plan.steps[1:]
			continue
		}
		if !client.IsChanged(err) {
			return err
		}
		before := w.plan
		if err := w.look(ctx); err != nil {
			return err
		}
		isNew := func(f Fault) bool { return !slices.Contains(before.changes, f) }
		if len(before.changes) > 0 &&
			(len(w.plan.steps) >= len(before.steps) || slices.ContainsFunc(w.plan.changes, isNew)) {
			return errOvertaken
		}
	}
	return nil
}

// closed says who may change an asset in a state in which its owner cannot (docs/contract.md, "States").
var closed = map[client.Status]string{
	client.Verification: "only a concierge or an administrator can take it back to pending, for the owner to change it",
	client.Active:       "only a concierge or an administrator can take it back to pending, for the owner to change it",
	client.Complete:     "nobody changes it any more",
}

// planFields plans the changes of fields. A field that the row had before, with the same value, stays as it is, so a
// change that somebody has made elsewhere is not undone.
func (w *work) planFields() error {
	asset := w.held
	asset.Status = client.Pending // differences are found in any state; look refuses those of other states
	rehearsed, err := json.Marshal(asset)
	if err != nil {
		return err
	}
	of, wanted := leaves(rehearsed), w.row.values()
	for _, list := range sortedKeys(w.row.lists) {
		if !w.at.base.aligns(list, w.row.lists[list]) {
			const says = "the row fills other elements of %s than before, so it is unclear which ones it means"
			w.refuse(Fault{w.row.Number, list, fmt.Sprintf(says, list)})
		}
	}
	maps.DeleteFunc(wanted, func(path string, value any) bool {
		return w.at.base.has(path, value) || value == nil && of[path] == nil
	})
	rehearsed = w.planPart(rehearsed, "", "", "", of, wanted, patch)
	for i := range maxElements {
		at := fmt.Sprintf("decisions.%d.", i)
		id, _ := of[at+"id"].(string)
		rehearsed = w.planPart(rehearsed, "decisions", id, at, of, wanted, func(change client.Fields) step {
			return send(func(ctx context.Context, w *work) (client.Tagged, error) {
				decisions := w.Registry.Decisions(w.at.id)
				if id != "" {
					changed, err := decisions.Patch(ctx, id, change, w.write())
					return changed.Tagged, err
				}
				var decision client.Decision
				text, err := json.Marshal(change)
				if err := errors.Join(err, json.Unmarshal(text, &decision)); err != nil {
					return decision.Tagged, err
				}
				added, err := decisions.Add(ctx, decision, w.write())
				return added.Tagged, err
			})
		})
	}
	after := leaves(rehearsed)
	for _, path := range paths(of, after) {
		// The registry gives ids to the elements that are added: these are no changes of the row.
		if _, isOfRow := wanted[path]; of[path] != after[path] && (isOfRow || !strings.HasSuffix(path, ".id")) {
			w.change(w.row.column(path), "%s becomes %s", shown(of[path]), shown(after[path]))
		}
	}
	return nil
}

// planPart plans the change of the asset, or of the part at a path. The argument `fields` has the wanted values, and
// `of` those of the asset, by their paths. It returns the rehearsed asset after the change.
func (w *work) planPart(
	rehearsed []byte, part, id, at string, of, fields map[string]any, send func(client.Fields) step,
) []byte {
	change := map[string]any{}
	for _, path := range paths(fields) {
		inner, ok := strings.CutPrefix(path, at)
		if !ok || at == "" && strings.HasPrefix(path, "decisions.") {
			continue
		}
		name, _, isInner := strings.Cut(inner, ".")
		if _, begun := change[name]; isInner && !begun { // lists are sent whole, with their ids
			for _, stored := range paths(of) {
				if rest, ok := strings.CutPrefix(stored, at+name+"."); ok {
					change[name], _ = put(change[name], strings.Split(rest, "."), of[stored])
				}
			}
		}
		if _, ok = put(change, strings.Split(inner, "."), fields[path]); !ok {
			const says = "the asset lacks the elements before this one, so it cannot be added"
			w.refuse(Fault{w.row.Number, w.row.column(path), says})
		}
	}
	if len(change) == 0 {
		return rehearsed
	}
	text, _ := json.Marshal(change) // values of JSON
	after, faults := rehearse.Change(rehearsed, part, id, text)
	for _, f := range faults {
		w.refuse(w.row.fault(at+f.Name, f.Text))
	}
	if string(after) != string(rehearsed) {
		w.plan.steps = append(w.plan.steps, send(client.Fields(change)))
	}
	return after
}

// send returns a step that makes a request.
func send(call func(ctx context.Context, w *work) (client.Tagged, error)) step {
	return func(ctx context.Context, w *work) error {
		return w.calls.do(ctx, func() error {
			of, err := call(ctx, w)
			if err == nil {
				w.tag = of.Tag
			}
			return err
		})
	}
}

// patch returns a step that changes fields of the asset.
func patch(change client.Fields) step {
	return send(func(ctx context.Context, w *work) (client.Tagged, error) {
		changed, err := w.Registry.Patch(ctx, w.at.id, change, w.write())
		return changed.Tagged, err
	})
}

// leaves returns the values in a text of JSON, by their paths.
func leaves(text []byte) map[string]any {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	_ = decoder.Decode(&value) // the text is this program's, or was checked
	found := map[string]any{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, inner := range v {
				walk(join(path, name), inner)
			}
		case []any:
			for i, inner := range v {
				walk(join(path, strconv.Itoa(i)), inner)
			}
		default:
			found[path] = value
		}
	}
	walk("", value)
	return found
}

// paths returns the paths of values in an order in which an element of a list stands before the next one.
func paths(of ...map[string]any) []string {
	all := map[string]any{}
	for _, values := range of {
		maps.Copy(all, values)
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(a, b string) int {
			return cmp.Or(len(a)-len(b), strings.Compare(a, b))
		})
	})
}

// put puts a value into objects and lists of JSON. It reports false if a list lacks the elements before it.
func put(into any, path []string, value any) (any, bool) {
	if len(path) == 0 {
		return value, true
	}
	if at, err := strconv.Atoi(path[0]); err == nil {
		list, _ := into.([]any)
		if at > len(list) {
			return into, false
		}
		if at == len(list) {
			list = append(list, nil)
		}
		inner, ok := put(list[at], path[1:], value)
		list[at] = inner
		return list, ok
	}
	object, _ := into.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	inner, ok := put(object[path[0]], path[1:], value)
	object[path[0]] = inner
	return object, ok
}

// shown returns a value for a reader: texts in quotes, and a day without its time.
func shown(value any) string {
	text := fmt.Sprint(value)
	if value == nil {
		text = ""
	}
	day, rest, ok := strings.Cut(text, "T00:00:00")
	if ok && len(day) == len(time.DateOnly) && len(rest) <= len(".000000+00:00") {
		text = day
	}
	return quoted(text)
}

// base has a short hash of each value that a row had when it was last sent, so that a later import knows what the
// office has changed since. The zero value knows nothing.
type base string

// hashed is the length of a hash in a base.
const hashed = 8

func hashOf(path string, value any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%v", path, value))
	return base64.RawURLEncoding.EncodeToString(sum[:hashed*6/8])
}

func (b base) has(path string, value any) bool {
	hash := hashOf(path, value)
	for at := 0; at+hashed <= len(b); at += hashed {
		if string(b[at:at+hashed]) == hash {
			return true
		}
	}
	return false
}

// aligns reports whether the elements that a row fills in a list are those of its asset. The argument `names` has the
// numbers of the elements in the mapping: they begin with the former ones, or the former ones begin with them.
func (b base) aligns(list string, names []string) bool {
	known := b.has(list, "")
	for i := range maxElements {
		if i >= len(names) {
			last, _ := strconv.Atoi(names[i-1])
			names = append(slices.Clone(names), strconv.Itoa(last+1))
		}
		switch {
		case known && b.has(list, strings.Join(names[:i+1], " ")):
			return true
		case !known && names[i] != strconv.Itoa(i):
			return false
		}
	}
	return !known
}

// base returns the hashes of the row.
func (r Row) base() base {
	var text strings.Builder
	values := r.values()
	for i, d := range r.Documents {
		for name, value := range d.values() {
			values[fmt.Sprintf("%s.%d.%s", documents, i, name)] = value
		}
	}
	for path, value := range values {
		text.WriteString(hashOf(path, value))
	}
	for list, names := range r.lists {
		text.WriteString(hashOf(list, "") + hashOf(list, strings.Join(names, " ")))
	}
	return base(text.String())
}

// values returns the values of the row by the paths of their fields; nil stands for a cell that clears its field.
func (r Row) values() map[string]any {
	found := leaves(r.asset)
	for _, path := range r.cleared {
		found[path] = nil
	}
	return found
}
