package documents

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"asset-registry/assetsvc"
	"asset-registry/shared/routes"
)

// refusal is an error answer that many operations can give.
type refusal struct {
	status  int
	name    string // in components/responses
	text    string
	places  []string // locations and names of the errors; * stands for any name
	headers []string // headers of this answer, in addition to the headers that every answer has
}

// refusals lists the error answers in components/responses (docs/contract.md, "Errors").
var refusals = []refusal{
	{http.StatusBadRequest, "Invalid",
		"The request is malformed, or fields are faulty. The answer names every faulty field.",
		[]string{"body/*", "querystring/*", "url/revision", "header/If-Match", "header/If-None-Match",
			"header/Idempotency-Key", "header/Registry-Reference", "header/Transfer-Encoding", "header/request"}, nil},
	{http.StatusUnauthorized, "Unauthorized", "There is no valid API key.",
		[]string{"header/Authorization"}, []string{"WWW-Authenticate"}},
	{http.StatusForbidden, "Forbidden", "The key is valid and does not permit this, or the owner token is wrong.",
		[]string{"url/permission", "header/Authorization", "header/Origin", "body/data", "body/accreditation", "body/mode",
			"body/transfer", "body/url", "body/file", "body/hash", "url/Signature", "url/KeyID", "url/Expires", "url/doc_id"},
		nil},
	{http.StatusNotFound, "NotFound", "The object, the path or the method does not exist, or the offset is unusable.",
		[]string{"url/asset_id", "url/item_id", "url/decision_id", "url/document_id", "url/relatedProcess_id",
			"url/transfer_id", "url/download", "url/revision", "url/snapshot", "url/segment", "url/webhook", "url/not_found",
			"url/method_not_allowed", "querystring/offset", "url/doc_id", "body/hash", "body/file"},
		[]string{"Allow"}},
	{http.StatusConflict, "Conflict", "Other requests keep changing the same asset or webhook. Repeat the request. " +
		"`header/Registry-Reference`: your asset with this reference was created with other fields; do not repeat it.",
		[]string{"body/data", "header/Registry-Reference", "url/doc_id"}, nil},
	{http.StatusGone, "Gone",
		"The draft that was created under this `Idempotency-Key` or `Registry-Reference` was removed. `url/doc_id`: the " +
			"administrator has taken the file down.",
		[]string{"header/Idempotency-Key", "header/Registry-Reference", "url/doc_id"}, nil},
	{http.StatusPreconditionFailed, "PreconditionFailed",
		"The asset has changed since it had the tag of `If-Match`, or the cookie `SERVER_ID` is of other data.",
		[]string{"url/precondition"}, nil},
	{http.StatusRequestEntityTooLarge, "TooLarge",
		"The body, the asset, the file or the archive would be too large.", []string{"body/*", "url/documents"}, nil},
	{http.StatusUnsupportedMediaType, "UnsupportedMediaType",
		"The body is not `application/json`, or it is compressed.",
		[]string{"header/Content-Type", "header/Content-Encoding"}, []string{"Accept-Encoding"}},
	{http.StatusUnprocessableEntity, "Unprocessable",
		"The hash is not `md5:` and 32 lower-case hexadecimal digits.", []string{"body/hash"}, nil},
	{http.StatusRequestedRangeNotSatisfiable, "RangeNotSatisfiable",
		"The file lacks the range of bytes, or the request names several ranges.", []string{"header/Range"},
		[]string{"Content-Range"}},
	{http.StatusExpectationFailed, "ExpectationFailed", "The request has an `Expect` other than `100-continue`.",
		[]string{"header/Expect"}, nil},
	{http.StatusMisdirectedRequest, "Misdirected",
		"This is a mirror, which takes no changes and no keys. `Link` names the registry that does, with `rel=\"original\"`.",
		[]string{"url/mirror"}, []string{"Link"}},
	{http.StatusTooManyRequests, "TooManyRequests",
		"A rate limit is reached, or the client has 32 streams and long polls open. Wait for `Retry-After`.",
		[]string{"header/X-RateLimit-Limit", "header/Authorization"}, []string{"Retry-After"}},
	{http.StatusRequestHeaderFieldsTooLarge, "HeadersTooLarge", "The request line and the headers are too long.",
		[]string{"header/request"}, nil},
	{http.StatusInternalServerError, "ServerError", "A defect of the registry.", []string{"url/server"}, nil},
	{http.StatusNotImplemented, "NotImplemented", "The request has a `Transfer-Encoding` other than `chunked`.",
		[]string{"header/Transfer-Encoding"}, nil},
	{http.StatusServiceUnavailable, "Unavailable",
		"Something that the request needs is down or full. Wait for `Retry-After`, then repeat the request. A write was " +
			"either done or not. `querystring/opt_fields`: too many different lists of fields are followed in streams.",
		[]string{"url/*", "querystring/opt_fields"}, []string{"Retry-After"}},
	{http.StatusInsufficientStorage, "NoRoom",
		"The disk of the files is full. Readings go on.", []string{"body/file"}, nil},
	{http.StatusHTTPVersionNotSupported, "VersionNotSupported", "The request has another version of HTTP.",
		[]string{"header/request"}, nil},
}

