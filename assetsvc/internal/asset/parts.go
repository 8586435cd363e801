package asset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
)

// Verb is the kind of change that a request makes to a part.
type Verb int

// The verbs.
const (
	Add     Verb = iota
	Merge        // merge the sent fields into the part
	Replace      // add a new version of the part; the old versions stay
	Remove
)

// Part is a kind of objects within an asset that have separate paths, such as items (docs/contract.md,
// "Parts").
type Part struct {
	Path  string // the segment of the path, such as items
	ID    string // the name that errors use for the id, such as item_id
	Verbs []Verb // the verbs that clients may use

	field   string // the field of the asset that lists the parts
	model   *model
	writer  Role     // the role that may change the parts
	while   []Status // the states of the asset in which that role may change parts; nil: all
	refusal string   // the error in other states; %s stands for the state
	given   []string // fields that the service sets
	fixed   []string // fields that never change once the part was added
	renewed []string // fields that a new version does not take over from the previous version
	check   listCheck
	checked string // the field that the error of the function `check` names
	// required is the name of the part in the error for a published asset that has no such part. If required is
	// "", a published asset does not need a part of this kind.
	required string
}

// parts is the table of all kinds of parts.
var parts = []Part{
	{
		Path: "items", ID: "item_id", Verbs: []Verb{Add, Merge},
		field: "items", model: itemModel,
		writer: Owner, while: []Status{Draft, Pending},
		refusal: "Can't update or create item in current (%s) asset status",
		fixed:   []string{"id"},
		check:   uniqueItems, checked: "id", required: "item",
	},
	{
		Path: "decisions", ID: "decision_id", Verbs: []Verb{Add, Merge},
		field: "decisions", model: decisionModel,
		writer: Owner, while: []Status{Draft, Pending},
		refusal: "Can't update decisions in current (%s) asset status",
		fixed:   []string{"id"},
		check:   uniqueDecisions, checked: "id", required: "decision",
	},
	{
		Path: "documents", ID: "document_id", Verbs: []Verb{Add, Merge, Replace},
		field: "documents", model: documentModel,
		writer: Owner, while: []Status{Pending},
		refusal: "Can't update document in current (%s) asset status",
		given:   []string{"id", "author", "datePublished", "dateModified", sha256Field, sizeField},
		fixed:   []string{"url", "hash"},
		renewed: []string{"documentType", "title", "format", "url", "hash", sha256Field, sizeField, "dateModified"},
		check:   firstInforms, checked: "documentType",
	},
	{
		Path: "related_processes", ID: "relatedProcess_id", Verbs: []Verb{Add, Merge, Remove},
		field: processesField, model: relatedProcessModel,
		writer: Concierge,
		given:  []string{"id"},
		check:  atMostOne, checked: processesField,
	},
}

// Parts returns all kinds of parts.
func Parts() []Part { return slices.Clone(parts) }

// Versioned reports whether parts of this kind keep their former versions.
func (p Part) Versioned() bool { return slices.Contains(p.Verbs, Replace) }

// Scope selects versions of parts. Parts that are not Versioned have one version.
type Scope int

// The values of Scope.
const (
	Newest      Scope = iota // the newest version of each part, in the order of their last changes
	AllVersions              // all versions, in the order in which they were added
)

// Parts returns the asset's parts of one kind.
func (a Asset) Parts(p Part, s Scope) record.List {
	list := a.fields.List(p.field)
	if s == AllVersions || !p.Versioned() {
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

// previousVersions is a field that is not stored. Only the answer to a read of a single versioned part has it.
const previousVersions = "previousVersions"

// Part returns one part, or a fault of kind NotFound. For a versioned part it returns the newest version. The
// field previousVersions then has the versions whose url differs from the newest one (docs/contract.md,
// "Document versions").
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
		version, _ := element.(record.Object)
		if version.Text("id") == id && version.Text("url") != part.Text("url") {
			previous = append(previous, version)
		}
	}
	return part.With(previousVersions, previous), nil
}

