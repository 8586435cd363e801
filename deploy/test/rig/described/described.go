// Package described checks that everything a registry does is described in its OpenAPI document. For an answer, the
// document must have the status, the headers, the body and the places of the errors. If the registry has accepted a
// request, the document must permit the request.
package described

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"asset-registry/deploy/test/openapi/documents"
	"asset-registry/shared/httpserver"
)

func init() {
	for _, media := range []string{"application/javascript", "application/yaml", "application/zstd", events, lines} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.PlainBodyDecoder)
	}
}

// Exchange is a complete request and its complete answer. If the answer is a stream, Exchange has only the
// beginning of the stream.
type Exchange struct {
	Request *http.Request // its body is not read
	Sent    []byte        // body of the request
	Status  int
	Header  http.Header
	Body    []byte
}

// Document is the OpenAPI document of one version. It is safe for concurrent use.
type Document struct {
	Spec    *openapi3.T
	prefix  string // prefix of all paths
	router  routers.Router
	schemas *jsonschema.Compiler

	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
	whole    map[string]int // numbers of exchanges that openapi3filter has checked; the keys are operation and status
	seen     map[string]int // numbers of all exchanges; the keys are operation and status
}

// Parse reads the JSON text of a document in which all paths are below prefix ("/api/2.5"). It fails if the
// document is not valid OpenAPI.
func Parse(prefix string, text []byte) (*Document, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	complete(value)
	if text, err = json.Marshal(value); err != nil {
		return nil, err
	}
	spec, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("load the document: %w", err)
	}
	if err := spec.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("the document is not valid: %w", err)
	}
	spec.Servers = openapi3.Servers{{URL: prefix}}
	for _, item := range spec.Paths.Map() {
		if len(item.Servers) == 0 { // otherwise, the router would use the servers of the previous path
			item.Servers = spec.Servers
		}
	}
	router, err := gorillamux.NewRouter(spec)
	if err != nil {
		return nil, fmt.Errorf("route by the document: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource(base, value); err != nil {
		return nil, err
	}
	return &Document{
		Spec: spec, prefix: prefix, router: router, schemas: compiler, compiled: map[string]*jsonschema.Schema{},
		whole: map[string]int{}, seen: map[string]int{},
	}, nil
}

// complete adds the parts that a document lacks for the sake of client generators. Each schema gets all types that
// the registry accepts, each answer gets all media types, and each operation gets the common parameters.
func complete(document any) {
	root, _ := document.(map[string]any)
	parameters, _ := root["x-common-parameters"].([]any)
	paths, _ := root["paths"].(map[string]any)
	for _, path := range paths {
		operations, _ := path.(map[string]any)
		for _, operation := range operations {
			if o, ok := operation.(map[string]any); ok {
				own, _ := o["parameters"].([]any)
				o["parameters"] = append(own, parameters...)
			}
		}
	}
	widen(document)
}

func widen(value any) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			widen(element)
		}
	case map[string]any:
		for _, member := range v {
			widen(member)
		}
		if also, ok := v[documents.AlsoAccepts].([]any); ok {
			types, isList := v["type"].([]any)
			if !isList {
				types = []any{v["type"]}
			}
			v["type"] = append(slices.Clone(types), also...)
		}
		if media, ok := v["x-other-media"].(map[string]any); ok {
			maps.Copy(v["content"].(map[string]any), media)
		}
	}
}

// base is the name under which the compiler knows the document.
const base = "urn:openapi"

// Seen returns how often each operation was answered with each status. The keys are names such as "createAsset
// 201".
func (d *Document) Seen() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.seen)
}

// Check returns an error that lists everything in an exchange that the document does not describe. It returns nil
// if the document describes all of it.
func (d *Document) Check(x Exchange) error {
	route, params, err := d.route(x.Request)
	if err != nil { // the document does not have the path or the method
		return d.checkUnknown(x, err)
	}
	d.mu.Lock()
	d.seen[fmt.Sprint(route.Operation.OperationID, " ", x.Status)]++
	d.mu.Unlock()
	var faults []error
	if x.Request.Method != http.MethodOptions {
		faults = append(faults, d.checkAnswer(x, route, params))
	}
	if x.Status < http.StatusBadRequest {
		faults = append(faults, d.checkRequest(x, route, params))
	}
	return errors.Join(faults...)
}

// route finds the operation of a request. A HEAD request has the operation of GET, because the document does not
// describe HEAD.
func (d *Document) route(r *http.Request) (*routers.Route, map[string]string, error) {
	asked := &http.Request{Method: r.Method, URL: &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath}}
	if r.Method == http.MethodHead {
		asked.Method = http.MethodGet
	}
	return d.router.FindRoute(asked)
}

