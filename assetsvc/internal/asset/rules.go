package asset

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/assetfields"
	"asset-registry/shared/fault"
)

// Origin has what the service knows about an asset that is to be created.
type Origin struct {
	ID       string        // id of the new asset
	Owner    string        // the broker that creates it
	Barred   string        // why the broker must not create assets; "": the broker may (docs/contract.md, "Accreditation")
	TestOnly bool          // the broker may create assets in test mode only
	Version  Version       // version of the API that the broker uses
	Now      time.Time     // the time of creation
	NewID    func() string // returns a new id for a part: 32 lowercase hex characters
}

// Create returns a new asset with the fields that a broker sent. The asset is a draft. Its human-readable
// identifier is missing; Numbered adds it.
//
// Every error is a fault. With an error, only the method Ignored of the returned asset is valid. An unknown
// assetType is reported first, then a missing accreditation (kind Forbidden), then all other faults of the
// fields together (kind Invalid; docs/contract.md, "Order of checks").
func (r Rules) Create(in record.Object, o Origin) (Asset, error) {
	w := &walk{rules: r, version: o.Version, newID: o.NewID}
	now := w.time(o.Now)
	draft := record.Object{
		{Name: "id", Value: o.ID},
		{Name: "status", Value: string(Draft)},
		{Name: "owner", Value: o.Owner},
		{Name: "date", Value: now},
	}
	fields := w.asset(draft, in, assetfields.AtCreation)
	w.ignores("status", fields.Get("status"), string(Draft))
	refused, err := Asset{ignored: w.names}, w.fault()
	switch {
	case err != nil && w.found("assetType"):
		return refused, err
	case o.Barred != "":
		return refused, forbidden("accreditation", noAccreditation+because(o.Barred))
	case err != nil:
		return refused, err
	case o.TestOnly && fields.Text("mode") != testMode:
		return refused, forbidden("mode", noAccreditation+because(testOnly))
	}
	fields = fields.
		With("status", string(Draft)).
		With("documents", record.List{firstDocument(o.NewID(), now)})
	return finish(fields, w.names), nil
}

const (
	noAccreditation = "Broker Accreditation level does not permit asset creation"
	testOnly        = "the API key is test-only (level t), so mode must be 'test'"
)

// firstDocument returns the document that every new asset gets (docs/contract.md,
// "Document").
func firstDocument(id, now string) record.Object {
	return record.Object{
		{Name: "id", Value: id},
		{Name: "documentType", Value: informationDetails},
		{Name: "title", Value: "Інформація про оприлюднення інформаційного повідомлення"},
		{Name: "url", Value: "https://prozorro.sale/info/ssp_details"},
		{Name: "documentOf", Value: "asset"},
		{Name: "datePublished", Value: now},
		{Name: "dateModified", Value: now},
	}
}

// Caller is the sender of a request to change an asset.
type Caller struct {
	Role     Role   // the caller's role for this asset
	NotOwner string // if Role is Other: why the caller is not the Owner, and what to do; refusals quote it
}

// Change is a request to change an asset.
type Change struct {
	Fields record.Object // the fields that the client sent
	Whole  bool          // true: Fields replace the asset's fields (PUT); false: Fields are merged into them (PATCH)
	Caller
	Version Version   // version of the API that the caller uses
	Dated   time.Time // the asset's dateModified
	Now     time.Time
	NewID   func() string // returns a new id for a part: 32 lowercase hex characters
}

// Change returns the asset after the change, and whether it differs from the given asset. Every error is a fault.
// With an error, the returned asset is the given one. The order of the checks is in docs/contract.md, "Change".
func (r Rules) Change(a Asset, c Change) (Asset, bool, error) {
	from, to := a.Status(), a.Status()
	if sent, ok := c.Fields.Get("status").(string); ok {
		to = Status(sent)
	}
	if err := checkStep(from, to, c.Caller); err != nil {
		return a, false, err
	}
	w := &walk{rules: r, version: c.Version, newID: c.NewID, whole: c.Whole, stored: a.fields}
	w.dated = w.time(c.Dated)
	fields := w.asset(a.fields, c.Fields, c.Role.writes(from, to))
	w.keepsLot(to, fields)
	if from == Pending {
		w.keepsParts(a.fields, fields)
	}
	if err := w.fault(); err != nil {
		return a, false, err
	}
	if to == Deleted && !hasCancellation(fields) {
		return a, false, forbidden("mode", noCancellation)
	}
	if from == Draft && to == Pending {
		if err := publishable(fields); err != nil {
			return a, false, err
		}
	}
	if from != to {
		fields = move(fields, from, to, w.time(c.Now))
	}
	next := finish(fields, w.names)
	return next, !record.Equal(next.fields, a.fields), nil
}

