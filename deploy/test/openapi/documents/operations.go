package documents

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"asset-registry/shared/routes"
)

// operation describes one route. Pattern and method come from package routes.
type operation struct {
	id, tag    string
	summary    string
	text       string
	params     []string // names in components/parameters
	body       string   // name of the schema for the member data of the body; "": the request has no such body
	form       string   // name of the schema of the form that is the body; "": the body is not a form
	answer     string   // name of the schema of the whole answer
	file       string   // media type of an answer that is a file; "": the answer is not a file
	media      string   // media type of an answer that is not JSON and is read in parts; "": JSON or YAML
	status     int      // status of success; 0: 200
	again      bool     // a repeated creation has the same answer with 200, without tokens
	location   bool     // the header Location of a creation has the address of the new object
	tagged     bool     // the answer has an ETag
	headers    []string // more headers of the answer
	beside     bool     // the path begins without a version, and the file service answers
	statuses   []int    // more statuses of answers; statusesOf adds the usual ones
	javascript bool     // the parameter opt_jsonp is allowed
	streamed   bool     // the answer can be a stream (docs/contract.md, "Streams")
}

// operationOf finds the description of a route.
func operationOf(r routes.Route) (operation, error) {
	for _, all := range []map[string]operation{operations, searchOperations, webhookOperations, fileOperations} {
		if o, ok := all[r.Method+" "+r.Pattern]; ok {
			return o, nil
		}
	}
	for _, p := range parts {
		elements, element := "/assets/:id/"+p.path, "/assets/:id/"+p.path+"/:part"
		if r.Pattern == elements || r.Pattern == element {
			return p.operation(r), nil
		}
	}
	return operation{}, fmt.Errorf("operations.go: %s %s is not described", r.Method, r.Pattern)
}

var reading = []string{"opt_pretty", "opt_jsonp"}

