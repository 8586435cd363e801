package config

import (
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
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