// checkUnknown checks the answer to a request whose path or method is not in the document.
func (d *Document) checkUnknown(x Exchange, why error) error {
	switch {
	case x.Request.Method == http.MethodOptions && x.Status == http.StatusNoContent:
		return nil
	case x.Status < http.StatusBadRequest:
		return fmt.Errorf("got %d, want an error: %w", x.Status, why)
	case x.Request.Method == http.MethodHead:
		return nil
	default:
		return d.checkSchema("#/components/schemas/Error", x.Body)
	}
}

// wholly is the number of exchanges of each operation and status that openapi3filter checks. This library is slow,
// because it compiles every schema each time. For later exchanges, schemas that were compiled once do the same
// checks, except for the types of headers.
const wholly = 20

// checkAnswer checks status, headers and body of an answer.
func (d *Document) checkAnswer(x Exchange, route *routers.Route, params map[string]string) error {
	name := fmt.Sprint(route.Operation.OperationID, " ", x.Status)
	response, at := answerOf(route, x.Status)
	if response == nil {
		return fmt.Errorf("answer %d of %s: status is not supported", x.Status, route.Operation.OperationID)
	}
	d.mu.Lock()
	d.whole[name]++
	whole := d.whole[name] <= wholly
	d.mu.Unlock()
	if whole && !isAny(response.Value) {
		if err := d.filter(x, route, params); err != nil {
			return fmt.Errorf("answer %d of %s: %w", x.Status, route.Operation.OperationID, err)
		}
	}
	if err := d.undocumented(response.Value, x.Header); err != nil {
		return fmt.Errorf("answer %d of %s: %w", x.Status, route.Operation.OperationID, err)
	}
	media, _, _ := strings.Cut(x.Header.Get("Content-Type"), ";") // the document names types without charset
	if len(response.Value.Content) > 0 && response.Value.Content.Get(media) == nil {
		return fmt.Errorf("answer %d of %s: the document lacks the media type %q", x.Status,
			route.Operation.OperationID, media)
	}
	if x.Request.Method == http.MethodHead || isAny(response.Value) {
		return nil
	}
	if err := d.checkBody(at+"/content/"+strings.ReplaceAll(media, "/", "~1"), media, x.Body); err != nil {
		return fmt.Errorf("answer %d of %s: %w", x.Status, route.Operation.OperationID, err)
	}
	return checkPlaces(response.Value, x.Body)
}

// isAny reports whether an answer may have any media type, because it is the content of a file.
func isAny(of *openapi3.Response) bool { return of.Content["*/*"] != nil }

// answerOf returns the answer that the document has for a status of an operation, and its place in the document. If
// the answer "default" lists the status, it returns the answer "default".
func answerOf(route *routers.Route, status int) (*openapi3.ResponseRef, string) {
	name := fmt.Sprint(status)
	response := route.Operation.Responses.Value(name)
	if response == nil {
		name = "default"
		response = route.Operation.Responses.Default()
		if response == nil {
			return nil, ""
		}
		statuses, _ := response.Value.Extensions["x-statuses"].([]any)
		if !slices.Contains(statuses, any(float64(status))) {
			return nil, ""
		}
	}
	if response.Ref != "" {
		return response, response.Ref
	}
	return response, operationPointer(route) + "/responses/" + name
}

// checkBody checks the body of an answer. The parameter `pointer` leads to the answer's media type in the document.
func (d *Document) checkBody(pointer, media string, body []byte) error {
	switch {
	case media == "application/json":
		return d.checkSchema(pointer+"/schema", body)
	case IsStream(media):
		return d.checkStream(pointer, media, string(body))
	default:
		return nil
	}
}

