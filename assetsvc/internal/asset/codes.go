package asset

import (
	_ "embed" // the code lists
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed data/cav-ps.txt
var cavPSFile string

//go:embed data/identifier-schemes.txt
var identifierSchemesFile string

// The code lists that are built in (contract, decision 14).
var (
	cavPSCodes        = sync.OnceValue(func() codeList { return mustParseCodes(cavPSFile) })
	identifierSchemes = sync.OnceValue(func() codeList { return mustParseCodes(identifierSchemesFile) })
)

// codeList is a sorted list of the values that a field may have.
type codeList []string

func (l codeList) has(code string) bool {
	_, found := slices.BinarySearch(l, code)
	return found
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

// mustParseCodes panics on a faulty file: it is part of the program.
func mustParseCodes(file string) codeList {
	codes, err := parseCodes(file)
	if err != nil {
		panic(fmt.Sprintf("asset: code list: %v", err))
	}
	return codes
}