// operations describes the routes that no other table describes. Parts, searches, webhooks and files have their
// own tables.
var operations = map[string]operation{
	"GET /assets": {
		id: "listAssets", tag: "feed", summary: "Get a page of the feed",
		text: "All assets except drafts, in the order of their last change. Follow `next_page`; an empty page means that " +
			"you are up to date. Once a page was handed out, nothing ever appears at or before its end that was not there. " +
			"A page with `opt_fields` may be shorter than `limit`: only an empty page is the end. With `wait`, an empty page " +
			"waits for a change. With `Accept: text/event-stream` or `application/x-ndjson` the answer is a stream: " +
			"everything after the offset, then each change as it happens.",
		params: append([]string{"offset", "limit", "descending", "mode", "opt_fields", "feed", "wait", "Prefer",
			"Last-Event-ID"}, reading...),
		answer: "Page", javascript: true, streamed: true,
	},
	"POST /assets": {
		id: "createAsset", tag: "assets", summary: "Create an asset",
		text: "Creates a draft. Needs a key of role broker with level 3. The answer holds the owner token and the transfer " +
			"token, which are shown this once. `Registry-Reference` gives the asset a name of your own: a repeat under the " +
			"same name answers 200 with the asset, without tokens.",
		params: []string{"Idempotency-Key", "Registry-Reference", "opt_pretty"}, body: "AssetInput", answer: "Created",
		status: http.StatusCreated, again: true, location: true, tagged: true,
		statuses: []int{http.StatusForbidden, http.StatusConflict, http.StatusGone},
	},
	"DELETE /assets/:id": {
		id: "removeAsset", tag: "assets", summary: "Remove a draft",
		text: "Removes a draft that was never published, for good. Only its owner may, with the owner token. Afterwards " +
			"there is no such asset. A published asset takes the step to `deleted` instead.",
		params: []string{"If-Match", "X-Access-Token", "acc_token"}, status: http.StatusNoContent,
		statuses: []int{http.StatusForbidden, http.StatusConflict},
	},
	"GET /assets/:id": {
		id: "readAsset", tag: "assets", summary: "Read an asset",
		text:   "Anyone may read any asset. A draft is in no listing, so only those who know its id find it.",
		params: append([]string{"If-None-Match", "If-Match"}, reading...),
		answer: "AssetAnswer", tagged: true, javascript: true,
	},
	"PATCH /assets/:id": {
		id: "changeAsset", tag: "assets", summary: "Change an asset",
		text: "Merges what is sent into the asset: objects member by member, lists by index. A shorter list truncates. A " +
			"change without a difference answers the asset as it is. `status` takes a step between states.",
		params: []string{"If-Match", "X-Access-Token", "acc_token", "opt_pretty"}, body: "AssetPatch", answer: "AssetAnswer",
		tagged: true, statuses: []int{http.StatusForbidden, http.StatusConflict},
	},
	"PUT /assets/:id": {
		id: "replaceAsset", tag: "assets", summary: "Replace an asset",
		text: "Replaces everything that the caller may write. A field that is left out is cleared or, where required, " +
			"refused. The state stays unless it is sent.",
		params: []string{"If-Match", "X-Access-Token", "acc_token", "opt_pretty"}, body: "AssetReplacement",
		answer: "AssetAnswer", tagged: true, statuses: []int{http.StatusForbidden, http.StatusConflict},
	},
	"POST /assets/:id/ownership": {
		id: "takeOver", tag: "owners", summary: "Take an asset over",
		text: "The caller becomes the owner. It sends the id of a transfer that it made, and the transfer token of the " +
			"asset. The asset gets the tokens of the transfer; the old ones end. Needs level 3.",
		params: []string{"If-Match", "opt_pretty"}, body: "OwnershipInput", answer: "AssetAnswer", tagged: true,
		statuses: []int{http.StatusForbidden, http.StatusConflict},
	},
	"POST /assets/:id/recovery": {
		id: "recoverAsset", tag: "owners", summary: "Give an asset new tokens",
		text: "For an owner who has lost its tokens: the owner token and the transfer token are replaced, and shown this " +
			"once. The old ones end at once. Only the administrator may do it, in any state. The reason goes to the audit " +
			"log and nowhere else.",
		params: []string{"If-Match", "opt_pretty"}, body: "RecoveryInput", answer: "Recovered", tagged: true,
		statuses: []int{http.StatusForbidden, http.StatusConflict},
	},
	"GET /assets/:id/revisions": {
		id: "listRevisions", tag: "assets", summary: "List the changes of an asset",
		text: "The newest changes first, for the owner (key and owner token) and the administrator. Each holds a JSON " +
			"Patch (RFC 6902) from the revision before.",
		params: append([]string{"offset", "limit", "X-Access-Token", "acc_token"}, reading...), answer: "Revisions",
		statuses: []int{http.StatusForbidden}, javascript: true,
	},
	"DELETE /assets/:id/revisions/:number": {
		id: "eraseRevision", tag: "assets", summary: "Erase a revision of an asset",
		text: "Destroys the content of a past revision, such as personal data, and the salt of its leaf in the public log. " +
			"The leaf, the date and the author stay. Only the administrator may do it, and not to the newest revision. It " +
			"cannot be undone.",
		params: []string{"opt_pretty"}, answer: "RevisionAnswer", statuses: []int{http.StatusForbidden},
	},
	"GET /assets/:id/proof": {
		id: "proveAsset", tag: "assets", summary: "Prove a revision of an asset",
		text: "Shows that the public log has a public change of the asset: the leaf, the path from it to the root of the " +
			"newest checkpoint, and the asset as it was. Anyone can verify it with the public key of the log. 503 while the " +
			"newest checkpoint does not cover the change, which takes about a second. A registry without a log answers 404.",
		params: append([]string{"revision"}, reading...), answer: "ProofAnswer", javascript: true,
	},
	"GET /snapshot": {
		id: "readSnapshot", tag: "feed", summary: "Get the newest snapshot",
		text: "A list of files with all listed assets as they were at a position of the feed, or later. Read the files, " +
			"then follow the feed from `position`: nothing is missed. 404 while there is none. Version 2.4 has none.",
		params: append([]string{"If-None-Match", "If-Match"}, reading...), answer: "SnapshotAnswer", tagged: true,
		statuses: []int{http.StatusNotFound}, javascript: true,
	},
	"GET /snapshot/segments/:file": {
		id: "readSegment", tag: "feed", summary: "Get a file of a snapshot",
		text: "Assets of a range of ids in the order of ids, one a line, each as a page with `opt_fields=*` shows it. The " +
			"lines are compressed with zstd. The name has the SHA-256 of the file, which never changes. After a 404 read the " +
			"snapshot again.",
		params: []string{"Range", "If-Range", "If-None-Match", "If-Match"}, media: "application/zstd", tagged: true,
		statuses: []int{http.StatusRequestedRangeNotSatisfiable},
	},
	"POST /transfers": {
		id: "createTransfer", tag: "owners", summary: "Make a transfer",
		text: "The first step to take over an asset. Needs a key of role broker. A transfer that nobody uses ends after " +
			"90 days, unless the operator sets another time.",
		params: []string{"opt_pretty"}, body: "TransferInput", answer: "CreatedTransfer", status: http.StatusCreated,
		statuses: []int{http.StatusForbidden},
	},
	"GET /transfers/:transfer": {
		id: "readTransfer", tag: "owners", summary: "Read a transfer",
		text:   "Shows whether the transfer was used. An unknown or ended one is a 404.",
		params: reading, answer: "TransferAnswer", javascript: true,
	},
	"GET /me": {
		id: "readCaller", tag: "registry", summary: "Show the caller and its rate limits",
		text: "Rate limits count it as a reading.", answer: "Caller", statuses: []int{http.StatusForbidden},
	},
	"GET /me/assets": {
		id: "listOwnAssets", tag: "assets", summary: "List the caller's own assets",
		text: "All assets of the key's broker, drafts too, in the order of their last change, in pages. A test-only key " +
			"sees test assets only. An asset that was handed over is in the list of its new owner.",
		params: append([]string{"offset", "limit", "descending", "ownMode", "ownStatus", "opt_fields"}, reading...),
		answer: "OwnPage", statuses: []int{http.StatusForbidden}, javascript: true,
	},
	"GET /spore": {
		id: "describe", tag: "registry", summary: "Describe the API in the SPORE form",
		text: "Some clients ask for it when they start.", answer: "Spore",
	},
	"GET /health": {
		id: "health", tag: "registry", summary: "Tell whether the registry works",
		text: "It asks whether the services of assets and of keys, and their stores, answer. 503 with the reason while " +
			"they do not. Rate limits do not count this request.", answer: "Health",
	},
	"GET /openapi.json": {
		id: "describeAsJSON", tag: "registry", summary: "Get this document as JSON",
		text:   "It describes every route, parameter, header, status and field of the version.",
		answer: "OpenAPI", tagged: true,
		params: []string{"If-None-Match"},
	},
	"GET /openapi.yaml": {
		id: "describeAsYAML", tag: "registry", summary: "Get this document as YAML",
		text: "It describes every route, parameter, header, status and field of the version.", answer: "", tagged: true,
		params: []string{"If-None-Match"},
	},
}

