package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"asset-registry/shared/fault"
)

// MaxDepth is the deepest accepted nesting of objects and lists. All objects that the field tables allow are
// less deep, and the stack is large enough for this depth.
const MaxDepth = 32

// Parse reads a text as one JSON value (RFC 8259), with the rules of I-JSON (RFC 7493): UTF-8 only, and no
// repeated names in an object. The error is a fault of kind Invalid. Its location is body/data if the text is
// not JSON; otherwise the fault has a detail for each repeated name.
func Parse(text []byte) (Value, error) { return parse(text, MaxDepth) }

func parse(text []byte, depth int) (Value, error) {
	if !utf8.Valid(text) {
		const says = "could not decode params: the body is not valid UTF-8"
		return nil, fault.New(fault.Invalid, fault.Body, "data", says)
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	p := parser{depth: depth, decoder: decoder}
	value, err := p.value("", 0)
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, err
	}
	if len(p.duplicates) > 0 {
		return nil, &fault.Error{Kind: fault.Invalid, Details: p.duplicates}
	}
	return value, nil
}

// large is the number of members at which the parser begins to keep an index of an object's names. Valid assets
// have no object of that size.
const large = 64

// maxDuplicates is the maximum number of repeated names that an error lists. It limits the size of the answer.
const maxDuplicates = 100

type parser struct {
	depth      int // deepest accepted nesting
	decoder    *jsontext.Decoder
	duplicates []fault.Detail
}

func (p *parser) value(path string, depth int) (Value, error) {
	token, err := p.decoder.ReadToken()
	if err != nil {
		return nil, p.syntax(err)
	}
	if kind := token.Kind(); (kind == '{' || kind == '[') && depth == p.depth {
		return nil, p.fault("The body nests deeper than %d levels.", p.depth)
	}
	switch token.Kind() {
	case '{':
		return p.object(path, depth)
	case '[':
		return p.list(path, depth)
	case '"':
		return token.String(), nil
	case '0':
		return Number(token.String()), nil
	case 't', 'f':
		return token.Bool(), nil
	default:
		return nil, nil
	}
}

func (p *parser) object(path string, depth int) (Value, error) {
	object := Object{}
	var names map[string]bool // names of a large object, in which Lookup would be slow; nil: the object is small
	for p.decoder.PeekKind() != '}' {
		token, err := p.decoder.ReadToken()
		if err != nil {
			return nil, p.syntax(err)
		}
		name := token.String()
		within := Join(path, name)
		value, err := p.value(within, depth+1)
		if err != nil {
			return nil, err
		}
		repeated := names[name]
		if names == nil {
			_, repeated = object.Lookup(name)
		}
		if repeated {
			p.duplicate(within)
			continue
		}
		object = append(object, Member{name, value})
		switch {
		case names != nil:
			names[name] = true
		case len(object) == large:
			names = make(map[string]bool, 2*large)
			for _, m := range object {
				names[m.Name] = true
			}
		}
	}
	_, err := p.decoder.ReadToken()
	return object, p.syntax(err)
}

// duplicate adds a fault for a name that occurs again in the same object.
func (p *parser) duplicate(path string) {
	if len(p.duplicates) < maxDuplicates {
		name := strings.TrimPrefix(path, "data.")
		d := fault.Detail{Location: fault.Body, Name: name, Description: "This field is sent more than once."}
		p.duplicates = append(p.duplicates, d)
	}
}

func (p *parser) list(path string, depth int) (Value, error) {
	list := List{}
	for p.decoder.PeekKind() != ']' {
		value, err := p.value(Join(path, strconv.Itoa(len(list))), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := p.decoder.ReadToken()
	return list, p.syntax(err)
}

// end returns an error if there is text after the value.
func (p *parser) end() error {
	switch _, err := p.decoder.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return p.syntax(err)
	default:
		return p.broken()
	}
}

// syntax returns the fault for an error of the decoder. For a nil error it returns nil.
func (p *parser) syntax(err error) error {
	if err == nil {
		return nil
	}
	return p.broken()
}

// broken returns the fault for a text that is not JSON. The fault names the place where the parser stopped.
func (p *parser) broken() error {
	return fault.BrokenJSON(p.decoder.InputOffset())
}

func (p *parser) fault(format string, args ...any) error {
	return fault.New(fault.Invalid, fault.Body, "data", format, args...)
}

// Members returns the members of a stored JSON object, in their order, each with its value as JSON text. If the
// text is not a JSON object, the sequence ends with a nil value.
func Members(text []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		decoder := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
		if token, err := decoder.ReadToken(); err != nil || token.Kind() != '{' {
			yield("", nil)
			return
		}
		for decoder.PeekKind() != '}' {
			token, err := decoder.ReadToken()
			if err != nil {
				yield("", nil)
				return
			}
			name := token.String()
			value, err := decoder.ReadValue()
			if err != nil {
				yield(name, nil)
				return
			}
			if !yield(name, value) {
				return
			}
		}
	}
}

// Join returns the dotted path of a member of an object, or of an element of a list. The argument `path` is the path
// of this object or list.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Append appends a value, as JSON without white space, to dst.
func Append(dst []byte, value Value) []byte {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case Number:
		return append(dst, v...)
	case string:
		return AppendString(dst, v)
	case List:
		dst = append(dst, '[')
		for i, element := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = Append(dst, element)
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		for i, m := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendString(dst, m.Name), ':')
			dst = Append(dst, m.Value)
		}
		return append(dst, '}')
	default:
		panic(fmt.Sprintf("record: a %T is not a JSON value", value)) // a bug in the caller
	}
}

// AppendString appends a text, as a JSON string, to dst.
func AppendString(dst []byte, text string) []byte {
	dst, err := jsontext.AppendQuote(dst, text)
	if err != nil { // impossible, because Parse accepts only UTF-8
		panic(fmt.Sprintf("record: %v", err))
	}
	return dst
}

// Skim iterates over the members of a stored JSON object, or over the elements of a list. It parses nothing and copies
// nothing: a name has its escape sequences and no quotes, an element has no name, and a value is its JSON text. The
// text must be JSON; in another text Skim ends early. A value that is neither an object nor a list has no elements.
func Skim(text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		i := blank(text, 0)
		if i == len(text) || text[i] != '{' && text[i] != '[' {
			return
		}
		hasNames := text[i] == '{'
		for i = blank(text, i+1); i < len(text) && text[i] != '}' && text[i] != ']'; {
			var name []byte
			if hasNames {
				end := skip(text, i)
				colon := blank(text, end)
				if text[i] != '"' || colon == len(text) || text[colon] != ':' {
					return
				}
				name, i = text[i+1:end-1], blank(text, colon+1)
			}
			end := skip(text, i)
			if end == i || !yield(name, text[i:end]) {
				return
			}
			if i = blank(text, end); i == len(text) || text[i] != ',' {
				return
			}
			i = blank(text, i+1)
		}
	}
}

// blank returns the index of the first character that is no white space, from i on.
func blank(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// skip returns the index behind the JSON value that begins at i.
func skip(text []byte, i int) int {
	for depth := 0; i < len(text); {
		switch text[i] {
		case '"':
			i = skipString(text, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return len(text)
}

// skipString returns the index behind the JSON string that begins at i.
func skipString(text []byte, i int) int {
	for i++; ; i++ {
		length := bytes.IndexByte(text[i:], '"')
		if length < 0 {
			return len(text)
		}
		i += length
		slashes := 0
		for text[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}
