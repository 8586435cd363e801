package asset

import (
	_ "embed" // the code lists
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	//go:embed data/cav-ps.txt
	cavPSFile string
	//go:embed data/identifier-schemes.txt
	identifierSchemesFile string
	//go:embed data/classification-schemes.txt
	classificationSchemesFile string
	//go:embed data/additional-classification-schemes.txt
	additionalSchemesFile string
)

// The code lists that are built in (contract, decision 14). They are read when
// the program starts: a faulty one is a faulty program.
var (
	cavPSCodes            = must(parseCodes(cavPSFile))
	cavPSFine             = slices.DeleteFunc(slices.Clone(cavPSCodes), isCoarse) // the accepted ones
	identifierSchemes     = must(parseCodes(identifierSchemesFile))
	classificationSchemes = must(parseSchemes(classificationSchemesFile))
	additionalSchemes     = must(parseSchemes(additionalSchemesFile))
)

// cavPS is the scheme of the codes that are built in.
const cavPS = "CAV-PS"

// codeList is a sorted list of the values that a field may have.
type codeList []string

func (l codeList) has(code string) bool {
	_, found := slices.BinarySearch(l, code)
	return found
}

// schemeList are schemes of classifications, and the forms of their ids.
type schemeList struct {
	names codeList
	forms map[string]*regexp.Regexp
}

// fit tells whether an id has the form that its scheme asks for.
func (l schemeList) fit(scheme, id string) bool {
	form := l.forms[scheme]
	return form != nil && form.MatchString(id)
}

// parseCodes reads a code list: a line that names its source, then one code a
// line, sorted.
func parseCodes(file string) (codeList, error) {
	lines := strings.Split(strings.TrimSuffix(file, "\n"), "\n")
	if !strings.HasPrefix(lines[0], "# ") {
		return nil, fmt.Errorf("line 1, %q, does not name the list's source", lines[0])
	}
	codes := lines[1:]
	for i, code := range codes {
		if code == "" || code != strings.TrimSpace(code) {
			return nil, fmt.Errorf("line %d, %q, is no code", i+2, code)
		}
		if i > 0 && code <= codes[i-1] {
			return nil, fmt.Errorf("line %d, %q, is out of order", i+2, code)
		}
	}
	return codes, nil
}

// parseSchemes reads a list of schemes: as a code list, with a blank and the
// form of the ids after each.
func parseSchemes(file string) (schemeList, error) {
	lines, err := parseCodes(file)
	schemes := schemeList{forms: make(map[string]*regexp.Regexp, len(lines))}
	for i, line := range lines {
		name, form, _ := strings.Cut(line, " ")
		compiled, err := regexp.Compile(form)
		if err != nil || form == "" {
			return schemeList{}, fmt.Errorf("line %d, %q, has no form of ids: %w", i+2, line, err)
		}
		schemes.names = append(schemes.names, name)
		schemes.forms[name] = compiled
	}
	return schemes, err
}

func must[T any](list T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("asset: code list: %v", err))
	}
	return list
}
