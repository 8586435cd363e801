package asset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// CodeLists are the code lists that an operator supplies, by scheme. Codes of a
// scheme without a list are checked by their form alone (contract, decision 14).
type CodeLists map[string]suppliedCodes

// suppliedCodes are the codes of a scheme.
type suppliedCodes struct{ all, fine codeList }

// suppliedSchemes are the schemes that an operator may supply a list of, with
// the forms of their codes.
var suppliedSchemes = map[string]schemeList{
	"CPV":    classificationSchemes,
	"CPVS":   additionalSchemes,
	"dk018":  additionalSchemes,
	"kvtspz": additionalSchemes,
}

// codes returns the codes of a scheme and those that are fine enough to be
// accepted; nil if the scheme has no list.
func (r Rules) codes(scheme string) (all, fine codeList) {
	if scheme == cavPS {
		return cavPSCodes, cavPSFine
	}
	if all = r.Codes[scheme].all; all == nil {
		return nil, nil
	}
	return all, r.Codes[scheme].fine
}

// maxListFaults is how many faults of one list are told.
const maxListFaults = 20

// Add adds the list of a scheme: one code a line, with or without a description
// after a blank or a tab. Empty lines and those that begin with # do not count. It
// reports everything that is wrong with the list, the first 20 faults of each.
func (l CodeLists) Add(scheme, text string) error {
	forms, ok := suppliedSchemes[scheme]
	if !ok {
		return fmt.Errorf("%q is no scheme with a list of its own; those are CPV, CPVS, dk018 and kvtspz", scheme)
	}
	if !utf8.ValidString(text) {
		return errors.New("it is not UTF-8")
	}
	lines := map[string]int{}
	var codes codeList
	var faults []error
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\uFEFF")) {
		number++
		code, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(line), "\t", " "), " ")
		switch before := lines[code]; {
		case code == "" || strings.HasPrefix(code, "#"):
			continue
		case !forms.fit(scheme, code):
			faults = append(faults, fmt.Errorf("line %d: %.40q does not have the form %s", number, code, forms.forms[scheme]))
		case before > 0:
			faults = append(faults, fmt.Errorf("line %d: %s stands in line %d already", number, code, before))
		}
		lines[code] = number
		codes = append(codes, code)
	}
	if number := len(faults); number > maxListFaults {
		faults = append(faults[:maxListFaults], fmt.Errorf("and %d more", number-maxListFaults))
	}
	if len(codes) == 0 {
		faults = append(faults, errors.New("it has no code"))
	}
	slices.Sort(codes)
	l[scheme] = suppliedCodes{codes, slices.DeleteFunc(slices.Clone(codes), isCoarse)}
	return errors.Join(faults...)
}
