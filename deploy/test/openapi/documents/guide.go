package documents

import _ "embed" // guide.md

//go:embed guide.md
var guide string // the description of the document, with everything that holds for all operations

// tags are the groups of operations.
var tags = []object{
	tag("feed", "The list of assets in the order of their last change."),
	tag("search", "Assets that have words and meet filters."),
	tag("assets", "Create, read and change assets."),
	tag("parts", "Items, decisions, documents and related processes of an asset."),
	tag("owners", "Hand an asset over to another broker."),
	tag("webhooks", "Send the changes of the feed to addresses."),
	tag("files", "Files of documents. These paths are beside the versions."),
	tag("registry", "The registry itself, and the caller."),
}

func tag(name, text string) object { return object{{"name", name}, {"description", text}} }

// The callers that an operation permits. A request to read may carry a key; then the rate limits of the key
// apply.
var (
	anyone = []object{{}, {{"basicKey", []string{}}}, {{"bearerKey", []string{}}}}
	keyed  = []object{{{"basicKey", []string{}}}, {{"bearerKey", []string{}}}}
)

var securitySchemes = object{
	{"basicKey", object{
		{"type", "http"}, {"scheme", "basic"},
		{"description", "The API key is the user name. The password is ignored."},
	}},
	{"bearerKey", object{
		{"type", "http"}, {"scheme", "bearer"},
		{"description", "The API key is the token."},
	}},
}
