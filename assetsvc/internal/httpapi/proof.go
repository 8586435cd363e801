package httpapi

import (
	"math"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/translog"
)

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
