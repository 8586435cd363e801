package asset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
)

// Origin is what the service knows of a new asset.
type Origin struct {
	ID       string        // of the new asset
	Owner    string        // the broker that creates it
	Barred   string        // why the broker's accreditation permits no creation; "" if it does (contract, section 6.2)
	TestOnly bool          // the broker may create assets in test mode only
	Hidden   []string      // dotted paths of fields that the caller's API version does not have
	Now      time.Time     // when it is created
	NewID    func() string // makes ids of parts: 32 lowercase hex characters
}

// Create returns the asset that a broker's fields make: a draft, without its
// readable identifier (Numbered). It returns faults of kind Invalid for the
// fields, all of them at once, and Forbidden for the accreditation. An unknown
// assetType comes before accreditation, and that before other fields (contract,
// section 7).
func (r Rules) Create(in record.Object, o Origin) (Asset, error) {
	w := r.walk(o.Hidden, o.NewID)
	draft := record.Object{{Name: "status", Value: string(Draft)}}
	fields := w.asset(draft, in, func(f field, _ bool) bool { return f.writers&atCreation != 0 })
	err := w.fault()
	switch {
	case err != nil && w.found("assetType"):
		return Asset{}, err
	case o.Barred != "":
		return Asset{}, forbidden("accreditation", noAccreditation+because(o.Barred))
	case err != nil:
		return Asset{}, err
	case o.TestOnly && fields.Text("mode") != testMode:
		return Asset{}, forbidden("mode", noAccreditation+because(testOnly))
	}
	now := w.time(o.Now)
	fields = fields.
		With("id", o.ID).
		With("status", string(Draft)).
		With("owner", o.Owner).
		With("date", now).
		With("documents", record.List{record.Object{ // contract, section 1.4
			{Name: "id", Value: o.NewID()},
			{Name: "documentType", Value: informationDetails},
			{Name: "title", Value: "Інформація про оприлюднення інформаційного повідомлення"},
			{Name: "url", Value: "https://prozorro.sale/info/ssp_details"},
			{Name: "documentOf", Value: "asset"},
			{Name: "datePublished", Value: now},
			{Name: "dateModified", Value: now},
		}})
	return finish(fields), nil
}

const (
	noAccreditation = "Broker Accreditation level does not permit asset creation"
	testOnly        = "the API key is test-only (level t), so mode must be 'test'"
)

// Caller is who asks for a change of an asset.
type Caller struct {
	Role     Role   // for this asset
	NotOwner string // with Other: why it is not Owner, and what to do, for a refusal
}

// Change is what somebody asks to be changed of an asset.
type Change struct {
	Fields record.Object // what was sent
	Whole  bool          // Fields replace rather than merge (PUT; contract, decision 17)
	Caller
	Hidden []string // dotted paths of fields that the caller's API version does not have
	Now    time.Time
	NewID  func() string // makes ids of parts: 32 lowercase hex characters
}

// Change returns the asset after the change, and whether it differs. The checks
// and their order are those of contract section 2.2, steps 6 to 11.
func (r Rules) Change(a Asset, c Change) (Asset, bool, error) {
	from, to := a.Status(), a.Status()
	if sent, ok := c.Fields.Get("status").(string); ok {
		to = Status(sent)
	}
	switch {
	case !from.mayChange(c.Role):
		if !from.mayChange(Owner) { // to be the owner would be of no use
			c.NotOwner = ""
		}
		return a, false, notIn(from, c.NotOwner)
	case to == Draft && from != Draft:
		return a, false, forbidden("data", "Can't switch asset to draft status")
	case !from.mayBecome(to, c.Role):
		return a, false, notIn(from, "")
	}
	w := r.walk(c.Hidden, c.NewID)
	w.whole = c.Whole
	mine := c.Role.writes(from, to)
	fields := w.asset(a.fields, c.Fields, func(f field, sent bool) bool {
		return f.writers&mine != 0 && (sent || f.name != "status") // what is left out of a PUT is cleared, but for the status
	})
	w.keepsLot(to, fields)
	if from == Pending {
		w.keepsParts(a.fields, fields)
	}
	if err := w.fault(); err != nil {
		return a, false, err
	}
	if to == Deleted && !hasCancellation(fields) {
		return a, false, forbidden("mode", "You can set deleted status only when asset have at least one document with 'cancellationDetails' documentType")
	}
	if from == Draft && to == Pending {
		if err := publishable(fields); err != nil {
			return a, false, err
		}
	}
	if from != to {
		fields = move(fields, from, to, w.time(c.Now))
	}
	next := finish(fields)
	return next, !record.Equal(next.fields, a.fields), nil
}