// Download returns the url of a part, from the newest version whose url contains the given key. It returns a
// fault of kind NotFound if there is no such version.
func (a Asset) Download(p Part, id, key string) (string, error) {
	if a.find(p, id) < 0 {
		return "", p.missing()
	}
	for _, element := range slices.Backward(a.fields.List(p.field)) {
		version, _ := element.(record.Object)
		if url := version.Text("url"); version.Text("id") == id && strings.Contains(url, key) {
			return url, nil
		}
	}
	return "", fault.New(fault.NotFound, fault.URL, "download", "Not Found")
}

// find returns the index of a part's newest version in the list of parts, or -1 if the part does not exist.
func (a Asset) find(p Part, id string) int {
	for i, element := range slices.Backward(a.fields.List(p.field)) {
		if idOf(element) == id {
			return i
		}
	}
	return -1
}

// Admit returns a fault if the part does not exist, or if the caller is not allowed to change parts of this kind in any
// state of the asset. The id is "" for a new part. These faults come before all faults of the body
// (docs/contract.md, "Order of checks").
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

// PartChange is a request to change a part.
type PartChange struct {
	Part   Part
	ID     string // "" for Add
	Verb   Verb
	Fields record.Object // the fields that the client sent; nil for Remove
	File   File          // hash and size of the registry's file at the url; zero: no file, or not uploaded yet
	Caller
	Version Version // version of the API that the caller uses
	Now     time.Time
	NewID   func() string // returns a new id: 32 lowercase hex characters
}

// ChangePart returns the asset and the part after the change. If the request changes nothing, the returned asset
// equals the given one. Every error is a fault. With an error, the returned asset is the given one, and the part is
// nil. The part is nil after Remove, too. If the fields have faults and the state forbids the change, the faults of
// the fields are reported (docs/contract.md, "Order of checks").
func (r Rules) ChangePart(a Asset, c PartChange) (Asset, record.Object, error) {
	p := c.Part
	if err := a.Admit(c.Caller, p, c.ID); err != nil {
		return a, nil, err
	}
	w := &walk{rules: r, version: c.Version, newID: c.NewID, stored: a.fields}
	list, part := w.part(a.fields.List(p.field), a.find(p, c.ID), c)
	fields := a.fields.With(p.field, list)
	if len(list) == 0 {
		fields = fields.Without(p.field)
	}
	if len(w.details) == 0 {
		p.check(w, p.checked, list)
		w.keepsLot(a.Status(), fields)
	}
	if err := w.fault(); err != nil {
		return a, nil, err
	}
	if p.while != nil && !slices.Contains(p.while, a.Status()) {
		return a, nil, fault.New(fault.Forbidden, fault.Body, "data", p.refusal, a.Status())
	}
	return finish(fields, w.names), part, nil
}

// part returns the list after a change, and the changed part. The argument `at` is the index of the part in the
// list; the verb Add ignores it.
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
		part := w.fill(c.Part, old, w.drop(c.Part, c.Part.fixed, c.Fields, old))
		if c.Part.Versioned() && !record.Equal(part, old) {
			part = part.With("dateModified", w.time(c.Now))
		}
		list[at] = part
		return list, part
	case Replace:
		sent := w.drop(c.Part, nil, c.Fields, old, c.File.in(old))
		part := c.File.in(w.fill(c.Part, old.Without(c.Part.renewed...), sent))
		if record.Equal(part, old.Without("dateModified")) {
			return list, old
		}
		part = c.Part.model.ordered(part.With("dateModified", w.time(c.Now)))
		return append(list, part), part
	default:
		given := c.Part.new(c.NewID(), w.time(c.Now))
		part := c.File.in(w.fill(c.Part, given, w.drop(c.Part, nil, c.Fields, c.File.in(given))))
		return append(list, part), part
	}
}

// fill merges the sent fields into a part.
func (w *walk) fill(p Part, into, sent record.Object) record.Object {
	part, _ := p.model.convert(w, "", into, sent).(record.Object)
	return part
}