// others are error statuses that any operation can answer with. The document describes them only once, as the
// answer "default".
var others = []int{
	http.StatusExpectationFailed, http.StatusRequestHeaderFieldsTooLarge, http.StatusInternalServerError,
	http.StatusNotImplemented, http.StatusHTTPVersionNotSupported,
}

// common are error statuses that every operation can answer with; the document lists them at each operation. bodied
// are further error statuses, for operations whose requests have a body.
var (
	common = []int{http.StatusBadRequest, http.StatusServiceUnavailable}
	bodied = []int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}
)

// statusesOf returns the error statuses of an operation, sorted.
func (o operation) statusesOf(r routes.Route) []int {
	all := slices.Clone(common)
	for _, status := range o.statuses {
		if status >= http.StatusBadRequest {
			all = append(all, status)
		}
	}
	if o.body != "" && !o.beside {
		all = append(all, bodied...)
	}
	if r.Key {
		all = append(all, http.StatusUnauthorized)
	}
	if strings.Contains(r.Pattern, "/:") || (r.Class == routes.List || r.Class == routes.Own) && !o.beside {
		all = append(all, http.StatusNotFound)
	}
	if (r.Class == routes.Write || r.Key) && !o.beside { // only mirrors answer 421; clients send no files to a mirror
		all = append(all, http.StatusMisdirectedRequest)
	}
	if r.Class != "" || r.Key {
		all = append(all, http.StatusTooManyRequests)
	}
	if r.Class == routes.Write && !o.beside || slices.Contains(o.params, "If-Match") {
		all = append(all, http.StatusPreconditionFailed)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// everywhere are the headers that any answer may have. Generators of clients write code for each header of each
// answer of each operation, so the document lists these headers only once (x-common-headers).
var everywhere = []string{
	"X-Request-ID", "X-Trace-ID", "Set-Cookie", "Deprecation", "Sunset", "Age", "Cache-Control",
	"Registry-Ignored", "Registry-Unchecked",
	"RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
}

// split divides headers into the headers of the list `everywhere` and all other headers.
func split(all object) (common, own object) {
	for _, m := range all {
		if slices.Contains(everywhere, m.name) {
			common = append(common, m)
		} else {
			own = append(own, m)
		}
	}
	return common, own
}

// responses returns the answers of an operation, by status.
func (w *writer) responses(o operation, r routes.Route) object {
	status := cmp.Or(o.status, http.StatusOK)
	var names []string
	if o.tagged {
		names = append(names, "ETag")
	}
	if o.location {
		names = append(names, "Location")
	}
	if o.media != "" {
		names = append(names, "Accept-Ranges")
	}
	if o.streamed {
		names = append(names, "X-Accel-Buffering")
	}
	names = append(names, o.headers...)
	text := successText[status]
	if o.again {
		text = "The new asset and its tokens. With 200: the asset with this reference, as it is now, without tokens."
	}
	all := object{{strconv.Itoa(status), w.reply(o, o.replyName(status), text, names, o.content())}}
	if o.again {
		all = append(object{{"200", all[0].value}}, all...)
	}
	if slices.Contains(o.statuses, http.StatusNoContent) {
		all = all.with("204", w.reply(o, o.replyName(http.StatusNoContent), "The bytes have not come.", nil, nil))
	}
	if slices.Contains(o.statuses, http.StatusFound) {
		all = all.with("302", w.reply(o, o.replyName(http.StatusFound), "The address of the version that `download` names.",
			append(slices.Clone(names), "Location"), o.content()))
	}
	if slices.Contains(o.params, "If-None-Match") {
		all = all.with("304", w.reply(o, "NotModified", "Nothing has changed since the answer that had this tag.",
			append([]string{"ETag", "Accept-Ranges"}, o.headers...), nil))
	}
	if o.media != "" {
		all = all.with("206", w.reply(o, o.replyName(http.StatusPartialContent), "The part that `Range` names.",
			append(slices.Clone(names), "Content-Range"), o.content()))
	}
	for _, status := range o.statusesOf(r) {
		all = all.with(strconv.Itoa(status), reference("responses", refusalOf(status).name))
	}
	return all.with("default", reference("responses", otherError))
}

// replyName returns the name that an operation's answer with this status has in components/responses.
func (o operation) replyName(status int) string {
	of := strings.TrimSuffix(o.answer, "Answer")
	if of == "" {
		of = strings.ToUpper(o.id[:1]) + o.id[1:]
	}
	switch {
	case status == http.StatusCreated:
		return strings.TrimSuffix(of, "Created") + "Creation"
	case status == http.StatusFound:
		return of + "Redirect"
	case status == http.StatusPartialContent:
		return of + "Part"
	case status == http.StatusNoContent && o.status != status:
		return of + "Nothing"
	case o.javascript:
		return of + "Reading"
	default:
		return of + "Reply"
	}
}

// reply returns a reference to a successful answer. Operations with equal answers share one component. If a
// different answer already has the name, the id of the operation is added to the name.
func (w *writer) reply(o operation, name, text string, headers []string, content object) object {
	reply := object{{"description", text}}
	if len(headers) > 0 {
		reply = reply.with("headers", headerReferences(headers))
	}
	if content != nil {
		reply = reply.with("content", content)
	}
	if other := o.otherMedia(); content != nil && other != nil {
		reply = reply.with("x-other-media", other)
	}
	for _, known := range w.replies {
		if known.name == name && !reflect.DeepEqual(known.value, reply) {
			name += "Of" + strings.ToUpper(o.id[:1]) + o.id[1:]
		}
	}
	if !slices.ContainsFunc(w.replies, func(m member) bool { return m.name == name }) {
		w.replies = w.replies.with(name, reply)
	}
	return reference("responses", name)
}

var successText = map[int]string{
	http.StatusOK:        "The whole object as it is after the request.",
	http.StatusCreated:   "The new object.",
	http.StatusNoContent: "It is done. There is no body.",
}

func refusalOf(status int) refusal {
	i := slices.IndexFunc(refusals, func(r refusal) bool { return r.status == status })
	return refusals[i] // a status without a row in refusals panics, and so stops the generator
}

// content returns the media types of an operation's answer.
func (o operation) content() object {
	if o.status == http.StatusNoContent {
		return nil
	}
	if file := cmp.Or(o.media, o.file); file != "" {
		return object{{file, object{{"schema", object{{"type", "string"}, {"format", "binary"}}}}}}
	}
	if o.answer == "" {
		return object{{"application/yaml", object{{"schema", object{{"type", "string"}}}}}}
	}
	return object{{"application/json", object{{"schema", reference("schemas", o.answer)}}}}
}

// otherMedia returns the media types that a client gets only if it asks for them. The document lists them
// outside `content`; otherwise a generated client would treat every answer as text or as a stream.
func (o operation) otherMedia() (media object) {
	if o.javascript {
		media = media.with("application/javascript", object{{"schema", object{
			{"type", "string"}, {"description", "The JSON answer as the argument of the function that opt_jsonp names."},
		}}})
	}
	if o.streamed {
		media = append(media, streams...)
	}
	return media
}

// streams are the media types of streams. For text/event-stream, x-events maps each name of an event to the schema of
// its data. For application/x-ndjson, contentSchema is the schema of a line.
var streams = object{
	{"text/event-stream", object{
		{"schema", str("Server-sent events. `id` is the offset of an entry or a bookmark, `data` its JSON. An entry has no " +
			"`event`, a bookmark has `event: bookmark`. Comments are heartbeats.")},
		{"x-events", object{{"message", reference("schemas", "Entry")}, {"bookmark", bookmark}}},
	}},
	{"application/x-ndjson", object{
		{"schema", str("Lines of JSON, each of the `contentSchema`. A line ends with LF alone. "+
			"Empty lines are heartbeats.",
			member{"contentMediaType", "application/x-ndjson"}, member{"contentSchema", streamLine})},
	}},
}

func headerReferences(names []string) (all object) {
	for _, name := range names {
		all = all.with(name, reference("headers", name))
	}
	return all
}

// otherError is the name, in components/responses, of the answer "default".
const otherError = "OtherError"

// responses returns the shared error answers.
func responses() (all object) {
	other := refusal{name: otherError}
	for _, r := range refusals {
		if !slices.Contains(others, r.status) {
			all = all.with(r.name, r.response(nil))
			continue
		}
		other.text += fmt.Sprintf("%d: %s ", r.status, r.text)
		other.places = append(other.places, r.places...)
	}
	other.text = strings.TrimSpace(other.text)
	return all.with(otherError, other.response(nil).with("x-statuses", others))
}

// response returns an error answer. It has the given headers and the headers of the refusal.
func (r refusal) response(headers []string) object {
	reply := object{{"description", r.text}}
	if headers = append(slices.Clone(headers), r.headers...); len(headers) > 0 {
		reply = reply.with("headers", headerReferences(headers))
	}
	return append(reply, object{
		{"content", object{{"application/json", object{{"schema", reference("schemas", "Error")}}}}},
		{"x-errors", r.places},
	}...)
}

// str and the next functions return small schemas.
func str(text string, rest ...member) object {
	return append(object{{"type", "string"}, {"description", text}}, rest...)
}

func integer(text string, rest ...member) object {
	return append(object{{"type", "integer"}, {"description", text}}, rest...)
}

func listOf(items object) object { return object{{"type", "array"}, {"items", items}} }

// closed returns the schema of an object that has these properties and no others. All properties are required, except
// the properties that the argument "optional" lists.
func closed(text string, properties object, optional ...string) object {
	required := []string{}
	for _, p := range properties {
		if !slices.Contains(optional, p.name) {
			required = append(required, p.name)
		}
	}
	return object{
		{"type", "object"}, {"description", text}, {"required", required}, {"properties", properties},
		{"additionalProperties", false},
	}
}

const timeExample = "2026-11-22T00:32:46.881553+00:00"

func stamp(text string) object {
	return object{{"type", "string"}, {"format", "date-time"}, {"description", text}, {"examples", []string{timeExample}}}
}

// answerSchemas returns the schemas of whole answers.
func (w *writer) answerSchemas() object {
	data := func(text string, value object) object { return closed(text, object{{"data", value}}) }
	link := closed("A page.", object{
		{"offset", str("Offset of the page. Empty if the request had none and the page is empty.")},
		{"path", str("Path and query of the page.")},
		{"uri", str("Address of the page.")},
	})
	listed := walk(w.shownProperties("Asset"), "", func(_ string, o object) object { // Asset has the examples
		return slices.DeleteFunc(o, func(m member) bool { return m.name == "examples" })
	}).(object)
	all := object{
		{"AssetAnswer", data("An asset.", reference("schemas", "Asset"))},
		{"Created", closed("An asset and its tokens. 200, the answer to a repeat under its reference, has "+
			"no tokens.", object{
			{"access", reference("schemas", "Access")}, {"data", reference("schemas", "Asset")},
		}, "access")},
		{"Recovered", closed("An asset and its new tokens.", object{
			{"access", reference("schemas", "Tokens").with("description", "The new tokens of the asset.")},
			{"data", reference("schemas", "Asset")},
		})},
		{"Entry", entry("An asset in a listing", listed)},
		{"OwnEntry", entry("An asset in the list of its owner", append(listed, member{"reference", object{
			{"type", "string"}, {"description", "The broker's own name for the asset, if it has one."},
			{"examples", []string{"lot-2026-000117"}},
		}}))},
		{"Link", link},
		{"Page", closed("A page of the feed.", object{
			{"data", listOf(reference("schemas", "Entry"))},
			{"next_page", reference("schemas", "Link")},
			{"prev_page", reference("schemas", "Link")},
		}, "prev_page")},
		{"OwnPage", closed("A page of the caller's own assets.", object{
			{"data", listOf(reference("schemas", "OwnEntry"))},
			{"next_page", reference("schemas", "Link")},
			{"prev_page", reference("schemas", "Link")},
		}, "prev_page")},
	}
	for _, p := range parts {
		all = all.with(p.schema+"Answer", data("One "+p.one+".", reference("schemas", p.schema)))
		all = all.with(p.schema+"List", data("The "+p.many()+" of an asset.", listOf(reference("schemas", p.schema))))
	}
	all = append(all, w.documentVersions()...)
	all = append(all, member{"Removed", data("Nothing.", object{{"type", "null"}})})
	all = append(all, otherSchemas()...)
	if hasSearch(w.version) {
		all = append(all, searchSchemas()...)
	}
	return append(append(all, webhookSchemas()...), fileSchemas()...)
}

// The schemas of a stream's messages, except the schema of an entry.
var (
	bookmark = closed("Everything up to an offset was sent.", object{
		{"offset", str("Where the client goes on after a break.", member{"examples", []string{timeExample}})},
	})
	streamLine = object{
		{"description", "A line of a stream: an entry of the feed, or a bookmark."},
		{"anyOf", []object{reference("schemas", "Entry"), closed("A line that moves the offset on without an entry.", object{
			{"bookmark", bookmark},
		})}},
	}
)

// documentVersions returns the schema of the answer with one document and its former versions.
func (w *writer) documentVersions() object {
	const text = "A document with its former versions."
	var all object
	properties := w.shownProperties("Document").with("previousVersions", listOf(reference("schemas", "Document")))
	if w.version != routes.Versions()[0].Name {
		properties = properties.with("thumbnails", listOf(reference("schemas", "Thumbnail")))
		all = object{{"Thumbnail", closed("A small version of a picture, as a JPEG.", object{
			{"url", str("Address. 404: no picture could be made, or not yet. 410: the file was removed.")},
			{"side", integer("Pixels of the longer side, or fewer if the picture has fewer.", member{"enum", sides})},
		})}}
	}
	return append(all, object{
		{"VersionedDocument", object{
			{"type", "object"}, {"description", text},
			{"required", []string{"id", "documentType", "title", "documentOf", "datePublished", "dateModified"}},
			{"properties", properties},
			{"additionalProperties", false},
		}},
		{"DocumentVersions", closed(text, object{{"data", reference("schemas", "VersionedDocument")}})},
	}...)
}

// otherSchemas returns the schemas of answers that contain no asset.
func otherSchemas() object {
	transfer := closed("A transfer.", object{
		{"id", str("Id of the transfer.", member{"pattern", "^[0-9a-f]{32}$"})},
		{"date", stamp("Time of the creation, then of the use.")},
		{"usedFor", str("The asset that it was used for.",
			member{"examples", []string{"/assets/0a1b2c3d4e5f40718293a4b5c6d7e8f9"}})},
	}, "usedFor")
	quota := closed("One rate limit and what it leaves.", object{
		{"policy", str("Name of the policy.")},
		{"by", str("Whom it counts.", member{"enum", []string{"key", "address", "tenant"}})},
		{"costs", object{
			{"type", "object"}, {"description", "Cost of a request by class."},
			{"additionalProperties", object{{"type", "integer"}}},
		}},
		{"window", integer("Length of the window in seconds.")},
		{"limit", integer("How much the window permits.")},
		{"remaining", integer("How much is left.")},
		{"reset", integer("Seconds until more is left.")},
	})
	return object{
		{"Transfer", transfer},
		{"TransferAnswer", closed("A transfer.", object{{"data", reference("schemas", "Transfer")}})},
		{"CreatedTransfer", closed("A new transfer and its tokens.", object{
			{"access", reference("schemas", "Tokens").with("description",
				"The tokens that the asset gets when the transfer is used.")},
			{"data", reference("schemas", "Transfer")},
		})},
		{"Tokens", closed("Both tokens.", object{{"token", str("Owner token.")}, {"transfer", str("Transfer token.")}})},
		{"Author", closed("The caller.", object{
			{"broker", str("Broker of the key.")}, {"key", str("Id of the key.")}, {"role", str("Role of the caller.")},
		})},
		{"Revision", revisionSchema()},
		{"RevisionAnswer", closed("One change of an asset.", object{{"data", reference("schemas", "Revision")}})},
		{"Revisions", closed("Changes of an asset.", object{
			{"data", listOf(reference("schemas", "Revision"))}, {"next_page", reference("schemas", "Link")},
		})},
		{"Leaf", leafSchema()},
		{"Proof", proofSchema()},
		{"ProofAnswer", append(closed("A proof.", object{{"data", reference("schemas", "Proof")}}),
			member{"examples", []object{{{"data", proofExample}}}})},
		{"Segment", segmentSchema()},
		{"Snapshot", snapshotSchema()},
		{"SnapshotAnswer", closed("A snapshot.", object{{"data", reference("schemas", "Snapshot")}})},
		{"Quota", quota},
		{"Caller", closed("The caller.", object{{"data", closed("The caller's key and its rate limits.", object{
			{"broker", str("Broker that the key belongs to.")},
			{"key", str("Id of the key, not its secret.")},
			{"role", str("Role of the key.", member{"enum", []string{"broker", "concierge", "administrator"}})},
			{"accreditations", str("Accreditation levels, of 1 to 4; 0 stands for all, t for a test-only key.")},
			{"limits", listOf(reference("schemas", "Quota"))},
		})}})},
		{"Spore", closed("The routes in the SPORE form.", object{
			{"name", str("Name of the registry.")},
			{"version", str("Version of the API.")},
			{"base_url", str("Address before the paths.")},
			{"expected_status", listOf(object{{"type", "integer"}})},
			{"methods", object{{"type", "object"}, {"description", "The routes by name."}}},
		})},
		{"Health", closed("The services and their stores answer.", object{{"status", object{{"const", "ok"}}}})},
		{"OpenAPI", object{{"type", "object"}, {"description", "An OpenAPI document."}}},
		{"Error", errorSchema()},
	}
}

func snapshotSchema() object {
	return closed("All listed assets at a position of the feed, or later.", object{
		{"position", stamp("Offset of the feed from which to follow it.")},
		{"date", stamp("Time at which the snapshot was begun.")},
		{"assets", integer("Number of assets.")},
		{"bytes", integer("Bytes of all files.")},
		{"uncompressedBytes", integer("Bytes of all lines.")},
		{"files", integer("Number of files that documents name; of each asset, each file once. Absent in a snapshot of a "+
			"version that did not count them.", member{"minimum", 0})},
		{"fileBytes", integer("Bytes of these files.", member{"minimum", 0})},
		{"checkpoint", str("The newest checkpoint of the public log when the snapshot was begun, as text.")},
		{"segments", listOf(reference("schemas", "Segment"))},
	}, "files", "fileBytes", "checkpoint")
}

func segmentSchema() object {
	return closed("A file of a snapshot. The ranges of all files cover all ids, in order.", object{
		{"from", str("Lowest id of the range.", digits(32))},
		{"to", str("Highest id of the range.", digits(32))},
		{"assets", integer("Number of assets.")},
		{"bytes", integer("Bytes of the file.")},
		{"uncompressedBytes", integer("Bytes of the lines.")},
		{"sha256", str("Hash of the file.", digits(64))},
		{"path", str("Path of the file.")},
	})
}

func revisionSchema() object {
	return closed("One change of an asset.", object{
		{"revision", integer("Number of the change; 1 is the creation.", member{"minimum", 1})},
		{"date", stamp("The dateModified that the change made.")},
		{"author", reference("schemas", "Author")},
		{"changes", listOf(object{
			{"type", "object"}, {"description", "One operation of a JSON Patch (RFC 6902)."},
			{"required", []string{"op", "path"}},
			{"properties", object{
				{"op", object{{"enum", []string{"add", "remove", "replace"}}}},
				{"path", str("JSON Pointer (RFC 6901).")},
				{"value", object{{"description", "The new value."}}},
			}},
		})},
		{"changesSize", integer("Bytes of a patch that was too large to keep.")},
		{"erased", closed("The content was erased.", object{
			{"date", stamp("When it was erased.")}, {"author", reference("schemas", "Author")},
		})},
	}, "changes", "changesSize", "erased")
}

// proofExample is a proof whose values look like real ones.
var proofExample = object{
	{"index", 1},
	{"leaf", object{
		{"asset", "0123456789abcdef0123456789abcdef"},
		{"commitment", "37d5259d2645eaaa79ee5414ad76b4f666f96cba07c298ca25c91734db0c2535"},
		{"kind", "change"}, {"position", 1790000000123456}, {"revision", 7}, {"v", 1},
	}},
	{"salt", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"},
	{"path", []string{"2VmCWoZ3MNkOiX7SbeWOxz1plfVBdnbdp2ielKkNJAM="}},
	{"checkpoint", "registry.example/log\n2\nNmQuc8JUCrEh46a/lUWwokmCzYMOsT080Z3jzmwCHsE=\n\n— registry.example/log " +
		"lSvF56F0OvXARNnZfoCVND5m1116x+bs93qIzTgj5NcwkC1GwCXLC7VzC+wYKLeFQI5EaPplF7Q03s1RTjZCE3WwBgM=\n"},
	{"asset", object{
		{"id", "0123456789abcdef0123456789abcdef"}, {"dateModified", "2026-09-21T16:13:20.123456+02:00"},
	}},
}

// digits returns the pattern for n hexadecimal digits.
func digits(n int) member { return member{"pattern", "^[0-9a-f]{" + strconv.Itoa(n) + "}$"} }

func leafSchema() object {
	return closed("A leaf of the public log, in canonical form unless `opt_pretty` indents it.", object{
		{"asset", str("Id of the asset.", digits(32))},
		{"commitment", str("Hash of the salt and the asset. Absent in a withdraw.", digits(64))},
		{"kind", str("The event that the change is to the public.",
			member{"enum", []string{"publish", "change", "withdraw", "import"}})},
		{"position", integer("Time of the change in microseconds since the epoch: the dateModified.", member{"minimum", 1})},
		{"revision", integer("Number of the change; 1 is the creation.", member{"minimum", 1})},
		{"v", object{{"const", 1}, {"description", "Version of the form."}}},
	}, "commitment")
}

func proofSchema() object {
	return closed("A proof that the public log has a change of an asset. Anyone can verify it.", object{
		{"index", integer("Index of the leaf in the log, from 0.", member{"minimum", 0})},
		{"leaf", reference("schemas", "Leaf")},
		{"salt", str("Salt of the commitment. Absent in a withdraw and after an erasure.", digits(64))},
		{"path", object{
			{"type", "array"}, {"maxItems", 63},
			{"items", str("Hash in base64, from the leaf's sibling up to a child of the root.")},
		}},
		{"checkpoint", str("The newest checkpoint of the log: a signed note.")},
		{"asset", object{
			{"type", "object"},
			{"description", "The asset as version 2.5 showed it to the public after the change. Absent when salt is. The " +
				"commitment is of the text of its numbers: do not read them as floating-point numbers."},
			{"required", []string{"id", "dateModified"}},
			{"properties", object{{"id", str("Id of the asset.")}, {"dateModified", stamp("The position as a time.")}}},
		}},
	}, "salt", "asset")
}

func errorSchema() object {
	return closed("The body of every error.", object{
		{"status", object{{"const", "error"}}},
		{"errors", object{
			{"type", "array"}, {"minItems", 1},
			{"items", closed("One error.", object{
				{"location", str("Part of the request.", member{"enum", []string{"header", "body", "url", "querystring"}})},
				{"name", str("Header, parameter, step of the path, or dotted path of a field inside data.")},
				{"description", str("The fault, and how to correct it. Compare its beginning only.")},
			})},
		}},
	})
}

// headers returns the headers of answers.
func headers() object {
	header := func(text string, schema object) object { return object{{"description", text}, {"schema", schema}} }
	text, number := object{{"type", "string"}}, object{{"type", "integer"}}
	return object{
		{"X-Request-ID", header("Name of the request in the logs of the registry.", text)},
		{"X-Trace-ID", header("Name of the trace of a request that is recorded.", text)},
		{"Set-Cookie", header("SERVER_ID names the data of the registry, not a machine.", text)},
		{"Deprecation", header("The version is deprecated since then (RFC 9745).", text)},
		{"Sunset", header("The version ends then (RFC 8594).", text)},
		{"Age", header("Only of a mirror: seconds since its data certainly equalled the registry's (RFC 9111).", number)},
		{"Registry-Ignored", header("Only of writes: names of at most 20 fields that the request sent and the registry "+
			"ignored, separated by commas, such as `documents`.", text)},
		{"Registry-Unchecked", header("Only of writes of documents: `hash`, if the file is not one that the registry keeps. "+
			"Nobody has compared the hash with the file.", text)},
		{"Link", header("The registry that a mirror is a copy of, with `rel=\"original\"` (RFC 8288, RFC 7089).", text)},
		{"Content-Disposition", header("If a browser shows or saves the file, and its name (RFC 6266, RFC 8187).", text)},
		{"Content-Security-Policy", header("Keeps scripts in a file from running.", text)},
		{"Cross-Origin-Resource-Policy", header("`same-site`: pages of other sites may not embed the file.", text)},
		{"Cache-Control", header("`no-cache` for readings: keep the answer and ask with its tag. Else `no-store`.", text)},
		{"ETag", header("Tag of the state of the asset, for If-None-Match and If-Match.", text)},
		{"Location", header("Address of the new object, or of the file.", text)},
		{"Allow", header("The methods of the path, where the method is not among them.", text)},
		{"WWW-Authenticate", header("How to send the API key.", text)},
		{"Accept-Encoding", header("The accepted encodings of bodies.", text)},
		{"Accept-Ranges", header("`bytes`.", text)},
		{"Content-Range", header("The part that the answer has, and the bytes of the whole file.", text)},
		{"Retry-After", header("Seconds to wait before the same request may work.", number)},
		{"RateLimit-Policy", header("Every limit that counts the request (draft-ietf-httpapi-ratelimit-headers-10).", text)},
		{"RateLimit", header("The rest that these limits leave.", text)},
		{"X-RateLimit-Limit", header("The limit of requests that ends first, or the one that refuses.", number)},
		{"X-RateLimit-Remaining", header("The rest that it leaves.", number)},
		{"X-Accel-Buffering", header("`no` for a stream: a proxy must not hold messages back.", text)},
		{"X-RateLimit-Reset", header("When it leaves more, in seconds since the epoch.", number)},
	}
}

// parameters returns the parameters of requests for components/parameters, and the list of the parameters that
// every request may have.
func parameters(version string) (all object, everywhere []object) {
	addAs := func(component, in, name, text string, schema object) {
		p := object{{"name", name}, {"in", in}, {"description", text}, {"schema", schema}}
		if in == "path" {
			p = p.with("required", true)
		}
		all = all.with(component, p)
	}
	add := func(in, name, text string, schema object) { addAs(name, in, name, text, schema) }
	text := object{{"type", "string"}}
	path := func(name, text string) {
		add("path", name, text, object{{"type", "string"}, {"minLength", 1}})
	}
	path("id", "Id of the asset.")
	path("part", "Id of the part.")
	path("transfer", "Id of the transfer.")
	path("number", "Number of the revision.")
	path("webhook", "Id of the webhook.")
	path("file", "Name of the file: its SHA-256 and `.ndjson.zst`.")
	add("query", "offset", "Where the page starts, exclusive: the `offset` of a link, or any ISO 8601 time.",
		object{{"type", "string"}, {"examples", []string{timeExample}}})
	add("query", "limit", "Entries of a page. More than 1000 counts as 1000.",
		object{{"type", "integer"}, {"minimum", 1}, {"default", 100}})
	addAs("webhookLimit", "query", "limit", "Webhooks or files of a page. More than 100 counts as 100.",
		object{{"type", "integer"}, {"minimum", 1}, {"default", 100}})
	add("query", "after", "Id of the webhook or file before the page.", text)
	add("query", "broker", "Broker whose webhooks or files an administrator asks for.", text)
	add("query", "descending", "Any value: newest first.", text)
	add("query", "mode", "`test` lists test assets, `_all_` all assets. Else real ones.", text)
	addAs("ownMode", "query", "mode", "`test` lists test assets. Else all, or test assets only for a test-only key.", text)
	addAs("ownStatus", "query", "status", "Lists assets in this state only.",
		object{{"type", "string"}, {"enum", assetsvc.Statuses()}})
	add("query", "opt_fields", "Names of fields to show, separated by commas; `*` for all.",
		object{{"type", "string"}, {"examples", []string{"status,title"}}})
	add("query", "feed", "Ignored. Links repeat it.", text)
	add("query", "wait", "Seconds to wait for a change if the page would be empty. More than 60 counts as 60, anything "+
		"but a number as none.", object{
		{"type", "integer"}, {"examples", []int{30}}, {AlsoAccepts, []string{"string"}},
	})
	add("query", "opt_pretty", "Any value: the answer is indented.", text)
	add("query", "opt_jsonp", "Name of a JavaScript function that the answer calls.",
		object{{"type", "string"}, {"pattern", "^([A-Za-z_$][A-Za-z0-9_$.]{0,99})?$"}})
	add("query", "acc_token", "Owner token.", text)
	add("query", "all", "Any value: every version.", text)
	add("query", "revision", "Number of the revision. Without it: the newest public change of the asset.",
		object{{"type", "integer"}, {"minimum", 1}})
	add("query", "download", "Part of the address of a version: the answer is a 302 to it.", text)
	if hasSearch(version) {
		addSearchParameters(addAs)
	}
	addFileParameters(addAs)
	add("header", "X-Access-Token", "Owner token.", text)
	add("header", "Range", "One range of bytes, such as `bytes=0-1048575`.", text)
	add("header", "If-Range", "Tag that the file must have for `Range` to count.", text)
	add("header", "If-Match", "Tag that the asset must have, or `*`.", text)
	add("header", "If-None-Match", "Tag of an answer that the client has.", text)
	add("header", "Idempotency-Key", "Makes the creation safe to repeat for 24 hours.",
		object{{"type", "string"}, {"maxLength", 255}})
	add("header", "Registry-Reference",
		"Your own name for the new asset: visible ASCII characters. It names one asset of your broker, for ever.",
		object{{"type", "string"}, {"minLength", 1}, {"maxLength", 200}, {"pattern", "^[!-~]*$"},
			{"examples", []string{"lot-2026-000117"}}})
	add("header", "Prefer", "`wait=30` means what the parameter `wait` means, which wins.",
		object{{"type", "string"}, {"examples", []string{"wait=30"}}})
	add("header", "Last-Event-ID",
		"Offset of the last event that the client of a stream has handled. It wins over `offset`.",
		object{{"type", "string"}, {"examples", []string{timeExample}}})
	return all, []object{
		{{"name", "X-Request-ID"}, {"in", "header"}, {"description", "Name of the request in the logs of the registry."},
			{"schema", text}},
		{{"name", "SERVER_ID"}, {"in", "cookie"}, {"description", "The cookie that the registry has set."}, {"schema", text}},
	}
}

// entry returns the schema of one entry in a list. The argument "what" is a text that names the entry.
func entry(what string, properties object) object {
	return object{
		{"type", "object"},
		{"description", what + ": id, dateModified, and the fields that `opt_fields` names."},
		{"required", []string{"id", "dateModified"}},
		{"properties", properties},
		{"additionalProperties", false},
	}
}
