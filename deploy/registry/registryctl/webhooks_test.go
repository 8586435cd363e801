package registryctl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

func TestWebhookCommands(t *testing.T) {
	const one = `{"id":"w1","broker":"b1","url":"https://x/y","version":"2.5","mode":"","opt_fields":"","state":"disabled",` +
		`"reason":"gone","offset":"2026-11-20T12:00:00.000000+00:00","behind":90,"failures":3,"lastError":"it answered 410"}`
	for _, c := range []struct {
		args            []string
		answer, request string
		prints          []string
	}{
		{[]string{"list", "--broker", "b1"}, `{"data":[` + one + `]}`, "GET /api/2.5/webhooks ",
			[]string{"w1  b1      disabled: gone  1m30s   3         it answered 410"}},
		{[]string{"new", "https://x/y", "--whole", "--paused", "--from", "2026",
			"--filter", "region=Одеська", "--filter", "region=м. Київ, центр"},
			`{"access":{"secret":"whsec_x"},"data":` + one + `}`,
			`POST /api/2.5/webhooks {"data":{"url":"https://x/y","opt_fields":"*",` +
				`"filters":{"region":["Одеська","м. Київ, центр"]},"offset":"2026","state":"disabled"}}`,
			[]string{"whsec_x", "w1"}},
		{[]string{"show", "w1"}, `{"data":` + one + `}`, "GET /api/2.5/webhooks/w1 ", []string{"lastError: it answered 410"}},
		{[]string{"pause", "w1"}, `{"data":` + one + `}`, `PATCH /api/2.5/webhooks/w1 {"data":{"state":"disabled"}}`, []string{"w1"}},
		{[]string{"resume", "w1"}, `{"data":` + one + `}`, `PATCH /api/2.5/webhooks/w1 {"data":{"state":"active"}}`, []string{"w1"}},
		{[]string{"replay", "w1", "--from", "2026-11-20"}, `{"data":` + one + `}`,
			`POST /api/2.5/webhooks/w1/replay {"data":{"offset":"2026-11-20"}}`, []string{"w1"}},
		{[]string{"rotate", "w1"}, `{"access":{"secret":"whsec_x"},"data":` + one + `}`,
			`POST /api/2.5/webhooks/w1/rotate {"data":{}}`, []string{"whsec_x"}},
		{[]string{"remove", "w1"}, `{"data":null}`, "DELETE /api/2.5/webhooks/w1 ", []string{"w1 is removed"}},
	} {
		flags, requests := adminAPI(t, c.answer)
		args := append([]string{"--url", flags[1], "--key", "broker", "webhooks"}, c.args...)
		out, err := run(t, args...)
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
			continue
		}
		expect.NoDiff(t, cmp.Diff([]string{c.request}, *requests), "%v: the requests differ", c.args)
		for _, want := range c.prints {
			expect.ErrorIf(t, !strings.Contains(out, want), "%v: got %q, want %q in it", c.args, out, want)
		}
		asJSON, err := run(t, append(args, "-o", "json")...)
		if err != nil || !strings.HasPrefix(asJSON, "{\n") {
			t.Errorf("%v -o json: got %q, %v; want an object", c.args, asJSON, err)
		}
	}
}
