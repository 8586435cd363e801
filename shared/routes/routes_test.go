package routes

import (
	"net/http"
	"slices"
	"testing"
)

func TestEveryRouteIsListedOnce(t *testing.T) {
	seen := map[[2]string]bool{}
	for _, r := range All() {
		id := [2]string{r.Method, r.Pattern}
		if seen[id] {
			t.Errorf("got %s %s twice, want it once", r.Method, r.Pattern)
		}
		seen[id] = true
	}
}

func TestClassAndKeyFollowFromTheMethod(t *testing.T) {
	for _, r := range All() {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if wrong := reads == (r.Class == Write); wrong {
			t.Errorf("%s %s: got class %q, want %q for writes only", r.Method, r.Pattern, r.Class, Write)
		}
		if !reads && !r.Key {
			t.Errorf("%s %s: got no key needed, want every write to need one", r.Method, r.Pattern)
		}
	}
}

func TestCurrentIsAVersionOfItsOwn(t *testing.T) {
	if v, ok := FindVersion(Current); !ok || v.Target != Current {
		t.Errorf("got %+v, %v; want version %s, which stands for itself", v, ok, Current)
	}
	if got, want := Targets(), []string{"2.4", "2.5"}; !slices.Equal(got, want) {
		t.Errorf("got targets %q, want %q", got, want)
	}
}
