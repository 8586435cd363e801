package asset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
)

// Verb is what can be asked of a part.
type Verb int

// The verbs.
const (
	Add     Verb = iota // one more
	Merge               // what is sent into what is there
	Replace             // a version by a newer one
	Remove
)

// Part is a kind of objects within an asset that have addresses of their own.
type Part struct {
	Path  string // in addresses
	ID    string // what a refusal calls the id in an address
	Verbs []Verb // what can be asked of it

	field    string // of the asset: the list of them
	model    *model
	writer   Role     // who may change them
	while    []Status // the asset is in one of these states; nil: in any
	refusal  string   // in another state
	given    []string // fields that the service gives
	fixed    []string // fields that stay as they were added
	renewed  []string // fields that a newer version does not take over from the one before
	check    func(w *walk, path string, l record.List)
	checks   string // the field that the check is about
	required string // what it is called in an asset that is not published for want of it
}

// parts is the table of contract section 3.
var parts = []Part{
	{
		Path: "items", ID: "item_id", Verbs: []Verb{Add, Merge},
		field: "items", model: &itemModel,
		writer: Owner, while: []Status{Draft, Pending}, refusal: "Can't update or create item in current (%s) asset status",
		fixed: []string{"id"},
		check: uniqueItems, checks: "id", required: "item",
	},
	{
		Path: "decisions", ID: "decision_id", Verbs: []Verb{Add, Merge},
		field: "decisions", model: &decisionModel,
		writer: Owner, while: []Status{Draft, Pending}, refusal: "Can't update decisions in current (%s) asset status",
		fixed: []string{"id"},
		check: uniqueDecisions, checks: "id", required: "decision",
	},
	{
		Path: "documents", ID: "document_id", Verbs: []Verb{Add, Merge, Replace},
		field: "documents", model: &documentModel,
		writer: Owner, while: []Status{Pending}, refusal: "Can't update document in current (%s) asset status",
		given:   []string{"id", "author", "datePublished", "dateModified"},
		fixed:   []string{"url", "hash"},
		renewed: []string{"documentType", "title", "format", "url", "hash", "dateModified"},
		check:   firstInforms, checks: "documentType",
	},
	{
		Path: "related_processes", ID: "relatedProcess_id", Verbs: []Verb{Add, Merge, Remove},
		field: "relatedProcesses", model: &relatedProcessModel,
		writer: Concierge,
		given:  []string{"id"},
		check:  atMostOne, checks: "relatedProcesses",
	},
}

// Parts returns the kinds of parts.
func Parts() []Part { return slices.Clone(parts) }

// Versioned tells whether a part keeps its former versions.
func (p Part) Versioned() bool { return slices.Contains(p.Verbs, Replace) }

