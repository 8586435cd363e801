package problems

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

func TestAListTellsEachFieldOnce(t *testing.T) {
	l := Of(fault.Detail{Location: fault.Body, Name: "name", Description: "first"})
	l.Add("name", "second")
	l.Add("role", "of %s", "no kind")
	expect.Err(t, l.Take(fault.New(fault.Conflict, fault.Header, "name", "taken")), nil, "take a conflict")
	err := l.Err()
	want := "body/name: first; body/role: of no kind; header/name: taken"
	if err == nil || err.Error() != want || fault.KindOf(err) != fault.Invalid {
		t.Errorf("got %v, want %s of kind Invalid", err, want)
	}
}

func TestAListTakesOnlyWhatOtherInputMends(t *testing.T) {
	var l List
	expect.Err(t, l.Err(), nil, "an empty list")
	for _, kind := range []fault.Kind{fault.Forbidden, fault.NotFound, fault.Unavailable} {
		expect.Fault(t, l.Take(fault.New(kind, fault.Body, "x", "y")), kind, "take a fault of kind %v", kind)
	}
	revoked := fault.New(fault.Conflict, fault.URL, "key", "revoked")
	if err := Of(fault.Detail{Name: "x"}).With(revoked); err != revoked {
		t.Errorf("a conflict in the URL: got %v, want %v alone", err, revoked)
	}
	broken := errors.New("broken")
	if err := l.Take(broken); err != broken || l.Err() != nil {
		t.Errorf("take a plain error: got %v and %v, want the error back and an empty list", err, l.Err())
	}
	err := l.Take(fault.New(fault.Conflict, fault.Body, "grace", "wait"))
	if err != nil || fault.KindOf(l.Err()) != fault.Conflict {
		t.Errorf("a conflict alone: got %v and %v, want no error and a list of kind Conflict", err, l.Err())
	}
}

func TestAListIsBounded(t *testing.T) {
	var l List
	for n := range 10 * maxDetails {
		l.Add(fmt.Sprint(n, strings.Repeat("я", 10*maxName)), "x")
	}
	got := l.Details()
	if len(got) != maxDetails || len([]rune(got[0].Name)) > maxName+1 {
		t.Errorf("got %d details, the first name of %d characters; want %d details, at most %d characters",
			len(got), len([]rune(got[0].Name)), maxDetails, maxName+1)
	}
}
