package translog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"asset-registry/shared/testing/expect"
)

// policyText returns a policy with six witnesses and, at its end, the given lines.
func policyText(t testing.TB, lines string) string {
	t.Helper()
	text := "# keys\n\n  log\t" + goldenPublic + "  https://registry.example/log/ \n"
	for n := 1; n <= 6; n++ {
		text += fmt.Sprintf("witness w%d %s http://127.0.0.1:%d\n", n, witnessKey(t, n).Public(), n)
	}
	return text + lines
}

func TestQuorums(t *testing.T) {
	const groups = "group x 2 w1 w2 w3\ngroup y any w4 w5\ngroup all all x y\n"
	for _, c := range []struct {
		lines     string
		cosigners []int
		want      bool
	}{
		{"quorum none\n", nil, true},
		{"quorum w1\n", []int{1}, true},
		{"quorum w1\n", []int{2, 3, 4, 5, 6}, false},
		{groups + "quorum all\n", []int{1, 3, 5}, true},
		{groups + "quorum all\n", []int{1, 2, 3, 4, 5, 6}, true},
		{groups + "quorum all\n", []int{1, 4, 5}, false},
		{groups + "quorum all\n", []int{1, 2, 3, 6}, false},
		{groups + "quorum x\n", []int{2, 3}, true},
		{groups + "quorum y\n", []int{1, 2, 3}, false},
		{"group g 1 w6\nquorum g", []int{6}, true},
	} {
		t.Run(fmt.Sprint(c.lines, c.cosigners), func(t *testing.T) {
			p, err := ParsePolicy([]byte(policyText(t, c.lines)))
			expect.OK(t, err)
			var keys []Key
			for _, n := range c.cosigners {
				keys = append(keys, witnessKey(t, n))
			}
			got, err := p.Open(withLines(t, []byte(goldenCheckpoint), keys...))
			if (err == nil) != c.want || err != nil && !errors.Is(err, ErrQuorum) {
				t.Errorf("got %v, want a quorum: %v", err, c.want)
			}
			expect.ErrorIf(t, len(got.Cosigners) != len(c.cosigners) || got.Size != 3,
				"got %+v, want size 3 and %d cosigners", got, len(c.cosigners))
		})
	}
}

func TestAPolicyKeepsItsAddresses(t *testing.T) {
	p, err := ParsePolicy([]byte(policyText(t, "quorum none\n")))
	expect.OK(t, err)
	if len(p.Logs) != 1 || p.Logs[0].URL != "https://registry.example/log/" || p.Logs[0].Key.Name() != origin {
		t.Errorf("got the logs %+v, want one with its address", p.Logs)
	}
	if len(p.Witnesses) != 6 || p.Witnesses[1].URL != "http://127.0.0.1:2" || p.Witnesses[1].Name != "w2" {
		t.Errorf("got the witnesses %+v, want six with their addresses", p.Witnesses)
	}
}

// Promises: policy
func TestParsePolicyRefuses(t *testing.T) {
	renamed := seeded(t, ForLog, "x", 0).Public().String()
	another := seeded(t, ForWitness, "x", 9).Public().String()
	many := strings.Builder{}
	for n := range maxNames + 1 {
		fmt.Fprintf(&many, "group g%d any %s\n", n, []string{"w1", fmt.Sprintf("g%d", n-1)}[min(n, 1)])
	}
	for _, c := range []struct{ name, text string }{
		{"nothing", ""},
		{"no quorum", policyText(t, "")},
		{"two quorums", policyText(t, "quorum none\nquorum none\n")},
		{"an unknown quorum", policyText(t, "quorum w7\n")},
		{"a quorum defined later", policyText(t, "quorum g\ngroup g any w1\n")},
		{"a quorum of two", policyText(t, "quorum w1 w2\n")},
		{"an unknown word", policyText(t, "logs x\nquorum none\n")},
		{"an unknown member", policyText(t, "group g any w7\nquorum g\n")},
		{"a group in itself", policyText(t, "group g any g\nquorum g\n")},
		{"a member none", policyText(t, "group g any none\nquorum g\n")},
		{"a group none", policyText(t, "group none any w1\nquorum w2\n")},
		{"a group without members", policyText(t, "group g any\nquorum w1\n")},
		{"a group of none", policyText(t, "group g 0 w1\nquorum g\n")},
		{"a group of more than its members", policyText(t, "group g 3 w1 w2\nquorum g\n")},
		{"a number with a zero", policyText(t, "group g 01 w1 w2\nquorum g\n")},
		{"a number with a sign", policyText(t, "group g +1 w1 w2\nquorum g\n")},
		{"a member twice in a group", policyText(t, "group g 2 w1 w1\nquorum g\n")},
		{"a member of two groups", policyText(t, "group g any w1\ngroup h any w1\nquorum g\n")},
		{"a group twice", policyText(t, "group g any w1\ngroup g any w2\nquorum g\n")},
		{"a group with the name of a witness", policyText(t, "group w1 any w2\nquorum w1\n")},
		{"a log twice", policyText(t, "log "+goldenPublic+"\nquorum none\n")},
		{"a log's key under another name", policyText(t, "log "+renamed+"\nquorum none\n")},
		{"a witness's key twice", policyText(t, "witness x "+goldenWitness+"\nquorum none\n")},
		{"a witness's name twice", policyText(t, "witness w1 "+another+"\nquorum none\n")},
		{"a witness as log", policyText(t, "log "+goldenWitness+"\nquorum none\n")},
		{"a log as witness", policyText(t, "witness x "+goldenPublic+"\nquorum none\n")},
		{"a malformed key", policyText(t, "log "+goldenPublic[1:]+"\nquorum none\n")},
		{"a word too many", policyText(t, "log "+goldenPublic+" url x\nquorum none\n")},
		{"a carriage return", policyText(t, "quorum none\r\n")},
		{"a control character in a comment", policyText(t, "# \x00\nquorum none\n")},
		{"a line of one word", policyText(t, "log\nquorum none\n")},
		{"a log with a word too many", "log " + goldenPublic + " url x\nquorum none\n"},
		{"a witness without a key", policyText(t, "witness x\nquorum none\n")},
		{"a witness with a word too many", policyText(t, "witness x "+another+" url x\nquorum none\n")},
		{"a witness with a malformed key", policyText(t, "witness x "+another[1:]+"\nquorum none\n")},
		{"another word with the form of a group", policyText(t, "logs g any w1\nquorum none\n")},
		{"another word with the form of a quorum", policyText(t, "quorums none\n")},
		{"an unused group of none", policyText(t, "group g 0 w1\nquorum none\n")},
		{"an unused group of a word", policyText(t, "group g x w1\nquorum none\n")},
		{"an unused group with an unknown member", policyText(t, "group g any w7\nquorum none\n")},
		{"an unknown quorum before another", policyText(t, "quorum w7\nquorum none\n")},
		{"a deleting character in a comment", policyText(t, "# \x7f\nquorum none\n")},
		{"too many names", policyText(t, many.String()+"quorum none\n")},
		{"a long file", policyText(t, strings.Repeat("#\n", MaxPolicy)+"quorum none\n")},
	} {
		t.Run(c.name, func(t *testing.T) { expect.ErrOf(t, ErrPolicy, "")(ParsePolicy([]byte(c.text))) })
	}
}

