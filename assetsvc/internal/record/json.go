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

// MaxDepth is how deep objects and lists may nest: far deeper than any field
// model goes, and far from what would endanger the stack.
const MaxDepth = 32

// Parse reads one JSON value that fills text (RFC 8259, with the strictness
// of RFC 7493: UTF-8 only, no name twice in an object). Whatever is wrong is a
// fault of kind Invalid: at body/data for text that is no JSON, and one detail
// for each name that stands twice.
func Parse(text []byte) (Value, error) { return parse(text, MaxDepth) }

func parse(text []byte, depth int) (Value, error) {
	if !utf8.Valid(text) {
		return nil, fault.New(fault.Invalid, fault.Body, "data", "could not decode params: the body is not valid UTF-8")
	}
	p := parser{depth: depth, decoder: jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))}
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

// large is how many members make an object large: more than any that the
// rules let through.
const large = 64

// maxDuplicates bounds how many names are told that stand twice, and so the
// size of the answer.
const maxDuplicates = 100

type parser struct {
	depth      int // at most
	decoder    *jsontext.Decoder
	duplicates []fault.Detail
}

func (p *parser) value(path string, depth int) (Value, error) {
	token, err := p.decoder.ReadToken()
	if err != nil {
		return nil, p.syntax(err)
	}
	if kind := token.Kind(); (kind == '{' || kind == '[') && depth == p.depth {
		return nil, fault.New(fault.Invalid, fault.Body, "data", "the body nests deeper than %d levels", p.depth)
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
	var names map[string]bool // of a large object, where looking through it each time would take long
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
		twice := names[name]
		if names == nil {
			_, twice = object.Lookup(name)
		}
		if twice {
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

// duplicate notes a name that stands twice in its object.
func (p *parser) duplicate(path string) {
	if len(p.duplicates) < maxDuplicates {
		p.duplicates = append(p.duplicates, fault.Detail{
			Location: fault.Body, Name: strings.TrimPrefix(path, "data."), Description: "This field is sent more than once.",
		})
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

// end checks that nothing follows the value.
func (p *parser) end() error {
	switch _, err := p.decoder.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return p.syntax(err)
	default:
		return fault.New(fault.Invalid, fault.Body, "data", "the body goes on after its JSON value, at byte %d", p.decoder.InputOffset())
	}
}

func (p *parser) syntax(err error) error {
	if err == nil {
		return nil
	}
	reason := "it ends too early"
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok && syntactic.Err != nil {
		reason = syntactic.Err.Error()
	}
	return fault.New(fault.Invalid, fault.Body, "data", "the body is not JSON: %s, at byte %d", reason, p.decoder.InputOffset())
}

// Members returns the members of a JSON object that was stored, in their order,
// each with its value as text. If text turns out to be no JSON object, the last
// value is nil.
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

// Join returns the dotted path of a member or element within path.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Append appends value as JSON to dst, without white space.
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
		panic(fmt.Sprintf("record: a %T is no JSON value", value)) // a programmer's error
	}
}

// AppendString appends text as a JSON string to dst.
func AppendString(dst []byte, text string) []byte {
	dst, err := jsontext.AppendQuote(dst, text)
	if err != nil { // not UTF-8, which Parse lets nothing through of
		panic(fmt.Sprintf("record: %v", err))
	}
	return dst
}
