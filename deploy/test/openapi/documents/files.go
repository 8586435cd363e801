package documents

import (
	"net/http"
	"strings"

	"asset-registry/shared/filelink"
	"asset-registry/shared/routes"
)

// besideVersions is the list of servers for paths that do not begin with a version. The document lists it at each
// of these paths. Some generators read only the servers of the whole document. Users of these generators need a
// second client for these paths, with the address of the registry.
var besideVersions = []object{{{"url", "/"}, {"description", "this registry, beside the versions"}}}

// fileOperations describes the routes of files (docs/contract.md, "Files").
var fileOperations = map[string]operation{
	"POST " + routes.RegisterFile: {
		id: "registerFile", tag: "files", summary: "Register a file",
		text: "The first of the family's three calls: register, name the file in a document, upload. `data.url` is the " +
			"address for the document. The document's `hash` must be the registered one. `upload_url` takes the bytes. Other " +
			"members of `data` come back as they are. The body may be a form with the field `hash` instead of JSON, and " +
			"has at most 64 KiB. 403: the broker has 1,000 files, or what the operator permits, that were registered " +
			"and not uploaded.",
		body: "FileRegistration", answer: "FileRegistered", status: http.StatusCreated, location: true, beside: true,
		statuses: []int{http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge,
			http.StatusUnprocessableEntity},
	},
	"POST " + routes.UploadFile: {
		id: "uploadFile", tag: "files", summary: "Upload a file",
		text: "In one call, without a registration. The answer has the address and the hash for a document. A file has " +
			"at most 100 MiB, unless the operator sets another limit; the form at most 16 parts, one of them a file, and " +
			"its fields and the headers of its parts at most 64 KiB. 64 KiB must come in each 10 seconds. Bytes that no " +
			"document names are removed after a day.",
		form: "FileForm", answer: "FileUploaded", location: true, beside: true, statuses: ofUploads,
	},
	"POST " + routes.UploadFile + "/:file": {
		id: "uploadRegisteredFile", tag: "files", summary: "Upload a registered file",
		text: "To the `upload_url` of the registration, with a key of its broker. 403 at `body/file`: the bytes do not " +
			"have the registered hash. 403 at `url/doc_id`: they were uploaded before, so a client that got no answer is done.",
		params: []string{"Signature", "KeyID"}, form: "FileForm", answer: "FileUploaded", location: true, beside: true,
		statuses: append([]int{http.StatusConflict}, ofUploads...),
	},
	"GET " + routes.GetFile: {
		id: "listFiles", tag: "files", summary: "List files",
		text: "Lists the files of the key's broker, in the order of their ids. An administrator gets all, or one " +
			"broker's, and sees the reasons of removals. A page may be short, or empty: only one without `next_page` " +
			"is the last.",
		params: []string{"after", "webhookLimit", "broker"}, answer: "FileList", beside: true,
		statuses: []int{http.StatusForbidden},
	},
	"GET " + routes.RemovedFiles: {
		id: "listRemovedFiles", tag: "files", summary: "List removed files",
		text: "The ids of all files that were taken down, in their order, also of those that were never public. Programs " +
			"that keep copies of files read the list every 30 seconds or sooner, and delete what it names.",
		params: []string{"after", "removedLimit"}, answer: "RemovedFiles", beside: true,
	},
	"GET " + routes.GetFile + "/:file": {
		id: "readFile", tag: "files", summary: "Read a file",
		text: "The bytes, with their type and name. 204: the file is registered, and its bytes have not come. " +
			"Everybody reads a file that a document of a public asset names, its broker any of his files, and others with " +
			"the query of a `get_url`, which lasts 300 seconds.",
		params: []string{"Signature", "KeyID", "Expires", "Range", "If-Range", "If-None-Match", "If-Match"}, media: "*/*",
		tagged: true, beside: true, headers: []string{"Content-Disposition", "Content-Security-Policy",
			"Cross-Origin-Resource-Policy"},
		statuses: []int{http.StatusNoContent, http.StatusForbidden, http.StatusGone,
			http.StatusRequestedRangeNotSatisfiable},
	},
	"GET " + routes.Picture: {
		id: "readPicture", tag: "files", summary: "Read a small version of a picture",
		text: "A JPEG without the data that a camera adds, such as the place. The registry makes two of each file of type " +
			"JPEG, PNG, WebP or GIF that a document of type `illustration` names, seconds after the document and the bytes. " +
			"The bytes of an address stay the same. Readers of the file may read them. 404: no picture could be made, or " +
			"not yet. 410: the file was removed.",
		params: []string{"Signature", "KeyID", "Expires", "Range", "If-Range", "If-None-Match", "If-Match"},
		media:  "image/jpeg", tagged: true, beside: true, headers: []string{"Content-Disposition", "Content-Security-Policy",
			"Cross-Origin-Resource-Policy"},
		statuses: []int{http.StatusForbidden, http.StatusGone, http.StatusRequestedRangeNotSatisfiable},
	},
	"GET " + routes.Archive: {
		id: "readArchive", tag: "files", summary: "Read all documents of an asset",
		text: "A ZIP archive, not compressed, with the newest version of each document whose file everybody reads. " +
			"`Registry-Total` has the number of files. An answer that breaks off is no archive. A caller has one archive at " +
			"a time, and an hour for it. 404: the asset has no such file. 413: there are more than 1,000, or more than 1 GiB.",
		file: "application/zip", beside: true, headers: []string{"Content-Disposition", "Registry-Total"},
		statuses: []int{http.StatusRequestEntityTooLarge},
	},
	"DELETE " + routes.GetFile + "/:file": {
		id: "removeFile", tag: "files", summary: "Take a file down",
		text: "For good, and all files with the same bytes. Only the administrator may. Documents keep the address, " +
			"the hash and the size. The same bytes are refused from then on. The audit log has the reason.",
		params: []string{"reason"}, answer: "FileRemoved", beside: true, statuses: []int{http.StatusForbidden,
			http.StatusConflict},
	},
}

