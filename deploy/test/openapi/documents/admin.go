package documents

import (
	_ "embed" // admin.yaml
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"asset-registry/shared/adminapi"
)

//go:embed admin.yaml
var adminFile []byte

// adminProse is the content of admin.yaml.
type adminProse struct {
	Guide      string                       `yaml:"guide"`
	Operations map[string]adminOperation    `yaml:"operations"` // by method and pattern
	Parameters map[string]adminParameter    `yaml:"parameters"`
	Fields     map[string]map[string]string `yaml:"fields"` // by type and field; the field "" is for the type itself
}

type adminOperation struct {
	ID         string   `yaml:"id"`
	Summary    string   `yaml:"summary"`
	Text       string   `yaml:"text"`
	Parameters []string `yaml:"parameters"`
	Body       string   `yaml:"body"` // name of the schema of data; "": the operation has no body
	Answer     string   `yaml:"answer"`
	List       bool     `yaml:"list"`
	Secret     bool     `yaml:"secret"` // the answer has a new secret
}

type adminParameter struct {
	Text    string   `yaml:"text"`
	Maximum int      `yaml:"maximum"` // greatest value of a number; 0: the parameter is a text
	Enum    []string `yaml:"enum"`
}

// adminTypes are the types of answers and bodies. A body of PATCH has the fields to be changed; null clears a
// field.
var adminTypes = []struct {
	name  string
	of    reflect.Type
	body  bool
	needs []string // fields that a body must have
}{
	{"Broker", reflect.TypeFor[adminapi.Broker](), false, nil},
	{"NewBroker", reflect.TypeFor[adminapi.NewBroker](), true, []string{"name"}},
	{"BrokerSettings", reflect.TypeFor[adminapi.BrokerSettings](), true, nil},
	{"Key", reflect.TypeFor[adminapi.Key](), false, nil},
	{"NewKey", reflect.TypeFor[adminapi.NewKey](), true, []string{"name", "role"}},
	{"KeySettings", reflect.TypeFor[adminapi.KeySettings](), true, nil},
	{"Secret", reflect.TypeFor[adminapi.Secret](), false, nil},
	{"Use", reflect.TypeFor[adminapi.Use](), false, nil},
	{"Rotation", reflect.TypeFor[adminapi.Rotation](), true, nil},
	{"Nothing", reflect.TypeFor[struct{}](), true, nil},
	{"Day", reflect.TypeFor[adminapi.Day](), false, nil},
	{"Asset", reflect.TypeFor[adminapi.Asset](), false, nil},
	{"Found", reflect.TypeFor[adminapi.Found](), false, nil},
	{"Entry", reflect.TypeFor[adminapi.Entry](), false, nil},
	{"Verification", reflect.TypeFor[adminapi.Verification](), false, nil},
}

// adminRefusals lists the error answers of the admin API for components/responses.
var adminRefusals = []refusal{
	{400, "Invalid", "The request is malformed, or fields are faulty. The answer names every faulty field.",
		[]string{"body/*", "querystring/*", "header/*"}, nil},
	{401, "Unauthorized", "There is no valid key of the admin API.", []string{"header/Authorization"},
		[]string{"WWW-Authenticate"}},
	{403, "Forbidden", "The key may not do this, or not from this address.",
		[]string{"url/permission", "header/Authorization"}, nil},
	{404, "NotFound", "There is no such broker or key.", []string{"url/*"}, nil},
	{409, "Conflict", "The name is taken, or the key is in a state that forbids it.", []string{"body/*", "url/*"}, nil},
	{413, "TooLarge", "The body is too long.", []string{"body/data"}, nil},
	{415, "UnsupportedMediaType", "The body is not `application/json`.", []string{"header/*"}, nil},
	{417, "ExpectationFailed", "The request has an `Expect` other than `100-continue`.", []string{"header/Expect"}, nil},
	{429, "TooManyRequests", "The address has sent too many wrong keys. Wait for `Retry-After`.",
		[]string{"header/Authorization"}, []string{"Retry-After"}},
	{431, "HeadersTooLarge", "The request line and the headers are too long.", []string{"header/request"}, nil},
	{500, "ServerError", "A defect of the service.", []string{"url/server"}, nil},
	{503, "Unavailable", "The store is down. Wait for `Retry-After`, then repeat the request.", []string{"url/*"},
		[]string{"Retry-After"}},
}

// Admin returns the document of the admin API.
func Admin() ([]byte, error) {
	var p adminProse
	if err := yaml.UnmarshalWithOptions(adminFile, &p, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("read admin.yaml: %w", err)
	}
	paths, err := p.paths()
	if err != nil {
		return nil, err
	}
	schemas, err := p.schemas()
	if err != nil {
		return nil, err
	}
	var shared object
	for _, r := range adminRefusals {
		shared = shared.with(r.name, r.response([]string{"X-Request-ID", "X-Trace-ID"}))
	}
	known := headers()
	used := []string{"X-Request-ID", "X-Trace-ID", "Cache-Control", "WWW-Authenticate", "Retry-After"}
	return encode(object{
		{"openapi", "3.1.0"},
		{"info", object{
			{"title", "Asset registry: admin API"}, {"version", "1"},
			{"summary", "Brokers and API keys of an asset registry."}, {"description", p.Guide},
			{"license", licence},
		}},
		{"servers", []object{{{"url", adminapi.Prefix}, {"description", "this service"}}}},
		{"security", keyed},
		{"tags", []object{
			tag("brokers", "The tenants that own assets."), tag("keys", "Their API keys."), tag("audit", "Every change."),
			tag("find", "One field that finds assets, brokers and keys."),
		}},
		{"paths", paths},
		{"components", object{
			{"schemas", schemas},
			{"headers", components("headers", slices.DeleteFunc(known, func(m member) bool {
				return !slices.Contains(used, m.name)
			}))},
			{"responses", shared},
			{"securitySchemes", securitySchemes},
		}},
	})
}

