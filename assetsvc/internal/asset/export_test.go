package asset

import (
	"testing"

	"asset-registry/shared/assetfields"
)

// AddLaterFields adds a field "colour" to the asset, to items and to objects below them. The field is new in
// version 2.6, which does not exist. The field is removed when the test ends. Views must be created after this
// call.
func AddLaterFields(t testing.TB) {
	t.Helper()
	for _, m := range []*model{
		assetModel, itemModel, tableOf(&assetfields.Unit), decisionModel, documentModel, relatedProcessModel, tableOf(&assetfields.Contact),
	} {
		fields := m.fields
		m.fields = append(fields[:len(fields):len(fields)], field{
			name: "colour", since: "2.6", of: text, writers: assetfields.AtCreation | assetfields.ByOwner,
		})
		t.Cleanup(func() { m.fields = fields })
	}
}