// writes returns which fields a role may write in a step from one state to
// another, or staying in one (contract, section 2.4).
func (r Role) writes(from, to Status) writers {
	switch r {
	case Owner:
		if from == Draft && to == Pending {
			return byOwner | byOwnerPublishing
		}
		return byOwner
	case Concierge:
		return byConcierge
	case Administrator:
		return byAdministrator
	default:
		return 0
	}
}

// publishable refuses what lacks items or decisions (contract, section 2.2, step 11).
func publishable(fields record.Object) error {
	for _, p := range parts {
		if p.required != "" && len(fields.List(p.field)) == 0 {
			return fault.New(fault.Invalid, fault.Body, "data",
				"You cannot switch the asset status from draft to pending unless at least one %s has been added.", p.required)
		}
	}
	return nil
}

// keepsParts refuses to empty the lists of what is published (contract, decision 7).
func (w *walk) keepsParts(before, after record.Object) {
	for _, p := range parts {
		if p.required != "" && len(before.List(p.field)) > 0 && len(after.List(p.field)) == 0 && !w.found(p.field) {
			w.breaks(p.field, "A published asset has at least one %s.", p.required)
		}
	}
}

// keepsLot refuses an active asset without a related lot (contract, section 1.1).
func (w *walk) keepsLot(s Status, fields record.Object) {
	if s == Active && !hasLot(fields) {
		w.breaks("relatedProcesses", "Asset must have related lot to become active.")
	}
}

// move returns what a step from one state to another does to the fields
// (contract, section 2.3).
func move(fields record.Object, from, to Status, now string) record.Object {
	const name, start, end = "rectificationPeriod", "startDate", "endDate"
	fields = fields.With("date", now)
	period := fields.Object(name)
	switch {
	case from == Active && to == Pending:
		period = period.Without(end)
	case to == Pending && period.Get(start) == nil:
		period = append(record.Object{{Name: start, Value: now}}, period...)
	case from == Verification && to == Active:
		period = period.With(end, now)
	}
	if len(period) == 0 {
		return fields.Without(name)
	}
	return fields.With(name, period)
}

// testTitles are what titles of assets in test mode start with (contract, section 1.1).
var testTitles = map[string]string{"title": "[ТЕСТУВАННЯ] ", "title_en": "[TESTING] ", "title_ru": "[ТЕСТИРОВАНИЕ] "}

// finish returns the asset of fields, in the order of the field model.
func finish(fields record.Object) Asset {
	if fields.Text("mode") == testMode {
		for name, start := range testTitles {
			if title := fields.Text(name); fields.Get(name) != nil && !strings.HasPrefix(title, start) {
				fields = fields.With(name, start+title)
			}
		}
	}
	return Asset{assetModel.ordered(fields)}
}

// walk returns a walk over the field model as the operator has it.
func (r Rules) walk(hidden []string, newID func() string) *walk {
	if !r.Sandbox {
		hidden = append(slices.Clone(hidden), sandboxField)
	}
	return &walk{rules: r, hidden: hidden, newID: newID}
}

func forbidden(name, description string) error {
	return fault.New(fault.Forbidden, fault.Body, name, "%s", description)
}

func notIn(s Status, reason string) error {
	return forbidden("data", fmt.Sprintf("Can't update asset in current (%s) status", s)+because(reason))
}

// because returns a reason as it follows a refusal; "" for none.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