func (p adminProse) paths() (object, error) {
	var order []string
	byPath := map[string]object{}
	for _, r := range adminapi.Routes() {
		o, ok := p.Operations[r.Method+" "+r.Pattern]
		if !ok {
			return nil, fmt.Errorf("admin.yaml: %s %s is not described", r.Method, r.Pattern)
		}
		path := pathParameter.ReplaceAllString(r.Pattern, "{$1}")
		if _, known := byPath[path]; !known {
			order = append(order, path)
		}
		described, err := p.operation(r, o)
		if err != nil {
			return nil, err
		}
		byPath[path] = byPath[path].with(strings.ToLower(r.Method), described)
	}
	var all object
	for _, path := range order {
		all = all.with(path, byPath[path])
	}
	return all, nil
}

func (p adminProse) operation(r adminapi.Route, o adminOperation) (object, error) {
	params := []object{}
	for _, match := range pathParameter.FindAllStringSubmatch(r.Pattern, -1) {
		params = append(params, object{
			{"name", match[1]}, {"in", "path"}, {"required", true},
			{"schema", object{{"type", "string"}, {"minLength", 1}}},
		})
	}
	for _, name := range o.Parameters {
		q, ok := p.Parameters[name]
		if !ok {
			return nil, fmt.Errorf("admin.yaml: the parameter %s is not described", name)
		}
		params = append(params, object{
			{"name", name}, {"in", "query"}, {"description", q.Text}, {"schema", q.schema()},
		})
	}
	d := object{
		{"operationId", o.ID}, {"tags", []string{strings.Split(r.Pattern, "/")[1]}}, {"summary", o.Summary},
		{"description", o.Text}, {"parameters", params},
	}
	statuses := []int{400, 401, 403, 404, 417, 429, 431, 500, 503}
	if o.Body != "" {
		d = d.with("requestBody", object{
			{"required", o.Body != "Nothing"},
			{"content", object{{"application/json", object{{"schema", closed("", object{
				{"data", reference("schemas", o.Body)},
			})}}}}},
		})
		statuses = append(statuses, 409, 413, 415)
	}
	slices.Sort(statuses)
	status := http.StatusOK
	if r.Method == http.MethodPost && strings.Count(r.Pattern, "/") == 1 {
		status = http.StatusCreated
	}
	responses := object{{strconv.Itoa(status), object{
		{"description", successText[status]},
		{"headers", headerReferences([]string{"X-Request-ID", "X-Trace-ID", "Cache-Control"})},
		{"content", object{{"application/json", object{{"schema", o.answer()}}}}},
	}}}
	for _, status := range statuses {
		i := slices.IndexFunc(adminRefusals, func(r refusal) bool { return r.status == status })
		responses = responses.with(strconv.Itoa(status), reference("responses", adminRefusals[i].name))
	}
	return d.with("responses", responses), nil
}

func (q adminParameter) schema() object {
	switch {
	case q.Maximum > 0:
		return object{{"type", "integer"}, {"minimum", 1}, {"maximum", q.Maximum}}
	case len(q.Enum) > 0:
		return object{{"type", "string"}, {"enum", q.Enum}}
	default:
		return object{{"type", "string"}}
	}
}

// answer returns the schema of an operation's whole answer.
func (o adminOperation) answer() object {
	data := reference("schemas", o.Answer)
	if o.List {
		data = listOf(data)
	}
	properties, optional := object{{"data", data}}, []string{}
	if o.List {
		properties = properties.with("next", str("The parameter `after` of the next page. The last page has none."))
		optional = append(optional, "next")
	}
	if o.Secret {
		properties = properties.with("secret", str("The secret of the key. It is shown this once."))
	}
	if o.Body != "" {
		properties = properties.with("warnings",
			listOf(str("Why the change, which is made and in force, may be lost if the store fails now.")))
		optional = append(optional, "warnings")
	}
	return closed("", properties, optional...)
}

// schemas returns the schemas of adminTypes, which it derives by reflection.
func (p adminProse) schemas() (all object, err error) {
	var missing []error
	for _, of := range adminTypes {
		text, ok := p.Fields[of.name][""]
		if !ok {
			missing = append(missing, fmt.Errorf("admin.yaml: %s is missing", of.name))
		}
		properties, required := object{}, []string{}
		for _, f := range reflect.VisibleFields(of.of) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			about, ok := p.Fields[of.name][name]
			if !ok {
				missing = append(missing, fmt.Errorf("admin.yaml: %s.%s is missing", of.name, name))
			}
			schema := schemaOf(f.Type)
			if of.body && !slices.Contains(of.needs, name) {
				schema = nullable(schema)
			}
			properties = properties.with(name, schema.with("description", about))
			if of.body && slices.Contains(of.needs, name) || !of.body && options == "" {
				required = append(required, name)
			}
		}
		all = all.with(of.name, object{
			{"type", "object"}, {"description", text}, {"required", required}, {"properties", properties},
			{"additionalProperties", false},
		})
	}
	return all.with("Error", errorSchema()), errors.Join(missing...)
}

// schemaOf returns the schema of the JSON into which encoding/json encodes a Go type.
func schemaOf(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{{"type", "string"}, {"format", "date-time"}}
	case t == reflect.TypeFor[json.RawMessage]():
		return object{{"type", []string{"object", "null"}}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Struct:
		return reference("schemas", t.Name())
	case reflect.Slice:
		return listOf(schemaOf(t.Elem()))
	case reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", schemaOf(t.Elem())}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Int, reflect.Int64:
		return object{{"type", "integer"}}
	default:
		return object{{"type", "string"}}
	}
}
