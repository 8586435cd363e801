package asset

import (
	_ "embed" // for the code lists
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

// The built-in code lists (docs/contract.md, "Codes"). A malformed list stops the
// program when it starts.
var (
	cavPSCodes            = must(parseCodes(cavPSFile))
	cavPSAccepted         = withoutCoarse(cavPSCodes)
	identifierSchemes     = must(parseCodes(identifierSchemesFile))
	classificationSchemes = must(parseSchemes(classificationSchemesFile))
	additionalSchemes     = must(parseSchemes(additionalSchemesFile))
)

// cavPS is the scheme whose codes are built in.
const cavPS = "CAV-PS"

// codeList is a sorted list of the values that a field accepts.
type codeList []string

func (l codeList) has(code string) bool {
	_, found := slices.BinarySearch(l, code)
	return found
}

// withoutCoarse returns all codes except the codes of divisions and groups, which a classification refuses.
func withoutCoarse(codes codeList) codeList { return slices.DeleteFunc(slices.Clone(codes), isCoarse) }

// schemeList is a list of classification schemes with the form of their ids.
type schemeList struct {
	names codeList
	forms map[string]*regexp.Regexp
}

// fit reports whether an id has the form of its scheme. It returns false if the scheme is not in the list.
func (l schemeList) fit(scheme, id string) bool {
	form := l.forms[scheme]
	return form != nil && form.MatchString(id)
}

// parseCodes reads a code list. The first line names the source of the list ("# ..."). Each of the following lines
// has a code. The codes must be sorted.
func parseCodes(file string) (codeList, error) {
	lines := strings.Split(strings.TrimSuffix(file, "\n"), "\n")
	if !strings.HasPrefix(lines[0], "# ") {
		return nil, fmt.Errorf("line 1, %q, must be a comment that names the source of the list", lines[0])
	}
	codes := lines[1:]
	for i, code := range codes {
		if code == "" || code != strings.TrimSpace(code) {
			return nil, fmt.Errorf("line %d, %q, must be a code without blanks around it", i+2, code)
		}
		if i > 0 && code <= codes[i-1] {
			return nil, fmt.Errorf("line %d, %q, must come after the line before it: the codes are sorted", i+2, code)
		}
	}
	return codes, nil
}

// parseSchemes reads a list of schemes. Each line has a scheme, a blank and a regular expression for the ids of this
// scheme. Otherwise the list has the form of a code list.
func parseSchemes(file string) (schemeList, error) {
	lines, err := parseCodes(file)
	schemes := schemeList{forms: make(map[string]*regexp.Regexp, len(lines))}
	for i, line := range lines {
		name, form, _ := strings.Cut(line, " ")
		compiled, err := regexp.Compile(form)
		if err != nil || form == "" {
			return schemeList{}, fmt.Errorf("line %d, %q, must end with a regular expression for the ids: %w", i+2, line, err)
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
