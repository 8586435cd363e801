package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
)

// An entity tag (RFC 9110, 8.8.3) is the position of the asset, the version that
// shows it, and how it is printed when that was asked for: "1763640000123456-2.5",
// "1763640000123456-2.5-pretty". It is a strong one. Parts have the tag of their
// asset. A write with If-Match is about the asset, however it was shown: there
// only the position counts.

// tag returns the entity tag of what is shown of an asset at a position.
func tag(position int64, v version, o options) string {
	text := strconv.FormatInt(position, 10) + "-" + v.name
	if o.pretty {
		text += "-pretty"
	}
	if o.callback != "" {
		text += "-" + o.callback
	}
	return `"` + text + `"`
}

// conditions are the preconditions of a request (RFC 9110, 13.1).
type conditions struct {
	match, noneMatch *tags // nil: not sent
}

// tags is what a condition names.
type tags struct {
	any    bool     // "*"
	strong []string // with their quotes
	weak   []string // the same, without the W/
}

func parseConditions(h http.Header) (c conditions, err error) {
	if c.match, err = parseTags(h, "If-Match"); err != nil {
		return c, err
	}
	c.noneMatch, err = parseTags(h, "If-None-Match")
	return c, err
}

func parseTags(h http.Header, name string) (*tags, error) {
	values := h.Values(name)
	if len(values) == 0 {
		return nil, nil
	}
	text := strings.Join(values, ",")
	if strings.Trim(text, " \t") == "*" {
		return &tags{any: true}, nil
	}
	t := &tags{}
	for {
		text = strings.TrimLeft(text, ", \t")
		if text == "" {
			return t, nil
		}
		rest, weak := strings.CutPrefix(text, "W/")
		end := strings.IndexByte(strings.TrimPrefix(rest, `"`), '"') + 2
		if !strings.HasPrefix(rest, `"`) || end < 2 || strings.IndexFunc(rest[1:end-1], notInTags) >= 0 {
			return nil, fault.New(fault.Invalid, fault.Header, name, "The header must be * or entity tags, each in double quotes, between commas.")
		}
		if weak {
			t.weak = append(t.weak, rest[:end])
		} else {
			t.strong = append(t.strong, rest[:end])
		}
		if text = strings.TrimLeft(rest[end:], " \t"); text != "" && text[0] != ',' {
			return nil, fault.New(fault.Invalid, fault.Header, name, "There must be a comma between entity tags.")
		}
	}
}

func notInTags(r rune) bool { return r <= ' ' || r == 0x7f }

// positioned tells whether a tag is of an asset at a position.
func positioned(tag string, position int64) bool {
	return strings.HasPrefix(tag, `"`+strconv.FormatInt(position, 10)+"-")
}

// guard returns what a write is let through by, nil when anything will do.
func (c conditions) guard() registry.Guard {
	if c.match == nil && c.noneMatch == nil {
		return nil
	}
	return func(position int64) bool {
		is := func(tag string) bool { return positioned(tag, position) }
		if c.match != nil && !c.match.any && !slices.ContainsFunc(c.match.strong, is) {
			return false
		}
		return c.noneMatch == nil || !c.noneMatch.any && !slices.ContainsFunc(c.noneMatch.strong, is) && !slices.ContainsFunc(c.noneMatch.weak, is)
	}
}

// unchanged gives a reading answer its tag, and tells whether the reader has it
// already, which is then all that is answered.
func unchanged(c *gin.Context, tag string) (bool, error) {
	conditions, err := parseConditions(c.Request.Header)
	if err != nil {
		return false, err
	}
	if m := conditions.match; m != nil && !m.any && !slices.Contains(m.strong, tag) {
		return false, fault.New(fault.Precondition, fault.URL, "precondition", "Precondition Failed")
	}
	c.Header("ETag", tag)
	n := conditions.noneMatch
	if n == nil || !n.any && !slices.Contains(n.strong, tag) && !slices.Contains(n.weak, tag) {
		return false, nil
	}
	c.Status(http.StatusNotModified)
	c.Writer.WriteHeaderNow()
	return true, nil
}
