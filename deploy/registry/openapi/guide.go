package openapi

// guide is the description of the document: what holds for every operation.
const guide = `Brokers create assets with an API key and change them with the owner token that the creation returns.
Anyone reads and lists assets without credentials. Synchronisers follow the feed, ` + "`GET /assets`" + `, page after page.

**Bodies.** A request with a body sends ` + "`Content-Type: application/json`" + ` and an object with ` + "`data`" + `. The registry
ignores members beside ` + "`data`, `access` and `options`" + `. It refuses unknown fields inside ` + "`data`" + `, and tells every faulty
field at once.

**Null** clears an optional field. Answers hold no null and no empty list.

**Decimals.** ` + "`quantity`" + ` is an exact decimal. Read it into a decimal type, never into a floating-point number.

**Owner tokens** go into the header ` + "`X-Access-Token`, the query parameter `acc_token`" + ` or the member
` + "`access.token`" + ` of the body. The first that is not empty counts.

**Repeating.** ` + "`Idempotency-Key`" + ` makes a creation safe to repeat, ` + "`If-Match`" + ` with the last ` + "`ETag`" + ` a change.
429 and 503 carry ` + "`Retry-After`" + `: wait that long, then send the same request again.

**Feed.** Follow ` + "`next_page`" + `. An empty page means that you are up to date: wait, then ask for the same page again.
A 404 for an ` + "`offset`" + ` means: start the copy over.

**Every GET** also answers HEAD, with the same headers and no body. OPTIONS answers 204 with ` + "`Allow`" + `.`

// tags are the groups of operations.
var tags = []object{
	tag("feed", "The list of assets in the order of their last change."),
	tag("assets", "Create, read and change assets."),
	tag("parts", "Items, decisions, documents and related processes of an asset."),
	tag("owners", "Hand an asset over to another broker."),
	tag("registry", "The registry itself, and the caller."),
}

func tag(name, text string) object { return object{{"name", name}, {"description", text}} }

// The callers that an operation permits. A reading may carry a key; its rate
// limits are then those of the key.
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
