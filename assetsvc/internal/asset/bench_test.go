package asset

import "testing"

// BenchmarkCreate creates an asset with the parts that a broker usually sends.
func BenchmarkCreate(b *testing.B) {
	sent, o := parse(b, validText), origin()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rules.Create(sent, o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChange merges a PATCH of two fields. One of them belongs to an item.
func BenchmarkChange(b *testing.B) {
	a := valid(b, `{}`)
	c := Change{
		Fields: parse(b, `{"title":"x","items":[{"quantity":2}]}`), Caller: Caller{Role: Owner}, Now: evening,
		NewID: ids(),
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := rules.Change(a, c); err != nil {
			b.Fatal(err)
		}
	}
}
