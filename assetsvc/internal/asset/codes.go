package asset

import (
	_ "embed" // for the code lists
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
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
