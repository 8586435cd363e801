package asset

import (
	"slices"
	"strings"

	"asset-registry/assetsvc/internal/record"
)

// tooCoarse is how the codes of divisions and groups go on after their start.
const tooCoarse = "00000-"

func checkClassification(w *walk, path string, o record.Object) {
	path = record.Join(path, "id")
	scheme, id := o.Text("scheme"), o.Text("id")
	list, fine := w.rules.codes(scheme)
	switch {
	case list != nil && !list.has(id):
		w.refuse(path, id, fine)
	case !classificationSchemes.fit(scheme, id):
		w.unfit(path, classificationSchemes, scheme)
	case isCoarse(id):
		closest := ""
		if list != nil {
			closest = w.nearest(id, fine)
		}
		w.breaks(path, "At least %s classification class (XXXX0000-Y) should be specified more precisely%s", scheme, closest)
	}
}

// isCoarse tells whether a code is that of a division or a group.
func isCoarse(code string) bool { return strings.LastIndex(code, tooCoarse) > 0 }

func checkAdditionalClassification(w *walk, path string, o record.Object) {
	path = record.Join(path, "id")
	scheme, id := o.Text("scheme"), o.Text("id")
	list, fine := w.rules.codes(scheme)
	switch {
	case list != nil && !list.has(id):
		w.refuse(path, id, fine)
	case !additionalSchemes.fit(scheme, id):
		w.unfit(path, additionalSchemes, scheme)
	}
}

// unfit notes an id that does not have the form of its scheme.
func (w *walk) unfit(path string, schemes schemeList, scheme string) {
	w.breaks(path, "%s An id of %s has the form %s.", noMatch, scheme, schemes.forms[scheme])
}

func checkRegistration(w *walk, path string, o record.Object) {
	if o.Text("status") == registrationComplete {
		return
	}
	for _, name := range []string{"registrationID", "registrationDate"} {
		if o.Get(name) != nil {
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
	if startErr == nil && endErr == nil && end.Before(start) { // an error: there is none, or a fault has been found
		w.breaks(record.Join(path, "startDate"), "period should begin before its end")
	}
}

// checkDocument judges what depends on the type: documents to be seen somewhere
// say where, all others have a url (contract, section 1.4).
func checkDocument(w *walk, path string, o record.Object) {
	if o.Text("documentType") != familiarization {
		if o.Text("url") == "" {
			w.breaks(record.Join(path, "url"), required)
		}
		return
	}
	for _, name := range []string{"url", "hash"} {
		if o.Get(name) != nil {
			w.breaks(record.Join(path, name), "This field is not required.")
		}
	}
	if o.Text("accessDetails") == "" {
		w.breaks(record.Join(path, "accessDetails"), required)
	}
}

// firstInforms refuses a first document of another type (contract, section 1.1).
func firstInforms(w *walk, path string, l record.List) {
	if first, _ := l[0].(record.Object); first.Text("documentType") != informationDetails {
		w.breaks(path, "First document should be document with %sdocumentType", informationDetails) // the blank is missing there, too
	}
}

// uniqueIDs refuses lists in which an id stands twice (contract, decision 10).
func uniqueIDs(otherwise string) func(*walk, string, record.List) {
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

// hasLot tells whether an asset has the related lot that active ones need
// (contract, section 1.1).
func hasLot(o record.Object) bool { return anyOf(o.List("relatedProcesses"), "type", relatedLot) }

// hasCancellation tells whether an asset may be deleted (contract, section 2.2, step 10).
func hasCancellation(o record.Object) bool {
	return anyOf(o.List("documents"), "documentType", cancellationDetails)
}

func anyOf(l record.List, name, value string) bool {
	return slices.ContainsFunc(l, func(element record.Value) bool {
		object, _ := element.(record.Object)
		return object.Text(name) == value
	})
}
