package asset

import (
	"fmt"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestSuppliedListsDecideWhichCodesAreValid(t *testing.T) {
	supplied := rules
	supplied.Codes = CodeLists{}
	for _, c := range []struct{ scheme, list string }{
		{"CPV", "\uFEFF# from the ministry\r\n\r\n45000000-7\tБудівельні роботи\r\n03111000-2 Насіння\r\n"},
		{"CPVS", "AA01-1"},
		{"kvtspz", "01.01\n01.02 Землі"},
	} {
		expect.OK(t, supplied.Codes.Add(c.scheme, c.list))
	}
	for _, c := range []struct {
		name    string
		rules   Rules
		sent    string
		refused string // field with the fault; "<nil>": the code is accepted
	}{
		{"a listed code", supplied, `{"classification":{"scheme":"CPV","id":"03111000-2"}}`, "<nil>"},
		{"a code that is not listed", supplied, `{"classification":{"scheme":"CPV","id":"03112000-9"}}`,
			"classification.id"},
		{"any code without a supplied list", rules, `{"classification":{"scheme":"CPV","id":"03112000-9"}}`, "<nil>"},
		{"a listed code that is too coarse", supplied, `{"classification":{"scheme":"CPV","id":"45000000-7"}}`,
			"classification.id"},
		{"a listed additional code", supplied,
			`{"additionalClassifications":[{"scheme":"kvtspz","id":"01.02","description":"x"}]}`, "<nil>"},
		{"an additional code that is not listed", supplied,
			`{"additionalClassifications":[{"scheme":"kvtspz","id":"01.03","description":"x"}]}`,
			"additionalClassifications.0.id"},
		{"an additional code of a scheme without a list", supplied,
			`{"additionalClassifications":[{"scheme":"dk018","id":"1110","description":"x"}]}`, "<nil>"},
		{"an additional code of a free scheme", supplied,
			`{"additionalClassifications":[{"scheme":"UA-EDR","id":"17.21.1","description":"x"}]}`, "<nil>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := valid(t, `{}`)
			_, _, err := c.rules.ChangePart(a, PartChange{
				Part: part(t, "items"), ID: first(t, a, "items"), Verb: Merge, Fields: parse(t, c.sent),
				Caller: Caller{Role: Owner}, Now: evening, NewID: ids(),
			})
			if got := places(err); got != c.refused {
				t.Errorf("got a fault at %q (%v), want %q", got, err, c.refused)
			}
		})
	}
}

func TestAnOperatorAddsSchemesOfIdentifiers(t *testing.T) {
	extended := rules
	extended.Codes = CodeLists{}
	expect.OK(t, extended.Codes.Add("identifier-schemes", "# ours\nUA-NEW a new register\nUA-EDR\nLUX2\n"))
	for _, c := range []struct {
		name, scheme string
		rules        Rules
		refused      string // field with the fault; "<nil>": the scheme is accepted
	}{
		{"an added scheme", "UA-NEW", extended, "<nil>"},
		{"an added scheme without a country", "LUX2", extended, "<nil>"},
		{"a built-in scheme that the list has too", "UA-EDR", extended, "<nil>"},
		{"a built-in scheme beside the list", "GB-COH", extended, "<nil>"},
		{"a scheme of neither", "UA-NEWER", extended, "assetHolder.identifier.scheme"},
		{"an added scheme without the list", "UA-NEW", rules, "assetHolder.identifier.scheme"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sent := `{"assetHolder":{"name":"x","identifier":{"scheme":"` + c.scheme + `","id":"1"}}}`
			_, _, err := c.rules.Change(in(t, Pending), Change{
				Fields: parse(t, sent), Caller: Caller{Role: Owner}, Now: evening, NewID: ids(),
			})
			if got := places(err); got != c.refused {
				t.Errorf("got a fault at %q (%v), want %q", got, err, c.refused)
			}
		})
	}
}

func TestTheErrorOfAListHasEachFault(t *testing.T) {
	for _, c := range []struct {
		name, scheme, text string
		says               []string
	}{
		{"codes of another form", "CPV", "x y\n03111000-2\n45000000 x\n",
			[]string{`line 1: "x" does not have the form`, `line 3: "45000000" does not`}},
		{"a code that comes twice", "dk018", "1110\n\n1110 again\n", []string{"line 3: 1110 is already in line 1"}},
		{"no code", "CPVS", "# nothing\n", []string{"the list has no code"}},
		{"text that is not UTF-8", "CPVS", "AA01-1 \xcf", []string{"the text is not UTF-8"}},
		{"a scheme of identifiers in small letters", "identifier-schemes", "ua-new\n", []string{`line 1: "ua-new" does not`}},
		{"a scheme with a built-in list", "CAV-PS", "06111000-3",
			[]string{`"CAV-PS" is not a scheme with a list of its own; name the file for one of CPV, CPVS, dk018, identifier-schemes, kvtspz`}},
		{"more faults than the error prints", "CPV", strings.Repeat("x\n", 100),
			[]string{"line 20:", "and 80 more faults"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CodeLists{}.Add(c.scheme, c.text)
			for _, says := range c.says {
				expect.ErrorIf(t, !strings.Contains(fmt.Sprint(err), says), "got %v, want an error with %q", err, says)
			}
		})
	}
}