// part describes the routes for one kind of parts of an asset, such as its documents.
type part struct {
	path   string // segment of the path
	schema string // name of the schema of one part
	one    string // name of one part, as used in sentences
	id     string // name of the kind in the ids of operations
	ids    string // the plural of id
	who    string // sentence that says who may change the part, and when
}

var parts = []part{
	{"items", "Item", "item", "Item", "Items", "The owner may, in the states draft and pending."},
	{"decisions", "Decision", "decision", "Decision", "Decisions", "The owner may, in the states draft and pending."},
	{"documents", "Document", "document", "Document", "Documents", "The owner may, in the state pending."},
	{"related_processes", "RelatedProcess", "related process", "RelatedProcess", "RelatedProcesses",
		"The concierge may, in any state."},
}

// The method `many` returns the plural of p.one.
func (p part) many() string { return strings.ReplaceAll(p.path, "_", " ") }

func (p part) operation(r routes.Route) operation {
	writing := []string{"If-Match", "X-Access-Token", "acc_token", "opt_pretty"}
	refusals := []int{http.StatusForbidden, http.StatusConflict}
	versioned := p.path == "documents"
	o := operation{tag: "parts", answer: p.schema + "Answer", tagged: true, params: writing, statuses: refusals}
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.Pattern, p.path):
		o.id, o.summary, o.answer = "list"+p.ids, "List the "+p.many()+" of an asset", p.schema+"List"
		o.text = "In the order in which they came in."
		o.params, o.statuses, o.javascript = append([]string{"If-None-Match", "If-Match"}, reading...), nil, true
		if versioned {
			o.text = "The newest version of each document, in the order of `dateModified`."
			o.params = append([]string{"all"}, o.params...)
		}
	case r.Method == http.MethodGet:
		o.id, o.summary = "read"+p.id, "Read one "+p.one
		o.text = "Parts have the tag of their asset."
		o.params, o.statuses, o.javascript = append([]string{"If-None-Match", "If-Match"}, reading...), nil, true
		if versioned {
			o.text = "The newest version, with versions of another address in `previousVersions`."
			o.params, o.answer = append([]string{"download"}, o.params...), "DocumentVersions"
			o.statuses = []int{http.StatusFound}
		}
	case r.Method == http.MethodPost:
		o.id, o.summary, o.text, o.body = "add"+p.id, "Add one "+p.one, p.who, p.schema+"Input"
		o.status, o.location = http.StatusCreated, true
		if versioned {
			o.text += withFile
			o.statuses = append(slices.Clone(o.statuses), http.StatusInsufficientStorage)
		}
	case r.Method == http.MethodPatch:
		o.id, o.summary, o.text, o.body = "change"+p.id, "Change one "+p.one, p.who, p.schema+"Patch"
		if versioned {
			o.text += " The address and the hash stay as they are."
		}
	case r.Method == http.MethodPut:
		o.id, o.summary, o.body = "replace"+p.id, "Add a version of a "+p.one, p.schema+"Input"
		o.text = p.who + " The new version keeps the id, the author and the time of the first one. It takes over what is " +
			"left out, except for the type, the title, the format, the address and the hash." + withFile
		o.statuses = append(slices.Clone(o.statuses), http.StatusInsufficientStorage)
	case r.Method == http.MethodDelete:
		o.id, o.summary, o.text, o.answer = "remove"+p.id, "Remove one "+p.one, p.who, "Removed"
		o.tagged = false
	}
	return o
}

