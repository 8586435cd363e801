package httpapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/gateway/internal/docspage"
	"asset-registry/gateway/internal/limits"
	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

func TestLimitsInWords(t *testing.T) {
	five := int64(5)
	table := limits.Settings{Table: ratelimit.Table{
		{Name: "tenant", By: ratelimit.ByTenant, Costs: map[ratelimit.Class]int64{routes.List: 5, routes.Read: 1},
			Windows: map[string]int64{"1m": 60_000, "1s": 2_000}},
		{Name: "bytes", By: ratelimit.ByTenant, Costs: map[ratelimit.Class]int64{routes.Write: 4096, ratelimit.Bytes: 1},
			Windows: map[string]int64{"24h": 1 << 30, "90s": 1_000_001}},
		{Name: "files", By: ratelimit.ByTenant, Costs: map[ratelimit.Class]int64{ratelimit.FileBytes: 1},
			Windows: map[string]int64{"1h": 2 << 30}},
	}, KeyRead: &five}.Policies()
	want := []docspage.Limit{
		{Name: "tenant", Counts: "5 a page, 1 a read", Windows: []string{"2,000 a second", "60,000 a minute"}},
		{Name: "bytes", Counts: "4,096 a write, 1 a byte of a body",
			Windows: []string{"1,000,001 bytes in 1m30s", "1,024 MiB a day"}},
		{Name: "files", Counts: "1 a byte of an upload", Windows: []string{"2,048 MiB an hour"}},
		{Name: "key-read", Counts: "1 a read", Windows: []string{"5 a second"}},
	}
	expect.NoDiff(t, cmp.Diff(want, limitsInWords(table)), "the limits")
}
