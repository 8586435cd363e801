// Package rehearse checks, by the rules of the registry, an asset that a broker is going to create and publish,
// or one of its documents. Programs that send many assets use it before they send the first one.
//
// The package does not know the settings of an operator. So it accepts any assetType, sandboxParameters, and
// all codes of the schemes for which an operator may supply a list. The registry itself may still refuse such
// values.
package rehearse

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
)

// Fault is one thing that the registry would refuse or ignore.
type Fault struct {
	Name string // dotted path of the field; "data": the asset or document as a whole
	Text string // error text of the registry
}

// ignored is the text of a fault for a field that the registry would ignore.
const ignored = "The registry ignores this field."

// rehearsal is one run of the rules.
type rehearsal struct {
	rules asset.Rules
	ids   int // number of ids that newID has made
}

func (r *rehearsal) newID() string {
	r.ids++
	return fmt.Sprintf("%032x", r.ids)
}

// now is the time that is passed to the rules. No fault depends on it.
var now = time.Unix(0, 0).UTC()

var owner = asset.Caller{Role: asset.Owner}

// Asset returns the faults that the registry would find if an owner created an asset and then published it. The
// argument is the asset as a JSON object.
func Asset(data []byte) []Fault {
	fields, err := object(data)
	if err != nil {
		return faultsOf(err)
	}
	r := rehearsal{rules: asset.Rules{Types: typesOf(fields), Sandbox: true, Zone: time.UTC}}
	draft, err := r.rules.Create(fields, asset.Origin{ID: r.newID(), Owner: "owner", Now: now, NewID: r.newID})
	if err != nil {
		return faultsOf(err)
	}
	faults := ignoredBy(draft)
	_, _, err = r.rules.Change(draft, asset.Change{
		Fields: record.Object{{Name: "status", Value: string(asset.Pending)}},
		Caller: owner, Dated: now, Now: now, NewID: r.newID,
	})
	return append(faults, faultsOf(err)...)
}

// Change returns the asset after its owner has changed it, or one of its parts, and the faults for which the registry
// would refuse or ignore the change. The argument `stored` is the asset as the registry shows it, and `part` is a
// segment of a path, such as decisions. If part is "", the asset itself is changed; if id is "", the part is new.
func Change(stored []byte, part, id string, change []byte) (after []byte, faults []Fault) {
	before, err := asset.Decode(stored)
	fields, wrong := object(change)
	if err != nil || wrong != nil {
		return stored, faultsOf(errors.Join(err, wrong))
	}
	zone := time.UTC // the registry writes its own dates in its zone
	if dated, err := time.Parse(time.RFC3339, before.Fields().Text("date")); err == nil {
		zone = dated.Location()
	}
	r := rehearsal{rules: asset.Rules{Types: typesOf(before.Fields()), Sandbox: true, Zone: zone}}
	var changed asset.Asset
	if part == "" {
		changed, _, err = r.rules.Change(before, asset.Change{
			Fields: fields, Caller: owner, Dated: now, Now: now, NewID: r.newID,
		})
	} else {
		c := asset.PartChange{
			Part: partOf(part), Verb: asset.Merge, ID: id, Fields: fields, Caller: owner, Now: now, NewID: r.newID,
		}
		if id == "" {
			c.Verb = asset.Add
		}
		changed, _, err = r.rules.ChangePart(before, c)
	}
	if err != nil {
		return stored, faultsOf(err)
	}
	return changed.Encode(), ignoredBy(changed)
}

// published is an asset in a state in which documents can be added.
var published = func() asset.Asset {
	a, err := asset.Decode([]byte(`{"id":"0","status":"pending","documents":[{"documentType":"informationDetails"}]}`))
	if err != nil {
		panic(err)
	}
	return a
}()

// partOf returns a kind of part.
func partOf(path string) asset.Part {
	parts := asset.Parts()
	return parts[slices.IndexFunc(parts, func(p asset.Part) bool { return p.Path == path })]
}

// Document returns the faults that the registry would find if the owner of a published asset added a document to it.
// The argument is the document as a JSON object.
func Document(data []byte) []Fault {
	fields, err := object(data)
	if err != nil {
		return faultsOf(err)
	}
	r := rehearsal{rules: asset.Rules{Zone: time.UTC}}
	changed, _, err := r.rules.ChangePart(published, asset.PartChange{
		Part: partOf("documents"), Verb: asset.Add, Fields: fields, Caller: owner, Now: now, NewID: r.newID,
	})
	if err != nil {
		return faultsOf(err)
	}
	return ignoredBy(changed)
}

// Canonical returns the form that all JSON texts with the same meaning share (docs/contract.md, "Idempotency"), or the
// faults for which the registry would refuse the text, such as a repeated name.
func Canonical(text []byte) ([]byte, []Fault) {
	value, err := record.Parse(text)
	return record.Append(nil, record.Canonical(value)), faultsOf(err)
}

// object parses a JSON object by the rules that the registry uses for requests.
func object(text []byte) (record.Object, error) {
	value, err := record.Parse(text)
	if err != nil {
		return nil, err
	}
	fields, ok := value.(record.Object)
	if !ok {
		return nil, fault.New(fault.Invalid, fault.Body, "data", "This must be an object.")
	}
	return fields, nil
}

// typesOf returns the asset types to accept: the type that the asset has, whatever it is. For an asset without a
// type, it returns "bounce".
func typesOf(fields record.Object) []string {
	if sent := fields.Text("assetType"); sent != "" {
		return []string{sent}
	}
	return []string{"bounce"}
}

// ignoredBy returns a fault for each field that the rules have ignored, except the ids of parts: they may be
// placeholders.
func ignoredBy(a asset.Asset) (faults []Fault) {
	for _, name := range a.Ignored() {
		if !strings.HasSuffix(name, ".id") {
			faults = append(faults, Fault{name, ignored})
		}
	}
	return faults
}

// faultsOf returns the details of a fault of the rules. It returns no details for a nil error.
func faultsOf(err error) (faults []Fault) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok && err != nil {
		return []Fault{{"data", err.Error()}}
	}
	if ok {
		for _, d := range f.Details {
			faults = append(faults, Fault{d.Name, d.Description})
		}
	}
	return faults
}
