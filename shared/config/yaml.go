package config

import (
	"errors"
	"io"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// ReadYAML reads the first document of a YAML file into dst, a pointer to a map or a struct of strings, or a
// list of these. A field that dst does not have is an error. Scalars are not converted, so 0123, 1.50 and true
// stay as written. An empty file changes nothing. The error may quote the file.
func ReadYAML(r io.Reader, dst any) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	tokens := lexer.Tokenize(string(text))
	for _, t := range tokens {
		switch t.Type {
		case token.IntegerType, token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType,
			token.FloatType, token.InfinityType, token.NanType, token.BoolType:
			t.Type = token.StringType
		}
	}
	file, err := parser.Parse(tokens, 0)
	if err == nil && len(file.Docs) > 0 && file.Docs[0].Body != nil {
		err = yaml.NodeToValue(file.Docs[0].Body, dst, yaml.DisallowUnknownField())
	}
	if err != nil {
		return errors.New(yaml.FormatError(err, false, false))
	}
	return nil
}

// jsonOf returns a value that ReadYAML has read. Each text in it that is a whole number in JSON's form
// becomes a number.
func jsonOf(value any) any {
	switch v := value.(type) {
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && strconv.FormatInt(n, 10) == v {
			return n
		}
	case []any:
		for i := range v {
			v[i] = jsonOf(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = jsonOf(v[name])
		}
	}
	return value
}
