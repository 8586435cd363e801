package asset

import (
	"slices"
	"strings"

	"asset-registry/assetsvc/internal/record"
)

// checkClassification checks the id of an item's classification. The id must be a code of the scheme, and must name a
// class or something more exact (docs/contract.md, "Codes").
func checkClassification(w *walk, path string, o record.Object) {
	if !w.isCode(path, o, classificationSchemes) || !isCoarse(o.Text("id")) {
		return
	}
	_, accepted := w.rules.codes(o.Text("scheme"))
	const coarse = "At least %s classification class (XXXX0000-Y) should be specified more precisely%s"
	w.breaks(record.Join(path, "id"), coarse, o.Text("scheme"), w.nearest(o.Text("id"), accepted))
}

// coarseEnd is the end of a code of a division or a group, without the check digit.
const coarseEnd = "00000-"

// isCoarse reports whether a code names a division or a group.
func isCoarse(code string) bool { return strings.LastIndex(code, coarseEnd) > 0 }

// checkAdditionalClassification checks that the id is a code of the scheme.
func checkAdditionalClassification(w *walk, path string, o record.Object) {
	w.isCode(path, o, additionalSchemes)
}

// isCode reports whether the id of a classification is a code of its scheme. If it is not, isCode adds a fault
// to the walk. The code must be in the list of the scheme, if there is a list, and have the form of the
// scheme's codes.
func (w *walk) isCode(path string, o record.Object, schemes schemeList) bool {
	scheme, id := o.Text("scheme"), o.Text("id")
	path = record.Join(path, "id")
	all, accepted := w.rules.codes(scheme)
	switch {
	case all != nil && !all.has(id):
		w.refuse(path, id, accepted)
		return false
	case !schemes.fit(scheme, id):
		w.breaks(path, "%s An id of %s has the form %s.", noMatch, scheme, schemes.forms[scheme])
		return false
	}
	return true
}

// isFilled reports whether a field has a value, for rules over several fields. An empty text does not count as
// a value, because an optional text may be stored empty.
func isFilled(value record.Value) bool { return value != nil && value != "" }

func checkRegistration(w *walk, path string, o record.Object) {
	if o.Text("status") == registrationComplete {
		return
	}
	for _, name := range []string{"registrationID", "registrationDate"} {
		if isFilled(o.Get(name)) {
			w.breaks(record.Join(path, name), "You can fill %s only when status is complete", name)
		}
	}
}

func checkContact(w *walk, path string, o record.Object) {
	if o.Text("email") == "" && o.Text("telephone") == "" {
		w.breaks(record.Join(path, "email"), "telephone or email should be present")
	}
}

func checkPeriod(w *walk, path string, o record.Object) {
	start, startErr := ParseTime(o.Text("startDate"), w.rules.Zone)
	end, endErr := ParseTime(o.Text("endDate"), w.rules.Zone)
	if startErr != nil || endErr != nil {
		return // a date is absent, or it is malformed and was reported before
	}
	if end.Before(start) {
		w.breaks(record.Join(path, "startDate"), "period should begin before its end")
	}
}

// checkDocument checks the fields that depend on the type of a document. A document that describes where to see the
// asset must have accessDetails. All others must have a url (docs/contract.md, "Document").
func checkDocument(w *walk, path string, o record.Object) {
	if o.Text("documentType") != familiarization {
		if o.Text("url") == "" {
			w.breaks(record.Join(path, "url"), required)
		}
		return
	}
	for _, name := range []string{"url", "hash"} {
		if isFilled(o.Get(name)) {
			w.breaks(record.Join(path, name), "This field is not required.")
		}
	}
	if o.Text("accessDetails") == "" {
		w.breaks(record.Join(path, "accessDetails"), required)
	}
}

// firstInforms checks the type of an asset's first document (docs/contract.md, "Document"). The text of the
// fault lacks a blank on purpose, because the contract requires exactly this text.
func firstInforms(w *walk, path string, l record.List) {
	if first, _ := l[0].(record.Object); first.Text("documentType") != informationDetails {
		w.breaks(path, "First document should be document with %sdocumentType", informationDetails)
	}
}

// uniqueIDs returns a check that no two elements have the same id (docs/contract.md, "Identifiers"). The argument
// `otherwise` is the text of the fault.
func uniqueIDs(otherwise string) listCheck {
	return func(w *walk, path string, l record.List) {
		seen := make(map[string]bool, len(l))
		for _, element := range l {
			object, _ := element.(record.Object)
			id := object.Text("id")
			if seen[id] {
				w.breaks(path, "%s", otherwise)
				return
			}
			seen[id] = true
		}
	}
}

var (
	uniqueItems     = uniqueIDs("Item id should be uniq for all items")
	uniqueDecisions = uniqueIDs("Decision id should be unique for all decisions")
)

func atMostOne(w *walk, path string, l record.List) {
	if len(l) > 1 {
		w.breaks(path, "Please provide no more than 1 item.")
	}
}

// hasLot reports whether an asset has a related lot. An active asset needs one (docs/contract.md, "Related
// process").
func hasLot(o record.Object) bool { return anyOf(o.List(processesField), "type", relatedLot) }

// hasCancellation reports whether an asset has a document that cancels it. An asset needs one to be deleted
// (docs/contract.md, "Change").
func hasCancellation(o record.Object) bool {
	return anyOf(o.List("documents"), "documentType", cancellationDetails)
}

// anyOf reports whether any object of a list has the given value in the named field.
func anyOf(l record.List, name, value string) bool {
	return slices.ContainsFunc(l, func(element record.Value) bool {
		object, _ := element.(record.Object)
		return object.Text(name) == value
	})
}
