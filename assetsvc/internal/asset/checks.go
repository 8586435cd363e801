package asset

import (
	"slices"
	"strings"

	"asset-registry/assetsvc/internal/record"
)

// checkClassification checks the id of an item's classification: it must be a
// code of the scheme, and at least that of a class (docs/contract.md, "Codes").
func checkClassification(w *walk, path string, o record.Object) {
	if !w.isCode(path, o, classificationSchemes) || !isCoarse(o.Text("id")) {
		return
	}
	_, accepted := w.rules.codes(o.Text("scheme"))
	const coarse = "At least %s classification class (XXXX0000-Y) should be specified more precisely%s"
	w.breaks(record.Join(path, "id"), coarse, o.Text("scheme"), w.nearest(o.Text("id"), accepted))
}

// coarseEnd is how the codes of divisions and groups end, before their check
// digit.
const coarseEnd = "00000-"

// isCoarse tells whether a code names a division or a group.
func isCoarse(code string) bool { return strings.LastIndex(code, coarseEnd) > 0 }

// checkAdditionalClassification checks that the id is a code of the scheme.
func checkAdditionalClassification(w *walk, path string, o record.Object) {
	w.isCode(path, o, additionalSchemes)
}

// isCode tells whether the id of a classification is a code of its scheme, and
// reports it if it is not. The code must be in the list of the scheme, if there is
// one, and have the form of the scheme's codes.
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

// isFilled tells whether a field has a value for the rules over several fields: an optional text
// may be stored empty.
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
		return // the date is absent: a malformed one would have been reported already
	}
	if end.Before(start) {
		w.breaks(record.Join(path, "startDate"), "period should begin before its end")
	}
}

// checkDocument checks the fields that depend on the type of a document. One that
// describes where to see the asset has accessDetails; all others have a url
// (docs/contract.md, "Document").
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

// firstInforms checks the type of an asset's first document (docs/contract.md,
// "Document"). The missing blank in the text is part of the contract.
func firstInforms(w *walk, path string, l record.List) {
	if first, _ := l[0].(record.Object); first.Text("documentType") != informationDetails {
		w.breaks(path, "First document should be document with %sdocumentType", informationDetails)
	}
}

// uniqueIDs returns a check that no two elements have the same id
// (docs/contract.md, "Identifiers"). Otherwise is the fault.
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

// hasLot tells whether an asset has a related lot, which an active asset needs
// (docs/contract.md, "Related process").
func hasLot(o record.Object) bool { return anyOf(o.List(processesField), "type", relatedLot) }

// hasCancellation tells whether an asset has a document that cancels it, which
// its deletion needs (docs/contract.md, "Change").
func hasCancellation(o record.Object) bool {
	return anyOf(o.List("documents"), "documentType", cancellationDetails)
}

// anyOf tells whether an object of a list has a value in the named field.
func anyOf(l record.List, name, value string) bool {
	return slices.ContainsFunc(l, func(element record.Value) bool {
		object, _ := element.(record.Object)
		return object.Text(name) == value
	})
}