// withFile is a sentence that says how a client sends a document together with its file.
const withFile = " `multipart/form-data` brings the file itself (`x-other-media`), with the bounds of `uploadFile`."

// pathParameter finds the parameters of a gin pattern.
var pathParameter = regexp.MustCompile(`:([a-z]+)`)

// hasRoute reports whether the version has a route.
func (w *writer) hasRoute(r routes.Route) bool {
	v, _ := routes.FindVersion(w.version)
	return v.Has(r)
}

// paths returns the paths of the version with their operations.
func (w *writer) paths() (object, error) {
	var order []string
	byPath := map[string]object{}
	for _, r := range describedRoutes() {
		if r.Method == http.MethodHead || !w.hasRoute(r) { // the guide describes HEAD
			continue
		}
		o, err := operationOf(r)
		if err != nil {
			return nil, err
		}
		path := pathParameter.ReplaceAllString(r.Pattern, "{$1}")
		if _, known := byPath[path]; !known {
			order = append(order, path)
			if isBeside(r.Pattern) {
				byPath[path] = object{{"servers", besideVersions}}
			}
			if params := pathParameters(r.Pattern); len(params) > 0 {
				byPath[path] = byPath[path].with("parameters", params)
			}
		}
		byPath[path] = byPath[path].with(strings.ToLower(r.Method), w.describe(o, r))
	}
	var all object
	for _, path := range order {
		all = all.with(path, byPath[path])
	}
	return all, nil
}

