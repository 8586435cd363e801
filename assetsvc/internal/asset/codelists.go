package asset

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// CodeLists holds the code lists of an operator. The keys are schemes. If a scheme has no list, only the form of
// its codes is checked (docs/contract.md, "Codes").
type CodeLists map[string]suppliedCodes

// suppliedCodes holds all codes of a scheme, and the codes that a classification accepts.
type suppliedCodes struct{ all, accepted codeList }

// suppliedSchemes has the schemes for which an operator may supply a list, with the forms of their codes.
var suppliedSchemes = map[string]schemeList{
	"CPV":    classificationSchemes,
	"CPVS":   additionalSchemes,
	"dk018":  additionalSchemes,
	"kvtspz": additionalSchemes,
	identifierList: {forms: map[string]*regexp.Regexp{
		identifierList: regexp.MustCompile(`^[A-Z][A-Z0-9]*(-[A-Z0-9_]+)*$`),
	}},
}

// identifierList is the name of the list of schemes for identifiers. The schemes of an operator's list are added to
// the built-in ones.
const identifierList = "identifier-schemes"

// identifierSchemes returns the schemes that an identifier may have.
func (r Rules) identifierSchemes() codeList {
	if supplied := r.Codes[identifierList].all; supplied != nil {
		return supplied
	}
	return identifierSchemes
}

// codes returns all codes of a scheme, and the codes that a classification accepts. Both are nil if the scheme
// has no list.
func (r Rules) codes(scheme string) (all, accepted codeList) {
	if scheme == cavPS {
		return cavPSCodes, cavPSAccepted
	}
	supplied := r.Codes[scheme]
	return supplied.all, supplied.accepted
}

// maxListFaults is the maximum number of faults that Add lists one by one.
const maxListFaults = 20

// Add adds the list of a scheme. Each line has a code; a blank or tab and a description may follow the code. Empty
// lines and lines that begin with # are ignored. The error lists the first maxListFaults faults, each on a line,
// and the number of further faults.
func (l CodeLists) Add(scheme, text string) error {
	forms, ok := suppliedSchemes[scheme]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(suppliedSchemes)), ", ")
		return fmt.Errorf("%q is not a scheme with a list of its own; name the file for one of %s", scheme, known)
	}
	if !utf8.ValidString(text) {
		return errors.New("the text is not UTF-8; save the file as UTF-8")
	}
	lines := map[string]int{} // the line number of each code
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
			faults = append(faults, fmt.Errorf("line %d: %s is already in line %d", number, code, before))
		}
		lines[code] = number
		codes = append(codes, code)
	}
	if number := len(faults); number > maxListFaults {
		faults = append(faults[:maxListFaults], fmt.Errorf("and %d more faults", number-maxListFaults))
	}
	if len(codes) == 0 {
		faults = append(faults, errors.New("the list has no code"))
	}
	if scheme == identifierList {
		codes = append(codes, identifierSchemes...)
	}
	slices.Sort(codes)
	codes = slices.Compact(codes)
	l[scheme] = suppliedCodes{codes, withoutCoarse(codes)}
	return errors.Join(faults...)
}
