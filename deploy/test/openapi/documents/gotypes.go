package documents

import (
	"fmt"
	"slices"
	"strings"
)

// goTypes names the type in Go of some schemas (x-go-type), so that a generator for Go makes one type of several:
//
//   - Objects for creations, changes and replacements have the same fields. They differ in the fields that have to be
//     sent, and a type in Go cannot say that. A field that is absent from a change is nil, so all have the type of the
//     change.
//   - An entry of an owner's list has one more field than an entry of the feed, and a document with its versions two
//     more than a document.
//   - A hit of a search has some of the states of an asset.
//   - The registers of organisations are text, because 155 constants with names such as LUX would fill the package.
func goTypes(schemas object) object {
	types := map[string]string{
		"AssetReplacement": "AssetPatch", "WebhookReplay": "WebhookPatch", "WebhookRotation": "WebhookPatch",
		"Entry": "OwnEntry", "Document": "VersionedDocument", "IdentifierScheme": "string",
	}
	for _, m := range schemas {
		if name, of, _ := strings.Cut(m.name, "Patch"); of == "" && name != m.name {
			types[name+"Input"] = m.name
		}
	}
	schemas = walk(schemas, "", constType).(object)
	for i, m := range schemas {
		name, isBody := strings.CutSuffix(m.name, "Body")
		of := types[name]
		if isBody && of != "" {
			of = bodyOf(of)
		}
		if of != "" {
			schemas[i].value = m.value.(object).with(goType, of)
		}
	}
	return schemas
}

// goType is the keyword that names the type in Go of a schema.
const goType = "x-go-type"

// constType names the type in Go of a schema with only one value. Otherwise a generator would make a type of it.
func constType(_ string, o object) object {
	if i := slices.IndexFunc(o, func(m member) bool { return m.name == "const" }); i >= 0 {
		return o.with(goType, fmt.Sprintf("%T", o[i].value))
	}
	return o
}