// ofUploads are the error statuses of uploads.
var ofUploads = []int{http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge,
	http.StatusInsufficientStorage}

// isBeside reports whether a pattern is a whole path that does not begin with a version.
func isBeside(pattern string) bool {
	for _, path := range []string{routes.RegisterFile, routes.UploadFile, routes.GetFile} {
		if pattern == path || strings.HasPrefix(pattern, path+"/") {
			return true
		}
	}
	return false
}

// describedRoutes returns the routes that the documents describe.
func describedRoutes() []routes.Route { return append(routes.All(), routes.Files()...) }

// bodyOf returns the body of an operation, or nil if the operation has no body.
func (w *writer) bodyOf(o operation) object {
	if o.form != "" {
		return object{{"required", true}, {"content", formContent(reference("schemas", o.form))}}
	}
	if o.body == "" {
		return nil
	}
	body := object{
		{"required", true},
		{"content", object{{"application/json", object{
			{"schema", reference("schemas", bodyOf(o.body))},
			{"examples", object{{exampleName, object{{"value", object{{"data", w.bodyExample(o.body)}}}}}}},
		}}}},
	}
	if o.body == "DocumentInput" { // in content, the form would make generated clients send every document as a form
		body = body.with("x-other-media", formContent(documentForm()))
	}
	return body
}

// formContent returns the content of a body that is a form with this schema.
func formContent(schema object) object {
	return object{{"multipart/form-data", object{{"schema", schema}}}}
}

// uploaded is the schema of the form field that contains the file.
var uploaded = object{{"type", "string"}, {"format", "binary"}, {"description", "The file, with its name and type."}}

// documentForm returns the schema of a form with a document. It is not a component: checkers look for uses of
// components only in content, but this form is in x-other-media.
func documentForm() object {
	return object{
		{"type", "object"}, {"description", "A file, and the fields of its document: as texts under their names, or " +
			"as a JSON object in `data`. `url` and `hash` come from the file, and `title` and `format` too where " +
			"the form has none."},
		{"required", []string{"file"}},
		{"properties", object{{"file", uploaded}, {"data", str("A JSON object with fields of the document.")}}},
	}
}

// sides are the sizes of the small versions of pictures.
var sides = []int{filelink.SmallPicture, filelink.LargePicture}

// fileExamples has the examples of bodies about files.
var fileExamples = map[string]object{"FileRegistration": {{"hash", md5Example}}}

const md5Example = "md5:d41d8cd98f00b204e9800998ecf8427e"

