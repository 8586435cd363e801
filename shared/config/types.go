package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"asset-registry/shared/buildinfo"
)

// Types returns readers for types of settings. The errors of kong or Go for these types do not say which form
// is accepted. Kong itself would also accept a number without a unit, as nanoseconds.
func Types() []kong.Option {
	whole := reading("a whole number, at most 9223372036854775807", func(text string) (int64, error) {
		return strconv.ParseInt(text, 0, 64)
	})
	return []kong.Option{
		kong.TypeMapper(reflect.TypeFor[time.Duration](),
			reading("a duration with its unit, such as 90s, 10m or 24h", time.ParseDuration)),
		kong.TypeMapper(reflect.TypeFor[netip.Prefix](),
			reading("a network such as 10.0.0.0/8 or fd00::/8", netip.ParsePrefix)),
		kong.TypeMapper(reflect.TypeFor[slog.Level](),
			reading("debug, info, warn or error", func(text string) (level slog.Level, err error) {
				return level, level.UnmarshalText([]byte(text))
			})),
		kong.KindMapper(reflect.Int, whole),
		kong.KindMapper(reflect.Int64, whole),
	}
}

// reading returns a mapper that reads values with the function `parse`. If parse refuses a value, the error quotes
// the argument `form`, which describes the values that are accepted.
func reading[T any](form string, parse func(string) (T, error)) kong.Mapper {
	return kong.MapperFunc(func(c *kong.DecodeContext, target reflect.Value) error {
		read, err := c.Scan.PopValue("value")
		if err != nil {
			return err
		}
		text := fmt.Sprint(read.Value)
		value, err := parse(text)
		if err != nil {
			return fmt.Errorf("want %s, got %q", form, text)
		}
		target.Set(reflect.ValueOf(value).Convert(target.Type()))
		return nil
	})
}

// Zone returns the time zone of a constant offset such as "+02:00". It refuses
// the names of zones. In a zone with summer time, printed times would not keep
// their order when summer time ends (docs/contract.md, "Timestamps").
func Zone(text string) (*time.Location, error) {
	t, err := time.Parse("-07:00", text)
	if err != nil {
		return nil, fmt.Errorf("zone %q must be an offset such as +02:00", text)
	}
	_, seconds := t.Zone()
	if seconds == 0 {
		return time.UTC, nil
	}
	return time.FixedZone(text, seconds), nil
}

// PrintVersion is the type of a flag that prints the program's name and build, and
// ends the process. Parse declares it as --version.
type PrintVersion bool

// BeforeReset prints the build before any setting is read. Kong calls it.
func (PrintVersion) BeforeReset(app *kong.Kong) error {
	fmt.Fprintln(app.Stdout, app.Model.Name, buildinfo.Read())
	app.Exit(0)
	return nil
}

// ReadYAML reads the first document of a YAML file into dst, a pointer to a map or a struct of strings, or a
// list of these. A field that dst does not have is an error. Scalars are not converted, so 0123, 1.50 and true
// stay as written. An empty file changes nothing. The error may quote the file.
func ReadYAML(r io.Reader, dst any) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	tokens := lexer.Tokenize(string(bytes.TrimPrefix(text, []byte("\ufeff")))) // some editors write this mark
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
