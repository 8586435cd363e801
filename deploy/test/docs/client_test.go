package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry.example/client"

	"asset-registry/shared/testing/expect"
)

// schema is the part of a schema in the OpenAPI document that the test needs.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"` // the name of a type, or a list of names
	Format     string             `json:"format"`
	Enum       []any              `json:"enum"` // the values; they are strings if there is no type
	AllOf      []schema           `json:"allOf"`
	AnyOf      []schema           `json:"anyOf"` // schemas that have only a type
	Items      *schema            `json:"items"`
	Properties map[string]*schema `json:"properties"`
}

// TestTheGoClientHasEveryField compares the fields of the client's structs with the schemas of the answers. The
// names and the types of all fields must be the same, also of nested fields.
func TestTheGoClientHasEveryField(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "gateway/internal/openapi/2.5.json"))
	expect.OK(t, err)
	var document struct {
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
	}
	expect.OK(t, json.Unmarshal(text, &document))
	schemas := document.Components.Schemas
	for _, c := range []struct {
		name string // a schema, such as "Asset", or a property of a schema, such as "Created.data"
		of   any
		skip string // path of documents; their previous versions and thumbnails are not compared
	}{
		{name: "Asset", of: client.Asset{}, skip: "documents"},
		{name: "Entry", of: client.Asset{}, skip: "documents"},
		{name: "Holder", of: client.Organisation{}},
		{name: "AdditionalClassification", of: client.Classification{}},
		{name: "DocumentVersions.data", of: client.Document{}, skip: "previousVersions"},
		{name: "Created", of: client.Created{}, skip: "data.documents"},
		{name: "CreatedTransfer", of: client.NewTransfer{}},
		{name: "Transfer", of: client.Transfer{}},
		{name: "Revision", of: client.Revision{}},
		{name: "Caller.data", of: client.Me{}},
		{name: "Webhook", of: client.Webhook{}},
		{name: "WebhookCreated", of: client.NewWebhook{}},
		{name: "SnapshotAnswer.data", of: client.Snapshot{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, got := map[string]string{}, map[string]string{}
			s := schema{Ref: refPrefix + strings.ReplaceAll(c.name, ".", "/properties/")}
			s.describe(schemas, "", want)
			describeType(reflect.TypeOf(c.of), "", c.skip, got)
			if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
				t.Errorf("fields of %T (-document +client):\n%s", c.of, diff)
			}
		})
	}
}

const refPrefix = "#/components/schemas/"

// describe adds the type of every field to a map. The keys are the dotted paths of the fields.
func (s *schema) describe(all map[string]*schema, path string, to map[string]string) {
	if name, found := strings.CutPrefix(s.Ref, refPrefix); found {
		name, property, nested := strings.Cut(name, "/properties/")
		target := all[name]
		if nested && target != nil {
			target = target.Properties[property]
		}
		if target == nil {
			to[path] = "missing: " + s.Ref
			return
		}
		target.describe(all, path, to)
	}
	for _, part := range s.AllOf {
		part.describe(all, path, to)
	}
	for name, property := range s.Properties {
		property.describe(all, strings.TrimPrefix(path+"."+name, "."), to)
	}
	switch kind := fmt.Sprint(s.Type); {
	case len(s.AnyOf) > 0:
		var types []any
		for _, choice := range s.AnyOf {
			types = append(types, choice.Type)
		}
		to[path] = fmt.Sprint(types)
	case kind == "array":
		s.Items.describe(all, path, to)
	case s.Type == nil && len(s.Enum) > 0:
		to[path] = "string"
	case kind == "object" || s.Ref != "" || len(s.AllOf) > 0:
	default:
		to[path] = strings.TrimSpace(kind + " " + map[string]string{"date-time": "time"}[s.Format])
	}
}

// kinds maps some types of the client to types in the OpenAPI document.
var kinds = map[reflect.Type]string{
	reflect.TypeFor[client.Decimal]():   "number",
	reflect.TypeFor[client.Timestamp](): "string time",
	reflect.TypeFor[json.RawMessage]():  "<nil>", // any type
}

// describeType describes a type of the client, like schema.describe describes a schema. The parameter `skip` is the path of
// documents. describeType leaves out their previous versions and thumbnails, because only the answer for one
// document has them.
func describeType(of reflect.Type, path, skip string, to map[string]string) {
	switch kind, known := kinds[of]; {
	case skip != "" && (path == skip+".previousVersions" || path == skip+".thumbnails"):
	case known:
		to[path] = kind
	case of == reflect.TypeFor[client.Scalar]():
		to[path] = "[string number]"
		if strings.HasSuffix(path, "dentifier.id") || strings.HasSuffix(path, "dentifiers.id") {
			to[path] = "[string integer]"
		}
	case of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice:
		describeType(of.Elem(), path, skip, to)
	case of.Kind() == reflect.Struct:
		for field := range of.Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
				describeType(field.Type, strings.TrimPrefix(path+"."+name, "."), skip, to)
			}
		}
	case of.Kind() == reflect.String:
		to[path] = "string"
	case of.Kind() == reflect.Int64:
		to[path] = "integer"
	case of.Kind() == reflect.Bool:
		to[path] = "boolean"
	}
}