func pathParameters(pattern string) (params []object) {
	for _, match := range pathParameter.FindAllStringSubmatch(pattern, -1) {
		name := match[1]
		if ofFiles := map[string]string{"file": "storedFile", "side": "pictureSide"}; isBeside(pattern) {
			name = ofFiles[name]
		}
		params = append(params, reference("parameters", name))
	}
	return params
}

func reference(kind, name string) object {
	return object{{"$ref", "#/components/" + kind + "/" + name + suffixes[kind]}}
}

// suffixes are appended to the names of some kinds of components. Generators of clients make one type for each
// component, so two components must have different names, even if they are of different kinds.
var suffixes = map[string]string{"parameters": "Parameter", "headers": "Header"}

// components returns the components of a kind. It appends the suffix of the kind to their names.
func components(kind string, all object) object {
	all = slices.Clone(all)
	for i := range all {
		all[i].name += suffixes[kind]
	}
	return all
}

// describe returns the description of an operation, as the OpenAPI document has it.
func (w *writer) describe(o operation, r routes.Route) object {
	d := object{{"operationId", o.id}, {"tags", []string{o.tag}}, {"summary", o.summary}}
	if o.text != "" {
		d = d.with("description", o.text)
	}
	if r.Key {
		d = d.with("security", keyed)
	}
	if len(o.params) > 0 {
		params := make([]object, len(o.params))
		for i, name := range o.params {
			params[i] = reference("parameters", name)
		}
		d = d.with("parameters", params)
	}
	if body := w.bodyOf(o); body != nil {
		d = d.with("requestBody", body)
	}
	if r.Class != "" {
		d = d.with("x-request-class", string(r.Class))
	}
	return d.with("responses", w.responses(o, r))
}

// bodyOf returns the name of the schema for a body. The argument `data` is the name of the schema for the member
// data of the body.
func bodyOf(data string) string { return data + "Body" }

// bodySchemas returns the schemas of the bodies of the version's operations.
func (w *writer) bodySchemas() (all object) {
	for _, r := range describedRoutes() {
		o, err := operationOf(r)
		named := slices.ContainsFunc(all, func(m member) bool { return m.name == bodyOf(o.body) })
		if err == nil && o.body != "" && w.hasRoute(r) && !named { // writer.paths returns err
			all = all.with(bodyOf(o.body), requestBody(o.body))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all.with("BodyAccess", object{
		{"type", []string{"object", "null"}},
		{"description", "The owner token, if no header and no query parameter has it."},
		{"properties", object{{"token", object{{"type", []string{"string", "null"}}}}}},
	})
}

// requestBody returns the schema for a body: an object with the member "data". The argument `data` is the name of
// this member's schema. The body may have other members, which are ignored.
func requestBody(data string) object {
	properties := object{{"data", reference("schemas", data)}}
	if _, ofFile := fileExamples[data]; !ofFile {
		properties = append(properties,
			member{"access", reference("schemas", "BodyAccess")},
			member{"options", object{{"description", "`{\"pretty\": true}` indents the answer. Anything else is ignored."}}},
		)
	}
	return object{
		{"type", "object"},
		{"description", "The body of a request. Other members are ignored."},
		{"required", []string{"data"}},
		{"properties", properties},
	}
}