// filter checks an answer with openapi3filter.
func (d *Document) filter(x Exchange, route *routers.Route, params map[string]string) error {
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: d.input(x, route, params),
		Status:                 x.Status, Header: x.Header, Body: io.NopCloser(bytes.NewReader(x.Body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
}

// checkRequest checks the parameters and the body of a request.
func (d *Document) checkRequest(x Exchange, route *routers.Route, params map[string]string) error {
	input := d.input(x, route, params)
	input.Options = &openapi3filter.Options{
		ExcludeRequestBody: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true,
	}
	if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
		return fmt.Errorf("accepted request of %s: %w", route.Operation.OperationID, err)
	}
	if route.Operation.RequestBody == nil {
		return nil
	}
	if media := x.Request.Header.Get("Content-Type"); media != "" && !strings.HasPrefix(media, "application/json") {
		return nil // JSON Schema cannot describe forms
	}
	sent, err := writtenBy(roleOf(x.Request), route.Operation.RequestBody.Value, x.Sent)
	if err != nil {
		return err
	}
	at := operationPointer(route) + "/requestBody/content/application~1json/schema"
	if err := d.checkSchema(at, sent); err != nil {
		return fmt.Errorf("accepted request of %s: %w", route.Operation.OperationID, err)
	}
	return nil
}

// roleOf returns the role of a request's sandbox key, or "creation" for a POST by a broker. The registry ignores
// the fields that this role is not allowed to write.
func roleOf(r *http.Request) string {
	key, _, _ := r.BasicAuth()
	switch {
	case key == "concierge" || key == "administrator":
		return key
	case r.Method == http.MethodPost:
		return "creation"
	default:
		return "owner"
	}
}

// writtenBy returns the body without the fields that the role is not allowed to write, or may write only under a
// condition. The registry checks only the types of these fields. The extension x-written-by lists the roles that may
// write a field, and the conditions.
func writtenBy(role string, of *openapi3.RequestBody, sent []byte) ([]byte, error) {
	data := of.Content.Get("application/json").Schema.Value.Properties["data"]
	if data == nil {
		return sent, nil
	}
	var body, fields map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(sent, &body), json.Unmarshal(body["data"], &fields)); err != nil {
		return nil, fmt.Errorf("the accepted body is no JSON object with data: %w", err)
	}
	for name, property := range data.Value.Properties {
		writers, ok := writersOf(property)
		if ok && !slices.Contains(writers, any(role)) {
			delete(fields, name)
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	body["data"] = text
	return json.Marshal(body)
}

// writersOf returns the extension x-written-by of a property, and whether it has one. The extension is next to a
// reference, or in the schema itself.
func writersOf(property *openapi3.SchemaRef) ([]any, bool) {
	if writers, ok := property.Extensions["x-written-by"].([]any); ok {
		return writers, true
	}
	writers, ok := property.Value.Extensions["x-written-by"].([]any)
	return writers, ok
}

// input returns the request in the form that openapi3filter needs. It leaves out empty parameters, which count as
// absent. If the answer is a stream, it also leaves out the parameters that streams ignore.
func (d *Document) input(
	x Exchange, route *routers.Route, params map[string]string,
) *openapi3filter.RequestValidationInput {
	asked := x.Request.Clone(context.Background())
	query := asked.URL.Query()
	for name, values := range query {
		if values[0] == "" || IsStream(x.Header.Get("Content-Type")) && !slices.Contains(ofStreams, name) {
			query.Del(name)
		}
	}
	asked.URL.RawQuery = query.Encode()
	return &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route}
}

// operationPointer returns the JSON Pointer of an operation in the document.
func operationPointer(route *routers.Route) string {
	return "#/paths/" + strings.ReplaceAll(route.Path, "/", "~1") + "/" + strings.ToLower(route.Method)
}

// checkSchema checks JSON against the schema at a JSON Pointer in the document.
func (d *Document) checkSchema(pointer string, text []byte) error {
	schema, err := d.schema(pointer)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("the body is no JSON: %w", err)
	}
	return schema.Validate(value)
}

// schema returns the compiled schema at a JSON Pointer in the document.
func (d *Document) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.compiled[pointer]; s != nil {
		return s, nil
	}
	s, err := d.schemas.Compile(base + pointer)
	if err != nil {
		return nil, fmt.Errorf("compile the schema at %s: %w", pointer, err)
	}
	d.compiled[pointer] = s
	return s, nil
}

// common are headers that any answer may have, without a description in the document. The last one is in answers of the
// services, and the gateway takes it out.
var common = []string{
	"Access-Control-Allow-Headers", "Access-Control-Allow-Methods", "Access-Control-Allow-Origin",
	"Access-Control-Expose-Headers", "Access-Control-Max-Age", "Cache-Control", "Connection", "Content-Encoding",
	"Content-Length", "Content-Type", "Date", "Transfer-Encoding", "Vary", "X-Content-Type-Options",
	httpserver.WorkHeader,
}

// undocumented returns an error if an answer has a header that the document does not describe.
func (d *Document) undocumented(response *openapi3.Response, header http.Header) error {
	everywhere, _ := d.Spec.Extensions["x-common-headers"].(map[string]any)
	for name := range header {
		if slices.Contains(common, name) {
			continue
		}
		known := false
		for documented := range response.Headers {
			known = known || strings.EqualFold(documented, name)
		}
		for documented := range everywhere {
			known = known || strings.EqualFold(documented, name)
		}
		if !known {
			return fmt.Errorf("the document lacks the header %s", name)
		}
	}
	return nil
}

// checkPlaces checks that the body of an error names only places that x-errors lists.
func checkPlaces(response *openapi3.Response, text []byte) error {
	places, isError := response.Extensions["x-errors"].([]any)
	if !isError {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	body, _ := value.(map[string]any)
	list, _ := body["errors"].([]any)
	for _, e := range list {
		fields, _ := e.(map[string]any)
		place := fmt.Sprint(fields["location"], "/", fields["name"])
		if !slices.ContainsFunc(places, func(p any) bool {
			documented, _ := p.(string)
			if of, any := strings.CutSuffix(documented, "/*"); any {
				return strings.HasPrefix(place, of+"/")
			}
			return place == documented
		}) {
			return fmt.Errorf("the document lacks the error at %s", place)
		}
	}
	return nil
}