// CheckRemoval returns a fault if the caller is not allowed to remove an asset. Only a draft can be removed, and only
// by its owner (docs/contract.md, "Removal of drafts").
func (a Asset) CheckRemoval(by Caller) error {
	refusal := fmt.Sprintf("Can't remove asset in current (%s) status", a.Status())
	switch {
	case a.Status() != Draft:
		return forbidden("data", refusal)
	case by.Role != Owner:
		return forbidden("data", refusal+because(cmp.Or(by.NotOwner, "only the owner removes a draft")))
	}
	return nil
}

const noCancellation = "You can set deleted status only when asset have at least one document " +
	"with '" + cancellationDetails + "' documentType"

// checkStep returns a fault if the caller is not allowed to change an asset in its present state (from), or to move it
// to the next state (to).
func checkStep(from, to Status, by Caller) error {
	switch {
	case !from.mayChange(by.Role) && !from.mayChange(Owner):
		return notIn(from, from.whoMay(to)) // by.NotOwner would mislead: the owner must not change the asset either
	case !from.mayChange(by.Role):
		return notIn(from, cmp.Or(by.NotOwner, from.whoMay(to)))
	case to == Draft && from != Draft:
		return forbidden("data", "Can't switch asset to draft status")
	case !from.mayBecome(to, by.Role):
		return notIn(from, from.whoMay(to))
	}
	return nil
}

// writes returns the fields that a role may write when it moves an asset from one state to another, or leaves
// the asset in its state (docs/contract.md, "Writable fields").
func (r Role) writes(from, to Status) assetfields.Writers {
	switch r {
	case Owner:
		if from == Draft && to == Pending {
			return assetfields.ByOwner | assetfields.ByOwnerPublishing
		}
		return assetfields.ByOwner
	case Concierge:
		return assetfields.ByConcierge
	case Administrator:
		return assetfields.ByAdministrator
	default:
		return 0
	}
}

// publishable returns a fault for an asset without items or without decisions (docs/contract.md, "Change").
func publishable(fields record.Object) error {
	const missing = "You cannot switch the asset status from draft to pending unless at least one %s has been added."
	for _, p := range parts {
		if p.required != "" && len(fields.List(p.field)) == 0 {
			return fault.New(fault.Invalid, fault.Body, "data", missing, p.required)
		}
	}
	return nil
}

// keepsParts adds a fault for a change that removes all items or all decisions of a published asset
// (docs/contract.md, "Change").
func (w *walk) keepsParts(before, after record.Object) {
	for _, p := range parts {
		if p.required == "" || len(before.List(p.field)) == 0 || len(after.List(p.field)) > 0 || w.found(p.field) {
			continue
		}
		w.breaks(p.field, "A published asset has at least one %s.", p.required)
	}
}

// keepsLot adds a fault for an active asset without a related lot (docs/contract.md, "Related process").
func (w *walk) keepsLot(s Status, fields record.Object) {
	if s == Active && !hasLot(fields) {
		w.breaks(processesField, "Asset must have related lot to become active.")
	}
}

// move returns the fields after a step from one state to another, with the dates that this step sets
// (docs/contract.md, "States").
func move(fields record.Object, from, to Status, now string) record.Object {
	const start, end = "startDate", "endDate"
	fields = fields.With("date", now)
	period := fields.Object(periodField)
	switch {
	case from == Active && to == Pending:
		period = period.Without(end)
	case to == Pending && period.Get(start) == nil:
		period = append(record.Object{{Name: start, Value: now}}, period...)
	case from == Verification && to == Active:
		period = period.With(end, now)
	}
	if len(period) == 0 {
		return fields.Without(periodField)
	}
	return fields.With(periodField, period)
}

// testTitles has the prefix that each title field gets in test mode (docs/contract.md, "Asset").
var testTitles = map[string]string{
	"title": "[ТЕСТУВАННЯ] ", "title_en": "[TESTING] ", "title_ru": "[ТЕСТИРОВАНИЕ] ",
}

// finish returns an asset with the given fields, in the order of the field table. In test mode it adds the prefixes
// to the titles. The second argument has the names of the fields that were ignored in the request.
func finish(fields record.Object, ignored []string) Asset {
	if fields.Text("mode") == testMode {
		for name, prefix := range testTitles {
			if title := fields.Text(name); fields.Get(name) != nil && !strings.HasPrefix(title, prefix) {
				fields = fields.With(name, prefix+title)
			}
		}
	}
	return Asset{assetModel.ordered(fields), ignored}
}

func forbidden(name, description string) error {
	return fault.New(fault.Forbidden, fault.Body, name, "%s", description)
}

func notIn(s Status, reason string) error {
	return forbidden("data", fmt.Sprintf("Can't update asset in current (%s) status", s)+because(reason))
}

// The function `because` returns the words that add a reason to a refusal, or "" for no reason.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
