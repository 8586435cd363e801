package asset

import "testing"

// AddLaterFields adds a field "colour" since version 2.6, which no client can use
// yet: to the asset, to items, and to objects below them. The fields go when the
// test ends. Views must be made after the call.
func AddLaterFields(t testing.TB) {
	t.Helper()
	for _, m := range []*model{
		&assetModel, &itemModel, &unitModel, &decisionModel, &documentModel, &relatedProcessModel, &contactModel,
	} {
		fields := m.fields
		m.fields = append(fields[:len(fields):len(fields)], field{
			name: "colour", since: "2.6", of: text, writers: atCreation | byOwner,
		})
		t.Cleanup(func() { m.fields = fields })
	}
}
