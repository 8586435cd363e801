package httpapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/translog"
)

// Log is a reader of the public log (publiclog.Reader).
type Log interface {
	Checkpoint(ctx context.Context) ([]byte, error)
	Part(ctx context.Context, tile translog.Tile) ([]byte, error)
}

// Values of Cache-Control for the log. Parts never change (docs/log.md, "Overview").
const (
	cacheParts      = "public, max-age=31536000, immutable"
	cacheCheckpoint = "no-cache"
)

// RouteLog adds the routes of the public log to engine. The log is at /log and at the
// prefix that its origin names (docs/log.md, "Origin and keys").
func (a *API) RouteLog(engine *gin.Engine, signer *identity.Signer, log Log, origin func(context.Context) string) {
	r := engine.Group("/log", httpserver.Identify(signer))
	routeRead(r, "/*path", httpserver.Handle(func(c *gin.Context) error {
		path := strings.TrimPrefix(c.Param("path"), "/")
		_, name, _ := strings.Cut(origin(c.Request.Context()), "/log/")
		return a.readLog(c, log, strings.TrimPrefix(path, name+"/"))
	}))
}

// readLog answers with the checkpoint or a part of the log.
func (a *API) readLog(c *gin.Context, log Log, path string) error {
	contentType, cache := "text/plain; charset=utf-8", cacheCheckpoint
	read := log.Checkpoint
	if path != "checkpoint" {
		contentType, cache = "application/octet-stream", cacheParts
		read = func(context.Context) ([]byte, error) {
			_, end, err := a.turn(c)
			if err != nil {
				return nil, err
			}
			defer end()
			return readPart(c.Request.Context(), log, path)
		}
	}
	body, err := read(c.Request.Context())
	switch {
	case errors.Is(err, publiclog.ErrUnsigned):
		return notInLog("The log has no checkpoint yet; ask again after the first change of a public asset.")
	case errors.Is(err, publiclog.ErrNoPart):
		return notInLog("The log does not have this part. If a partial part is gone, ask for the full one.")
	case errors.Is(err, translog.ErrPath):
		return notInLog("The log has the paths checkpoint, tile/LEVEL/NUMBER and tile/entries/NUMBER only.")
	case fault.KindOf(err) == fault.Unavailable:
		return err
	case err != nil:
		return registry.Unavailable("read the log", err)
	}
	h := c.Writer.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", cache)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if c.Request.Method == http.MethodHead {
		return nil
	}
	return a.send(c, http.StatusOK, body)
}

// readPart returns the part of the log at a path. If the path names no part, readPart returns translog.ErrPath.
func readPart(ctx context.Context, log Log, path string) ([]byte, error) {
	tile, err := translog.ParsePath(path)
	if err != nil {
		return nil, err
	}
	return log.Part(ctx, tile)
}

func notInLog(says string) error { return fault.New(fault.NotFound, fault.URL, "path", "%s", says) }

// proof answers with the proof that the public log has a revision of an asset (docs/contract.md, "Proofs").
func (a *API) proof(c *gin.Context, _ version) error {
	params, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	revision, err := parseRevision(params.Get("revision"))
	if err != nil {
		return err
	}
	proof, evidence, err := a.registry.Prove(c.Request.Context(), c.Param("id"), revision)
	if err != nil {
		return err
	}
	return a.write(c, http.StatusOK, appendProof(nil, proof, evidence), o)
}

// parseRevision returns the number of a revision, or 0 for an empty text.
func parseRevision(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	// ParseUint returns 0 for a text that is no number, and the largest uint64 for a number that is too large.
	n, _ := strconv.ParseUint(text, 10, 64)
	if n == 0 {
		return 0, fault.New(fault.Invalid, fault.URL, "revision", "The revision must be a whole number from 1.")
	}
	return int64(min(n, math.MaxInt64)), nil // no asset has so many revisions
}

// appendProof appends the answer with a proof. It does not change the bytes of the leaf and of the asset,
// because the log has hashes of these bytes.
func appendProof(dst []byte, p translog.Proof, e translog.Evidence) []byte {
	dst = append(dst, `{"data":{"index":`...)
	dst = strconv.AppendInt(dst, p.Index, 10)
	dst = append(append(dst, `,"leaf":`...), e.Leaf...)
	if e.Salt != nil {
		dst = record.AppendString(append(dst, `,"salt":`...), e.Salt.String())
	}
	dst = append(dst, `,"path":[`...)
	for i, hash := range p.Path {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = record.AppendString(dst, hash.String())
	}
	dst = record.AppendString(append(dst, `],"checkpoint":`...), string(p.Checkpoint))
	if e.Asset != nil {
		dst = append(append(dst, `,"asset":`...), e.Asset...)
	}
	return append(dst, `}}`...)
}
