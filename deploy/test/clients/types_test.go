package clients

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// schemas lists the schemas in the OpenAPI document for each type of the Python client. A type has the fields of
// all of its schemas.
var schemas = map[string][]string{
	"Asset":               {"Asset", "AssetInput"},
	"OwnAsset":            {"Asset", "AssetInput", "OwnEntry"},
	"Item":                {"Item", "ItemInput"},
	"Decision":            {"Decision", "DecisionInput"},
	"Document":            {"Document", "DocumentInput"},
	"Thumbnail":           {"Thumbnail"},
	"RelatedProcess":      {"RelatedProcess", "RelatedProcessInput"},
	"Organisation":        {"Organization", "OrganizationInput", "Holder", "HolderInput"},
	"Classification":      {"Classification", "ClassificationInput", "AdditionalClassification"},
	"Unit":                {"Unit", "UnitInput"},
	"Address":             {"Address", "AddressInput"},
	"Location":            {"Location", "LocationInput"},
	"RegistrationDetails": {"RegistrationDetails", "RegistrationDetailsInput"},
	"Identifier":          {"Identifier", "IdentifierInput"},
	"ContactPoint":        {"ContactPoint", "ContactPointInput"},
	"Period":              {"Period", "PeriodInput"},
	"TransferData":        {"Transfer"},
	"Revision":            {"Revision"},
	"Leaf":                {"Leaf"},
	"Proof":               {"Proof"},
	"Webhook":             {"Webhook", "WebhookInput", "WebhookPatch"},
	"WebhookFilters":      {"WebhookFilters"},
	"SearchHit":           {"SearchHit"},
	"SearchFacet":         {"SearchFacet"},
	"SearchFacetValue":    {"SearchFacetValue"},
	"Snapshot":            {"Snapshot"},
	"Segment":             {"Segment"},
	"SearchAnswer":        {"SearchAnswer"},

	"SearchReplacement":    {"SearchReplacement"},
	"SearchInterpretation": {"SearchInterpretation"},
	"SearchRange":          {"SearchRange"},
	"SearchSuggestions":    {"SearchSuggestions"},
}

// notTyped are fields that the client's types need not have: the registry ignores them in requests, or sends them
// only in the answer about one document.
var notTyped = []string{"owner_token", "transfer_token", "revisions", "previousVersions", "thumbnails"}

func TestTypesOfThePythonClientAreThoseOfTheDocument(t *testing.T) {
	needtest.Commands(t, "python3")
	const script = `
import asset_registry, json, typing
print(json.dumps({name: sorted(of.__annotations__) for name, of in vars(asset_registry).items() if typing.is_typeddict(of)}))
`
	printed := program(t, ".", []string{absolutePython(t), "PYTHONDONTWRITEBYTECODE=1"}, "python3", "-c", script)
	var got map[string][]string
	expect.OK(t, json.Unmarshal([]byte(printed), &got))
	for _, fields := range got {
		slices.Sort(fields)
	}
	got["Document"] = slices.DeleteFunc(got["Document"], func(name string) bool { return slices.Contains(notTyped, name) })
	if diff := cmp.Diff(described(t), got); diff != "" {
		t.Errorf("fields of the types (-document +client):\n%s", diff)
	}
}

// described returns, for each type of the client, the fields that the OpenAPI document describes.
func described(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(document)
	expect.OK(t, err)
	var api struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	expect.OK(t, json.Unmarshal(text, &api))
	all := map[string][]string{}
	for name, from := range schemas {
		for _, schema := range from {
			properties := api.Components.Schemas[schema].Properties
			if len(properties) == 0 {
				t.Errorf("got no schema %s in the document, want one", schema)
			}
			for property := range properties {
				if !slices.Contains(notTyped, property) {
					all[name] = append(all[name], property)
				}
			}
		}
		slices.Sort(all[name])
		all[name] = slices.Compact(all[name])
	}
	return all
}
