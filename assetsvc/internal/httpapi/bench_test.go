package httpapi

import (
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
)

// BenchmarkShow prints an asset in each version of the API, with and without the fields that are new in version
// 2.5.
func BenchmarkShow(b *testing.B) {
	value, err := record.Parse([]byte(validAsset))
	if err != nil {
		b.Fatal(err)
	}
	sent := value.(record.Object).Object("data")
	rules := asset.Rules{Types: []string{"bounce"}, Zone: time.UTC}
	o := asset.Origin{ID: strings.Repeat("a", 32), Owner: "broker",
		NewID: func() string { return strings.Repeat("b", 32) }}
	plain, err := rules.Create(sent, o)
	if err != nil {
		b.Fatal(err)
	}
	contact := record.Object{{Name: "name", Value: "x"}, {Name: "email", Value: "a@b.ua"}}
	custodian := sent.Object("assetCustodian").With("additionalContactPoints", record.List{contact})
	newer, err := rules.Create(sent.With("assetCustodian", custodian), o)
	if err != nil {
		b.Fatal(err)
	}
	for _, v := range publicVersions(nil) {
		for _, c := range []struct {
			name string
			body []byte
		}{
			{"without fields of 2.5", plain.Encode()},
			{"with fields of 2.5", newer.Encode()},
		} {
			b.Run(string(v.name)+" "+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := v.show(nil, c.body, noon, time.UTC); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
