// Package assetfields is the list of the fields of an asset. A row says all that is known of a field. From the rows
// follow the rules of the asset service, the OpenAPI documents, the names on pages, the columns of exports and the
// fields that a search looks at.
package assetfields

import "strings"

// Object is a type of objects. The order of its fields is the order in answers.
type Object struct {
	Name   string // name in errors
	Title  string // name in the OpenAPI documents; "": the name in errors
	About  string // a sentence for the OpenAPI documents
	Fields []Field
}

// Field is a row of the list.
type Field struct {
	Name     string
	Kind     Kind     // "": the values are objects
	Of       *Object  // type of the objects
	Choices  []string // the values of a Choice
	Is       Flags
	By       Writers // only of fields of the asset itself; the fields inside have the same writers
	Since    string  // the first version of the API that has the field; "": all have it
	Group    Group   // an operator may hide the field, and all fields below it; "": never
	Default  string  // value of a new object, if the client sends none
	Column   int     // place among the columns of exports; 0: none. The fields above it need a place too
	ColumnEn int     // the same for the field in English
	Search   Search  // searches find words of the field. The fields above it need a search too
	Uk, En   string  // name for people; "": another row with the same name has it
	Shown    Shape   // form on a page; "": the form of the kind
	About    string  // a sentence for the OpenAPI documents
	Example  any
}

// Kind is a type of plain values, in words. The asset service has the rules of each kind. A Choice has its values in
// the row.
type Kind string

// Kinds that more than the asset service knows.
const (
	Choice       Kind = "choice"
	Coordinate   Kind = "coordinate"
	IdentifierID Kind = "identifier id"
	Integer      Kind = "integer"
	OwnID        Kind = "own id"    // clients may choose it
	ServerID     Kind = "server id" // the service chooses it
	Quantity     Kind = "quantity"
)

// Flags are facts about a field.
type Flags uint

// The flags.
const (
	Required    Flags = 1 << iota // clients must send the field
	List                          // the value is a list
	Translated                    // there are fields for English and Russian, which end in _en and _ru
	Dropped                       // the value is checked, but never stored
	Given                         // all assets have a value, which the service sets
	Ours                          // a field of a part, set by the service; values that clients send are ignored
	Keeps                         // a PUT without the field does not change it
	SandboxOnly                   // only a sandbox has the field
	Renamed                       // people call it otherwise than other fields of the same name
	Unsuggested                   // clients may send the field, but errors do not suggest it as the nearest name
)

// Has reports whether all these flags are set.
func (f Flags) Has(all Flags) bool { return f&all == all }

// Writers is a set of occasions on which a client writes a field of the asset (docs/contract.md, "Writable fields").
type Writers uint

// The occasions.
const (
	AtCreation Writers = 1 << iota // the broker creates the asset
	ByOwner
	ByConcierge
	ByAdministrator
	ByOwnerPublishing // the owner takes the asset from draft to pending
)

// Names returns who may write a field and when, in the words that the API's description uses.
func (w Writers) Names() []string {
	var names []string
	for _, occasion := range []struct {
		is   Writers
		name string
	}{
		{AtCreation, "creation"},
		{ByOwner, "owner"},
		{ByOwnerPublishing, "owner, in the step from draft to pending"},
		{ByConcierge, "concierge"},
		{ByAdministrator, "administrator"},
	} {
		if w&occasion.is != 0 {
			names = append(names, occasion.name)
		}
	}
	return names
}

// Group is a group of fields that an operator may hide from callers without an API key (docs/contract.md, "Hidden
// fields").
type Group string

// The groups.
const (
	Contacts  Group = "contacts"  // persons and their telephones, addresses and pages
	Addresses Group = "addresses" // street and postal code, but not region and locality
	Locations Group = "locations" // coordinates
)

// Search says which words of a field a search finds.
type Search int

// The words.
const (
	Own Search = 1 + iota // of the field itself
	All                   // also of the fields for English and Russian
)

// Shape is the form in which a page shows a value, in a word: time (of Kyiv), day (in the zone that the sender wrote),
// word (a value of a list, which has a name), telephone, mail, link, code (an id, a hash), unit (the code of a unit),
// prose (a text in which addresses become links), media or bytes. Otherwise it is "".
type Shape string

// shapes has the forms of kinds that are not shown as text.
var shapes = map[Kind]Shape{
	"asset type": "word", Choice: "word", "digest": "code", "document address": "link", "document type": "word",
	"email address": "mail", "media type": "media", "mode": "word", OwnID: "code", "prose": "prose", "reference": "code",
	ServerID: "code", "state": "word", "timestamp": "time", "web address": "link",
}

// Words has the names for people of values of the asset itself: a field and a value, in Ukrainian and in English.
var Words = map[string][2]string{
	"status/draft":        {"Чернетка", "Draft"},
	"status/pending":      {"Опубліковано", "Published"},
	"status/verification": {"На перевірці", "Under verification"},
	"status/active":       {"Виставлено на продаж", "Up for sale"},
	"status/complete":     {"Завершено", "Complete"},
	"status/deleted":      {"Знято з реєстру", "Removed"},
	"assetType/bounce":    {"Майно для приватизації", "Property for privatisation"},
}

// languages are the endings of the fields of a translated field, with the end of their sentence.
var languages = [][2]string{{"_en", " In English."}, {"_ru", " In Russian."}}

// All returns the rows of an object, with a row for each language of a translated field.
func (o *Object) All() []Field {
	var all []Field
	for _, f := range o.Fields {
		if f.Shown == "" {
			f.Shown = shapes[f.Kind]
		}
		all = append(all, f)
		if !f.Is.Has(Translated) {
			continue
		}
		for _, l := range languages {
			other := Field{Name: f.Name + l[0], Kind: f.Kind, By: f.By, Since: f.Since, Group: f.Group, Shown: f.Shown,
				About: f.About + l[1]}
			if l[0] == "_en" {
				other.Column = f.ColumnEn
			}
			if f.Search == All {
				other.Search = Own
			}
			all = append(all, other)
		}
	}
	return all
}

// Each calls the function `visit` for each plain field of the object and of the objects in it. The rows lead to the
// field, which comes last.
func (o *Object) Each(visit func(rows []Field)) { o.each(nil, visit) }

func (o *Object) each(above []Field, visit func(rows []Field)) {
	for _, f := range o.All() {
		rows := append(above[:len(above):len(above)], f)
		if f.Of != nil {
			f.Of.each(rows, visit)
		} else {
			visit(rows)
		}
	}
}

// Path returns the path of a field that Each visits, such as assetCustodian.name.
func Path(rows []Field) string {
	var names []string
	for _, f := range rows {
		names = append(names, f.Name)
	}
	return strings.Join(names, ".")
}
