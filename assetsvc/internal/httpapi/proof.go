package httpapi

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strconv"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/memory"
	"asset-registry/shared/translog"
)

// Requests for proofs take turns. The number of turns is limited, because a proof of a past revision processes a part
// of the asset's history. A few such requests could otherwise keep all processors busy.
const (
	turnsEach  = 16            // turns for each processor; a small proof takes one turn
	turnsLarge = 2 * turnsEach // turns of a proof that reserves memory for more than a medium asset
)

func newProofTurns() *memory.Semaphore {
	return memory.NewSemaphore(int64(turnsEach * runtime.GOMAXPROCS(0)))
}

// proof answers with the proof that the public log has a revision of an asset (docs/contract.md, "Proofs"). It
// waits for a turn. It reserves memory even for an asset that is small now, because earlier changes of the asset
// may be large.
func (a *API) proof(c *gin.Context, v version) error {
	params, o, err := parseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	revision, err := parseRevision(params.Get("revision"))
	if err != nil {
		return err
	}
	prove := func(size int, turns int64) error {
		end, err := a.proofs.Acquire(c.Request.Context(), turns)
		if errors.Is(err, memory.ErrFull) {
			return overloaded()
		}
		if err != nil {
			return fmt.Errorf("wait for a turn to prove: %w", err)
		}
		defer end()
		made := func(a *API, c *gin.Context, _ version) error {
			proof, evidence, err := a.registry.Prove(c.Request.Context(), c.Param("id"), revision)
			if err != nil {
				return err
			}
			end() // give the turns back before sending, which may take long
			return a.write(c, http.StatusOK, appendProof(nil, proof, evidence), o)
		}
		if size == registry.AnySize {
			made = inTurn(made)
		}
		return a.within(c, v, size, trees, made)
	}
	if err := prove(medium, 1); !errors.Is(err, registry.ErrLarge) {
		return err
	}
	return prove(registry.AnySize, turnsLarge)
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