// drop returns the sent fields, except the fixed fields and the fields that the service sets. It checks the types
// of the dropped fields, and notes their names as ignored. It does not note a field whose sent value equals the
// value in `stored` or in one of the objects in `others`.
func (w *walk) drop(p Part, fixed []string, sent, stored record.Object, others ...record.Object) record.Object {
	for _, f := range p.model.fields {
		if !slices.Contains(p.given, f.name) && !slices.Contains(fixed, f.name) {
			continue
		}
		if in, isSent := sent.Lookup(f.name); isSent {
			values := make([]record.Value, 0, len(others))
			for _, other := range others {
				values = append(values, other.Get(f.name))
			}
			w.ignored(f, in, stored.Get(f.name), values...)
			sent = sent.Without(f.name)
		}
	}
	return sent
}

// new returns a new part with the fields that the service sets.
func (p Part) new(id, now string) record.Object {
	values := map[string]string{"id": id, "author": "asset_owner", "datePublished": now, "dateModified": now}
	part := make(record.Object, 0, len(p.given))
	for _, name := range p.given {
		if value := values[name]; value != "" {
			part = append(part, record.Member{Name: name, Value: value})
		}
	}
	return part
}

func idOf(element record.Value) string {
	part, _ := element.(record.Object)
	return part.Text("id")
}

// modified returns the time of a part's last change. It returns the zero time if the part has no valid time. The
// service never stores a part without this time.
func modified(element record.Value) time.Time {
	part, _ := element.(record.Object)
	t, err := ParseTime(part.Text("dateModified"), time.UTC)
	if err != nil {
		return time.Time{}
	}
	return t
}

// The fields of a document that describe its file, if this registry keeps the file (docs/contract.md, "Files").
const (
	sha256Field = "sha256"
	sizeField   = "size"
)

// File has the hash and the size of a file of this registry, as a document states them. The zero value means that the
// document has no such file.
type File struct {
	SHA256 string // 64 hexadecimal digits
	Size   int64
}

// The method `in` returns a document with the hash and the size of f. The zero File changes nothing.
func (f File) in(document record.Object) record.Object {
	if f.SHA256 == "" {
		return document
	}
	size := record.Number(strconv.FormatInt(f.Size, 10))
	return documentModel.ordered(document.With(sha256Field, f.SHA256).With(sizeField, size))
}

// thumbnails is a field that is not stored. Only the answer to a read of a single document has it.
const thumbnails = "thumbnails"

// withThumbnails adds the addresses of the small versions of a document's file. It does so only if the document
// is an illustration, and the document's file is a picture that this registry keeps (docs/files.md, "Pictures").
func withThumbnails(document record.Object) record.Object {
	isOurs := document.Text(sha256Field) != ""
	if !isOurs || document.Text("documentType") != filelink.Illustration || !filelink.IsPicture(document.Text("format")) {
		return document
	}
	var all record.List
	for _, side := range []int{filelink.SmallPicture, filelink.LargePicture} {
		all = append(all, record.Object{
			{Name: "url", Value: filelink.Picture(document.Text("url"), side)},
			{Name: "side", Value: record.Number(strconv.Itoa(side))},
		})
	}
	return document.With(thumbnails, all)
}

// FileIn returns the hash and the size that a document has for its file.
func FileIn(document record.Object) File {
	size, _ := document.Get(sizeField).(record.Number)
	n, err := strconv.ParseInt(string(size), 10, 64)
	if err != nil {
		return File{}
	}
	return File{document.Text(sha256Field), n}
}

// WithFile returns the asset after the file at the given address has arrived. Documents with this address get the
// hash and the size of the file. Documents that already have a hash do not change.
func (a Asset) WithFile(address string, f File) Asset {
	const field = "documents"
	list := slices.Clone(a.fields.List(field))
	for i, element := range list {
		document, _ := element.(record.Object)
		if document.Text("url") == address && document.Text(sha256Field) == "" {
			list[i] = f.in(document)
		}
	}
	return finish(a.fields.With(field, list), nil)
}