// Parts returns the parts of a kind. Of what has versions it returns the newest
// of each, in the order of their changes, or all versions in the order they
// came in.
func (a Asset) Parts(p Part, all bool) record.List {
	list := a.fields.List(p.field)
	if all || !p.Versioned() {
		return slices.Clone(list)
	}
	newest := make(record.List, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, element := range slices.Backward(list) {
		if id := idOf(element); !seen[id] {
			seen[id] = true
			newest = append(newest, element)
		}
	}
	slices.Reverse(newest)
	slices.SortStableFunc(newest, func(x, y record.Value) int { return modified(x).Compare(modified(y)) })
	return newest
}

// Part returns one part, or a fault of kind NotFound. Of what has versions it
// is the newest one, with the others of another url as previousVersions
// (contract, section 3).
func (a Asset) Part(p Part, id string) (record.Object, error) {
	at := a.find(p, id)
	if at < 0 {
		return nil, p.missing()
	}
	list := a.fields.List(p.field)
	part, _ := list[at].(record.Object)
	if !p.Versioned() {
		return part, nil
	}
	previous := record.List{}
	for _, element := range list {
		if version, _ := element.(record.Object); version.Text("id") == id && version.Text("url") != part.Text("url") {
			previous = append(previous, version)
		}
	}
	return part.With("previousVersions", previous), nil
}

// Download returns the url of the newest version of a part that has key in its
// url, or a fault of kind NotFound.
func (a Asset) Download(p Part, id, key string) (string, error) {
	if a.find(p, id) < 0 {
		return "", p.missing()
	}
	for _, element := range slices.Backward(a.fields.List(p.field)) {
		if version, _ := element.(record.Object); version.Text("id") == id && strings.Contains(version.Text("url"), key) {
			return version.Text("url"), nil
		}
	}
	return "", fault.New(fault.NotFound, fault.URL, "download", "Not Found")
}

// find returns where in its list a part stands, its newest version if it has
// several; -1 if nowhere.
func (a Asset) find(p Part, id string) int {
	for i, element := range slices.Backward(a.fields.List(p.field)) {
		if idOf(element) == id {
			return i
		}
	}
	return -1
}

// Admit refuses whoever may not change a part of this asset at all, and a part
// that does not exist; id is "" for a new one. What it refuses comes before
// anything that is wrong with a body (contract, section 7).
func (a Asset) Admit(by Caller, p Part, id string) error {
	if id != "" && a.find(p, id) < 0 {
		return p.missing()
	}
	if by.Role == p.writer {
		return nil
	}
	reason := fmt.Sprintf("only the %s changes %s", p.writer, p.Path)
	if p.writer == Owner && by.NotOwner != "" {
		reason = by.NotOwner
	}
	return fault.New(fault.Forbidden, fault.URL, "permission", "Forbidden%s", because(reason))
}

func (p Part) missing() error { return fault.New(fault.NotFound, fault.URL, p.ID, "Not Found") }

// PartChange is what somebody asks to be changed of a part.
type PartChange struct {
	Part   Part
	ID     string // "" with Add
	Verb   Verb
	Fields record.Object // what was sent; nothing with Remove
	Caller
	Now   time.Time
	NewID func() string // makes ids: 32 lowercase hex characters
}

// ChangePart returns the asset after the change, which is the same if nothing
// differs, and the part, which is nil if it is removed. What is wrong with the
// fields comes before the state of the asset (contract, section 7).
func (r Rules) ChangePart(a Asset, c PartChange) (Asset, record.Object, error) {
	p := c.Part
	if err := a.Admit(c.Caller, p, c.ID); err != nil {
		return a, nil, err
	}
	w := r.walk(nil, c.NewID)
	list, part := w.part(a.fields.List(p.field), a.find(p, c.ID), c)
	fields := a.fields.With(p.field, list)
	if len(list) == 0 {
		fields = fields.Without(p.field)
	}
	if len(w.details) == 0 {
		if p.check != nil {
			p.check(w, p.checks, list)
		}
		w.keepsLot(a.Status(), fields)
	}
	if err := w.fault(); err != nil {
		return a, nil, err
	}
	if p.while != nil && !slices.Contains(p.while, a.Status()) {
		return a, nil, fault.New(fault.Forbidden, fault.Body, "data", p.refusal, a.Status())
	}
	return finish(fields), part, nil
}

// part returns a list of parts after a change of the one that stands at, and
// that one.
func (w *walk) part(list record.List, at int, c PartChange) (record.List, record.Object) {
	list = slices.Clone(list)
	var old record.Object
	if c.Verb != Add {
		old, _ = list[at].(record.Object)
	}
	switch c.Verb {
	case Remove:
		return slices.Delete(list, at, at+1), nil
	case Merge:
		part := w.fill(c.Part, old, w.drop(c.Part, c.Part.fixed, c.Fields))
		if c.Part.Versioned() && !record.Equal(part, old) {
			part = part.With("dateModified", w.time(c.Now))
		}
		list[at] = part
		return list, part
	case Replace:
		part := w.fill(c.Part, old.Without(c.Part.renewed...), w.drop(c.Part, nil, c.Fields))
		if record.Equal(part, old.Without("dateModified")) {
			return list, old
		}
		part = c.Part.model.ordered(part.With("dateModified", w.time(c.Now)))
		return append(list, part), part
	default:
		part := w.fill(c.Part, c.Part.new(c.NewID(), w.time(c.Now)), w.drop(c.Part, nil, c.Fields))
		return append(list, part), part
	}
}

// fill merges what was sent into a part.
func (w *walk) fill(p Part, into, sent record.Object) record.Object {
	part, _ := p.model.convert(w, "", into, sent).(record.Object)
	return part
}

// drop returns what was sent without the fields that the service gives and
// those that are fixed; of these only the types are judged.
func (w *walk) drop(p Part, fixed []string, sent record.Object) record.Object {
	for _, f := range p.model.fields {
		if !slices.Contains(p.given, f.name) && !slices.Contains(fixed, f.name) {
			continue
		}
		if in, there := sent.Lookup(f.name); there {
			w.ignored(f, in)
			sent = sent.Without(f.name)
		}
	}
	return sent
}

// new returns what the service gives a new part.
func (p Part) new(id, now string) record.Object {
	values := map[string]string{"id": id, "author": "asset_owner", "datePublished": now, "dateModified": now}
	part := make(record.Object, 0, len(p.given))
	for _, name := range p.given {
		part = append(part, record.Member{Name: name, Value: values[name]})
	}
	return part
}

func idOf(element record.Value) string {
	part, _ := element.(record.Object)
	return part.Text("id")
}

// modified returns when a part was last changed.
func modified(element record.Value) time.Time {
	part, _ := element.(record.Object)
	t, err := ParseTime(part.Text("dateModified"), time.UTC)
	if err != nil { // no part of ours is without
		return time.Time{}
	}
	return t
}
