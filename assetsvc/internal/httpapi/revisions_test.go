package httpapi

import (
	"strings"
	"testing"

	"asset-registry/shared/identity"
)

// TestAnErasedRevisionHasNoContent erases a revision with a secret, and sends requests that must erase nothing.
// Afterwards neither the answer nor the list of revisions has the content.
func TestAnErasedRevisionHasNoContent(t *testing.T) {
	s := newService(t)
	at := s.published(t)
	all := at + "/revisions"
	for _, title := range []string{"secret", "y"} {
		s.do(t, exchange{"PATCH", at, identity.Broker, "token", `{"data":{"title":"` + title + `"}}`, 200, title})
	}
	admin := identity.Administrator
	for _, e := range []exchange{
		{"DELETE", all + "/3?%zz", admin, "", "", 400, `"name":"query"`},
		{"DELETE", all + "/3", identity.Broker, "token", "", 403, "permission"},
		{"DELETE", all + "/3", identity.Concierge, "", "", 403, "permission"},
		{"DELETE", all + "/03", admin, "", "", 404, "no revision 0"},
		{"DELETE", all + "/+3", admin, "", "", 404, "no revision 0"},
		{"DELETE", all + "/x", admin, "", "", 404, "no revision 0"},
		{"DELETE", all + "/99999999999999999999", admin, "", "", 404, "no revision 0"},
		{"DELETE", all + "/5", admin, "", "", 404, "no revision 5"},
		{"GET", all + "?%zz", admin, "", "", 400, `"name":"query"`},
		{"GET", all, admin, "", "", 200, "secret"},
	} {
		s.do(t, e)
	}
	const erased = `"erased":{"date":"20`
	for name, got := range map[string]string{
		"the erasure":   s.do(t, exchange{"DELETE", all + "/3", admin, "", "", 200, erased}).Body.String(),
		"its repeat":    s.do(t, exchange{"DELETE", all + "/3", admin, "", "", 200, erased}).Body.String(),
		"the revisions": s.do(t, exchange{"GET", all, admin, "", "", 200, erased}).Body.String(),
	} {
		if strings.Contains(got, "secret") || !strings.Contains(got, `"revision":3`) || !strings.Contains(got, `"role":"owner"`) ||
			!strings.Contains(got, `"role":"administrator"`) {
			t.Errorf("%s: got %s, want revision 3 with both authors and without its content", name, got)
		}
	}
}