// fileSchemas returns the schemas of files and of forms with files.
func fileSchemas() object {
	hash := func(text string) object {
		return str(text, member{"pattern", "^md5:[0-9a-f]{32}$"}, member{"examples", []string{md5Example}})
	}
	size := integer("Bytes of the file.", member{"minimum", 0})
	sum := func(text string) object { return str(text, digits(64)) }
	title := str("Name of the file, without a path.", member{"maxLength", 255})
	bound := func(more ...member) object {
		return append(object{{"url", str("Address of the file with the signature by which a document takes it.")}}, more...)
	}
	known := closed("A file of a list.", object{
		{"id", str("Id of the file, the end of its address; of an archive the id of the asset.", digits(32))},
		{"broker", str("Broker that has registered the file.")},
		{"state", str("`registered`: the bytes have not come. `removed`: the administrator has taken it down.",
			member{"enum", []string{"registered", "stored", "removed"}})},
		{"hash", hash("Hash of the registration, or of the bytes.")},
		{"sha256", sum("SHA-256 of the bytes.")},
		{"size", size},
		{"title", title},
		{"format", str("Type of the file.")},
		{"date", object{{"type", "string"}, {"format", "date-time"},
			{"description", "Time of the registration, the upload, or the newest document, whichever is last."}}},
		{"named", object{{"type", "boolean"}, {"description", "A document has named the file, so everybody may read it."}}},
		{"removed_by", str("Key of the administrator. Only administrators see it.")},
		{"reason", str("Reason of the removal. Only administrators see it.")},
	}, "hash", "sha256", "title", "format", "removed_by", "reason")
	page := reference("schemas", "FileLink")
	return object{
		{"FileRegistration", object{
			{"type", "object"}, {"description", "A file to come. Other members come back in the answer."},
			{"required", []string{"hash"}},
			{"properties", object{{"hash", hash("Hash of the bytes to come.")}}},
		}},
		{"FileRegistered", closed("A registered file.", object{
			{"data", object{
				{"type", "object"}, {"description", "The data as sent, and the address of the file."},
				{"required", []string{"url", "hash"}},
				{"properties", bound(member{"hash", hash("Hash of the bytes to come.")})},
			}},
			{"upload_url", str("Address that takes the bytes.")},
		})},
		{"FileForm", object{
			{"type", "object"}, {"description", "A form with one file. Other fields are ignored."},
			{"required", []string{"file"}}, {"properties", object{{"file", uploaded}}},
		}},
		{"FileUploaded", closed("A file whose bytes have come.", object{
			{"data", closed("The fields that a document needs.", bound(
				member{"hash", hash("MD5 of the bytes.")}, member{"format", str("Type of the file.")}, member{"title", title},
			))},
			{"get_url", str("Address of the bytes for 300 seconds.")},
		})},
		{"ListedFile", known},
		{"FileLink", closed("The page after this one.", object{
			{"after", str("Id of the last file that this page has looked at.")}, {"path", str("Path and query of the page.")},
		})},
		{"FileList", closed("Files.", object{
			{"data", listOf(reference("schemas", "ListedFile"))}, {"next_page", page},
		}, "next_page")},
		{"RemovedFiles", closed("Files that were taken down.", object{
			{"data", listOf(closed("A file that was taken down.", object{
				{"id", str("Id of the file, the end of its address.", digits(32))},
			}))},
			{"next_page", page},
		}, "next_page")},
		{"FileRemoved", closed("A file that was taken down.", object{
			{"data", closed("The file, as the registry remembers it.", object{
				{"id", str("Id of the file.", digits(32))},
				{"sha256", str("SHA-256 of the bytes. Empty if they had not come.", member{"pattern", "^([0-9a-f]{64})?$"})},
				{"size", size},
				{"removed_by", str("Key of the administrator who has removed it first.")},
				{"reason", str("The first reason.")},
			})},
		})},
	}
}

// addFileParameters adds the parameters of files.
func addFileParameters(add func(component, in, name, text string, schema object)) {
	text := object{{"type", "string"}}
	add("pictureSide", "path", "side", "Pixels of the longer side.", object{{"type", "integer"}, {"enum", sides}})
	add("storedFile", "path", "file", "Id of the file, the end of its address.",
		object{{"type", "string"}, {"minLength", 1}})
	add("removedLimit", "query", "limit", "Files of a page. More than 1000 counts as 1000.",
		object{{"type", "integer"}, {"minimum", 1}, {"default", 1000}})
	add("Signature", "query", "Signature", "Signature of the address.", text)
	add("KeyID", "query", "KeyID", "Id of the key of the signature.", text)
	add("Expires", "query", "Expires", "End of the signature, in seconds since the epoch. A file that everybody may read "+
		"needs none of the three, so they are not looked at.", text)
	add("reason", "query", "reason", "Why the file is taken down, in 1 to 1,000 bytes.",
		object{{"type", "string"}, {"minLength", 1}, {"maxLength", 1000}})
}