func TestAPolicyHasABoundedSize(t *testing.T) {
	text := policyText(t, "")
	// Together with the names of one log and six witnesses, the policy then has maxNames names.
	for n := range maxNames - 7 {
		text += fmt.Sprintf("group g%d any %s\n", n, []string{"w1", fmt.Sprintf("g%d", n-1)}[min(n, 1)])
	}
	expect.ErrOf(t, nil, "%d names", maxNames)(ParsePolicy([]byte(text + "quorum none\n")))
	_, err := ParsePolicy([]byte(text + "group more any w2\nquorum none\n"))
	if line := fmt.Sprintf("line %d:", strings.Count(text, "\n")+1); !errors.Is(err, ErrPolicy) ||
		!strings.Contains(err.Error(), line) {
		t.Errorf("one name more: got %v, want an error that names %s", err, line)
	}
	short := policyText(t, "quorum none\n#")
	for size, want := range map[int]error{MaxPolicy: nil, MaxPolicy + 1: ErrPolicy} {
		expect.ErrOf(t, want, "%d bytes", size)(ParsePolicy([]byte(short + strings.Repeat("x", size-len(short)))))
	}
}

// TestOnlyTheWitnessThatCosignedCounts uses two witnesses whose keys have the same name.
// A cosignature must count only for the witness whose key made it.
func TestOnlyTheWitnessThatCosignedCounts(t *testing.T) {
	first, second := seeded(t, ForWitness, "w.example", 3), seeded(t, ForWitness, "w.example", 4)
	p, err := ParsePolicy([]byte("log " + goldenPublic + "\nwitness a " + first.Public().String() + "\nwitness b " +
		second.Public().String() + "\ngroup both all a b\nquorum both\n"))
	expect.OK(t, err)
	got, err := p.Open(withLines(t, []byte(goldenCheckpoint), first))
	expect.ErrorIf(t, !errors.Is(err, ErrQuorum) || len(got.Cosigners) != 1 || got.Cosigners[0].Name != "a",
		"got %+v, %v; want the witness a and no quorum", got, err)
	if got, err := p.Open(withLines(t, []byte(goldenCheckpoint), first, second)); err != nil || len(got.Cosigners) != 2 {
		t.Errorf("both: got %+v, %v; want both", got, err)
	}
}

// TestALogSignsUnderItsOwnOrigin uses a log of the policy that signs a checkpoint of another log.
// The policy must refuse this checkpoint.
func TestALogSignsUnderItsOwnOrigin(t *testing.T) {
	other := seeded(t, ForLog, "other.example/log", 9)
	p, err := LogPolicy(logKey(t).Public(), other.Public())
	expect.OK(t, err)
	signed, err := note.Sign(&note.Note{Text: goldenText}, signer{other})
	expect.OK(t, err)
	expect.ErrOf(t, ErrSignature, "")(p.Open(signed))
}

func TestAPolicyOfOneLog(t *testing.T) {
	p, err := LogPolicy(logKey(t).Public())
	expect.OK(t, err)
	if got, err := p.Open([]byte(goldenCheckpoint)); err != nil || got.Size != 3 {
		t.Errorf("got %+v, %v, want size 3", got, err)
	}
	if _, err := LogPolicy(witnessKey(t, 1).Public()); !errors.Is(err, ErrPolicy) {
		t.Errorf("got %v of the key of a witness, want %v", err, ErrPolicy)
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add(policyText(f, "group x 2 w1 w2 w3\ngroup y any w4 w5\ngroup all all x y\nquorum all\n"))
	f.Add(policyText(f, "quorum none"))
	signed := withLines(f, []byte(goldenCheckpoint), witnessKey(f, 1), witnessKey(f, 5))
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParsePolicy([]byte(text)); err == nil {
			if got, err := p.Open(signed); err == nil && (got.Text() != goldenText || len(got.Cosigners) > 2) {
				t.Errorf("got %+v with the policy %q", got, text)
			}
		}
	})
}
