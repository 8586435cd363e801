// Package rehearse applies the rules of the registry to an asset that a broker is going to create and
// publish, and to its documents. Programs that send many assets ask it before they send the first one.
//
// It does not know the settings of an operator. So it takes any assetType, sandboxParameters, and codes
// of every scheme that the operator may supply a list for. The registry has the last word.
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
	Name string // dotted path of the field; "data": the whole
	Text string // what the registry says
}

// ignored is the text of a fault for a field that the registry would ignore.
const ignored = "The registry ignores this field."

// rehearsal is one use of the rules.
type rehearsal struct {
	rules asset.Rules
	ids   int // that were given
}

func (r *rehearsal) newID() string {
	r.ids++
	return fmt.Sprintf("%032x", r.ids)
}

// now is the time of a rehearsal. No fault depends on it.
var now = time.Unix(0, 0).UTC()

var owner = asset.Caller{Role: asset.Owner}

// Asset returns what is wrong with a JSON object for an asset that its owner creates and then publishes.
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

// published is an asset that takes documents.
var published = func() asset.Asset {
	a, err := asset.Decode([]byte(`{"id":"0","status":"pending","documents":[{"documentType":"informationDetails"}]}`))
	if err != nil {
		panic(err)
	}
	return a
}()

// documents is the kind of parts that documents are.
var documents = func() asset.Part {
	parts := asset.Parts()
	return parts[slices.IndexFunc(parts, func(p asset.Part) bool { return p.Path == "documents" })]
}()

// Document returns what is wrong with a JSON object for a document that the owner of a published
// asset adds.
func Document(data []byte) []Fault {
	fields, err := object(data)
	if err != nil {
		return faultsOf(err)
	}
	r := rehearsal{rules: asset.Rules{Zone: time.UTC}}
	changed, _, err := r.rules.ChangePart(published, asset.PartChange{
		Part: documents, Verb: asset.Add, Fields: fields, Caller: owner, Now: now, NewID: r.newID,
	})
	if err != nil {
		return faultsOf(err)
	}
	return ignoredBy(changed)
}

// object reads a JSON object as the registry does.
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

// typesOf returns the types to accept: that of the asset, whatever it is.
func typesOf(fields record.Object) []string {
	if sent := fields.Text("assetType"); sent != "" {
		return []string{sent}
	}
	return []string{"bounce"}
}

// ignoredBy returns a fault for each field that the rules have ignored. A placeholder for the id of a
// part is none.
func ignoredBy(a asset.Asset) (faults []Fault) {
	for _, name := range a.Ignored() {
		if !strings.HasSuffix(name, ".id") {
			faults = append(faults, Fault{name, ignored})
		}
	}
	return faults
}

// faultsOf returns the details of a fault of the rules; none for nil.
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
