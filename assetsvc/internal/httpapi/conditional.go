package httpapi

import (
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
)

// tag returns the entity tag of an answer (RFC 9110, 8.8.3; docs/contract.md, "Conditional requests"). It is a
// strong tag, such as "1763640000123456-2.5-pretty". It has the position of the asset, the version, whether
// fields are hidden, and the options that change the bytes of the answer. A part has the tag of its asset.
func tag(position int64, v version, o options) string {
	text := strconv.FormatInt(position, 10) + "-" + string(v.name)
	if v.full != nil {
		text += "-public"
	}
	if o.pretty {
		text += "-pretty"
	}
	if o.callback != "" {
		text += "-" + o.callback
	}
	return `"` + text + `"`
}

// hasPosition reports whether a tag is for an asset at a position, in any version and with any options.
func hasPosition(tag string, position int64) bool {
	return strings.HasPrefix(tag, `"`+strconv.FormatInt(position, 10)+"-")
}

// conditions are the preconditions of a request (RFC 9110, 13.1).
type conditions struct {
	match, noneMatch *tags // nil: the header is absent
}

// tags is the value of If-Match or If-None-Match.
type tags struct {
	any    bool     // "*"
	strong []string // strong tags, with quotes
	weak   []string // weak tags, with quotes, but without W/
}

func parseConditions(h http.Header) (c conditions, err error) {
	if c.match, err = parseTags(h, "If-Match"); err != nil {
		return c, err
	}
	c.noneMatch, err = parseTags(h, "If-None-Match")
	return c, err
}

// parseTags returns the tags of a header, or nil if the header is absent.
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
		end := tagEnd(rest)
		if end < 0 {
			const says = "The header must be * or entity tags, each in double quotes, between commas."
			return nil, fault.New(fault.Invalid, fault.Header, name, says)
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

// tagEnd returns the length of the quoted tag at the start of text, or -1 if there is no tag.
func tagEnd(text string) int {
	inner, ok := strings.CutPrefix(text, `"`)
	length := strings.IndexByte(inner, '"')
	if !ok || length < 0 || strings.ContainsFunc(inner[:length], notInTags) {
		return -1
	}
	return length + len(`""`)
}

func notInTags(r rune) bool { return r <= ' ' || r == 0x7f }

// guard returns the condition for a write. A write changes the asset itself, so only the position in a tag counts,
// not the version in which the client read the asset. The registry itself makes no weak tags, but a proxy that
// compresses answers makes tags weak. So a weak tag stands for the same state as the strong tag.
func (c conditions) guard() registry.Guard {
	return func(position int64) bool {
		is := func(tag string) bool { return hasPosition(tag, position) }
		if m := c.match; m != nil && !m.any && !slices.ContainsFunc(m.strong, is) && !slices.ContainsFunc(m.weak, is) {
			return false
		}
		n := c.noneMatch
		return n == nil || !n.any && !slices.ContainsFunc(n.strong, is) && !slices.ContainsFunc(n.weak, is)
	}
}

// withoutBody answers a read of a large asset that needs no body of it: a HEAD, and one whose conditions decide. It
// takes the error of the read. If the error is another one, or the read needs the body, withoutBody returns the error.
// The answer to a HEAD then has no Content-Length, because only the text of the answer has its length.
func (a *API) withoutBody(c *gin.Context, v version, o options, err error) error {
	h, isHead := c.Request.Header, c.Request.Method == http.MethodHead
	if !errors.Is(err, registry.ErrLarge) || !isHead && len(h["If-Match"])+len(h["If-None-Match"]) == 0 {
		return err
	}
	stored, fault := a.registry.Head(c.Request.Context(), c.Param("id"))
	if fault != nil {
		return fault
	}
	if done, fault := unchanged(c, tag(stored.Position, v, o)); done || fault != nil {
		return fault
	}
	if isHead {
		o.answerHead(c)
		return nil
	}
	return err
}

// unchanged checks the conditions of a read and sets its ETag. If the client
// already has the answer, unchanged sends 304 and returns true.
func unchanged(c *gin.Context, tag string) (bool, error) {
	conditions, err := parseConditions(c.Request.Header)
	if err != nil {
		return false, err
	}
	if m := conditions.match; m != nil && !m.any && !slices.Contains(m.strong, tag) {
		return false, registry.PreconditionFailed()
	}
	c.Header("ETag", tag)
	n := conditions.noneMatch
	if n == nil || !n.any && !slices.Contains(n.strong, tag) && !slices.Contains(n.weak, tag) {
		return false, nil
	}
	c.Status(http.StatusNotModified)
	return true, nil
}

// idempotencyHeader carries a key that the client chooses for one creation
// (draft-ietf-httpapi-idempotency-key-header; docs/contract.md, "Idempotency").
const idempotencyHeader = "Idempotency-Key"

const (
	maxIdempotencyKey = 255         // maximum number of characters of a key
	maxSeeds          = keyring.Max // maximum number of seeds of a request: one for each of the registry's secrets
)

// seedsOf returns the seeds of a creation with an idempotency key, and no seeds for a creation without one. The
// seed that was made with the current secret comes first.
func seedsOf(c *gin.Context) ([]registry.Seed, error) {
	keys := c.Request.Header.Values(idempotencyHeader)
	if len(keys) == 0 {
		return nil, nil
	}
	if len(keys) > 1 || !isIdempotencyKey(keys[0]) {
		const says = "The key must be 1 to %d visible ASCII characters."
		return nil, fault.New(fault.Invalid, fault.Header, idempotencyHeader, says, maxIdempotencyKey)
	}
	var seeds []registry.Seed
	for text := range strings.SplitSeq(c.GetHeader(httpserver.SeedHeader), ",") {
		seed, err := hex.DecodeString(text)
		if err != nil || len(seed) == 0 || len(seeds) == maxSeeds {
			// The error does not quote the header: seeds are secret.
			return nil, errors.New("the gateway sent no valid seed for the idempotency key")
		}
		seeds = append(seeds, seed)
	}
	return seeds, nil
}

func isIdempotencyKey(key string) bool { return isVisible(key, maxIdempotencyKey) }

// isVisible reports whether a text consists of visible ASCII characters only, and has at least one of them. The
// argument `most` is the largest number of characters.
func isVisible(text string, most int) bool {
	invisible := func(r rune) bool { return r <= ' ' || r > '~' }
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, invisible)
}

const maxReference = 200 // maximum number of characters of a reference

// referenceOf returns the caller's own name for the asset that the request creates, or "" if the caller gives no
// name.
func referenceOf(c *gin.Context) (string, error) {
	names := c.Request.Header.Values(registry.ReferenceHeader)
	if len(names) == 0 {
		return "", nil
	}
	if len(names) > 1 || !isVisible(names[0], maxReference) {
		const says = "The reference must be 1 to %d visible ASCII characters."
		return "", fault.New(fault.Invalid, fault.Header, registry.ReferenceHeader, says, maxReference)
	}
	return names[0], nil
}
