package translog

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/errs"
)

// maxHashes is the maximum number of hashes that a proof may have.
const maxHashes = 63

// Proof proves without a network that a log holds an entry (tlog-proof).
type Proof struct {
	Extra      []byte // not authenticated; in proofs of the registry it is an Evidence
	Index      int64  // index of the entry in the log
	Path       []tlog.Hash
	Checkpoint []byte // the signed checkpoint
}

// proofHeader is the first line of a proof file.
const proofHeader = "c2sp.org/tlog-proof@v1"

// The causes of errors about proofs.
var (
	ErrProof    = errors.New("malformed proof")
	ErrIncluded = errors.New("the proof does not lead to the checkpoint")
)

// Encode returns the proof as a file.
func (p Proof) Encode() []byte {
	b := []byte(proofHeader + "\n")
	if len(p.Extra) > 0 {
		b = append(b, "extra "...)
		b = base64.StdEncoding.AppendEncode(b, p.Extra)
		b = append(b, '\n')
	}
	b = fmt.Appendf(b, "index %d\n", p.Index)
	for _, hash := range p.Path {
		b = append(b, hash.String()...)
		b = append(b, '\n')
	}
	b = append(b, '\n')
	return append(b, p.Checkpoint...)
}

// ParseProof reads a proof file. It verifies nothing. Its errors have the cause
// ErrProof.
func ParseProof(file []byte) (Proof, error) {
	head, checkpoint, ok := bytes.Cut(file, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	if !ok || len(file) > MaxProof || lines[0] != proofHeader {
		return Proof{}, fmt.Errorf("%w: not a tlog-proof of version 1", ErrProof)
	}
	p := Proof{Checkpoint: checkpoint}
	lines = lines[1:]
	if len(lines) > 0 && strings.HasPrefix(lines[0], "extra ") {
		var err error
		if p.Extra, err = decode64(lines[0][len("extra "):]); err != nil {
			return Proof{}, fmt.Errorf("%w: the extra line", ErrProof)
		}
		lines = lines[1:]
	}
	if len(lines) == 0 || !strings.HasPrefix(lines[0], "index ") || len(lines) > 1+maxHashes {
		return Proof{}, fmt.Errorf("%w: the index line or the number of hashes", ErrProof)
	}
	var err error
	if p.Index, err = parseSize(lines[0][len("index "):]); err != nil {
		return Proof{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	for _, line := range lines[1:] {
		hash, err := parseHash(line)
		if err != nil {
			return Proof{}, fmt.Errorf("%w: %w", ErrProof, err)
		}
		p.Path = append(p.Path, hash)
	}
	return p, nil
}

// Opener verifies signed checkpoints as Policy.Open does.
type Opener interface {
	Open(checkpoint []byte) (Signed, error)
}

// Verify verifies that the policy accepts the checkpoint, and that the checkpoint's tree holds the entry at the
// index. Its errors have the causes of Policy.Open, or ErrIncluded.
func (p Proof) Verify(policy Opener, entry []byte) (Signed, error) {
	signed, err := policy.Open(p.Checkpoint)
	if err != nil {
		return Signed{}, err
	}
	if err := CheckInclusion(signed.Checkpoint, p.Index, tlog.RecordHash(entry), p.Path); err != nil {
		return Signed{}, err
	}
	return signed, nil
}

// Evidence is the extra data of the registry's proofs, in JSON. It has the leaf, the asset to which the leaf commits,
// and the salt of this commitment. After an erasure, and for a withdrawal, Salt and Asset are absent.
type Evidence struct {
	Leaf  jsontext.Value `json:"leaf"`
	Salt  *Salt          `json:"salt,omitzero"`
	Asset jsontext.Value `json:"asset,omitzero"`
}

// Encode returns the evidence as the extra data of a proof.
func (e Evidence) Encode() ([]byte, error) { return json.Marshal(e) }

// VerifyAsset verifies a proof of the registry. It makes the checks of Verify. If Evidence has an asset, it also
// checks that the leaf commits to this asset. It returns the errors of Verify and of Leaf.Match. For malformed
// evidence, the error has the cause ErrProof or ErrLeaf.
func (p Proof) VerifyAsset(policy Opener) (Leaf, Evidence, Signed, error) {
	var e Evidence
	if err := json.Unmarshal(p.Extra, &e, json.RejectUnknownMembers(true)); err != nil {
		return Leaf{}, e, Signed{}, fmt.Errorf("%w: the extra data: %w", ErrProof, err)
	}
	if (e.Salt == nil) != (e.Asset == nil) {
		return Leaf{}, e, Signed{}, fmt.Errorf("%w: salt and asset come together", ErrProof)
	}
	leaf, err := ParseLeaf(e.Leaf)
	if err != nil {
		return Leaf{}, e, Signed{}, err
	}
	signed, err := p.Verify(policy, e.Leaf)
	if err != nil {
		return Leaf{}, e, Signed{}, err
	}
	if e.Salt != nil {
		err = leaf.Match(e.Asset, *e.Salt)
	}
	return leaf, e, signed, err
}

// CheckInclusion returns nil if the path leads from the hash of the entry at the
// index to the checkpoint's root, and otherwise an error with the cause
// ErrIncluded.
func CheckInclusion(c Checkpoint, index int64, entry tlog.Hash, path []tlog.Hash) error {
	if c.Size > MaxSize || len(path) > maxHashes {
		return ErrIncluded
	}
	return errs.In(tlog.CheckRecord(path, c.Size, c.Root, index, entry), "%w", ErrIncluded)
}

// ErrConsistency is the cause of every error about a checkpoint that does not
// continue an older checkpoint.
var ErrConsistency = errors.New("the log is not append-only")

// CheckConsistency returns nil if the proof shows that the newer checkpoint's tree begins with the whole tree
// of the older checkpoint. Every tree begins with the empty tree. Its errors have the cause ErrConsistency.
func CheckConsistency(older, newer Checkpoint, proof []tlog.Hash) error {
	switch {
	case older.Origin != newer.Origin:
		return fmt.Errorf("%w: origin %.80q, before %.80q", ErrConsistency, newer.Origin, older.Origin)
	case older.Size > newer.Size || newer.Size > MaxSize || len(proof) > maxHashes:
		return fmt.Errorf("%w: size %d, before %d", ErrConsistency, newer.Size, older.Size)
	case older.Size == 0:
		if len(proof) > 0 {
			return fmt.Errorf("%w: a proof for the empty log", ErrConsistency)
		}
		return nil
	}
	return errs.In(tlog.CheckTree(proof, newer.Size, newer.Root, older.Size, older.Root), "%w", ErrConsistency)
}

// PartReader reads the parts of a log. It reads at most MaxBundle bytes of a part. For a part that it does not
// have, it returns an error with the cause fs.ErrNotExist. If a partial part is missing, the caller then requests the
// full part.
type PartReader interface {
	ReadPart(ctx context.Context, tile Tile) ([]byte, error)
}

// Include returns the path of a proof that the tree of the checkpoint holds the entry at the index. It verifies
// the tiles that it reads: if they do not fit the checkpoint, the error has the cause ErrPart.
func Include(ctx context.Context, c Checkpoint, index int64, parts PartReader) ([]tlog.Hash, error) {
	if index < 0 || index >= c.Size || c.Size > MaxSize {
		return nil, fmt.Errorf("no leaf %d in a log of %d", index, c.Size)
	}
	read := &tiles{ctx: ctx, parts: parts}
	path, err := tlog.ProveRecord(c.Size, index, tlog.TileHashReader(c.Tree(), read))
	return path, read.cause(err)
}

// Consistent returns a proof that the tree of the checkpoint begins with an older tree. The parameter `older` is the
// number of leaves of the older tree. Consistent verifies the tiles that it reads, as Include does. If older is 0,
// the proof is empty.
func Consistent(ctx context.Context, older int64, c Checkpoint, parts PartReader) ([]tlog.Hash, error) {
	if older < 0 || older > c.Size || c.Size > MaxSize {
		return nil, fmt.Errorf("no tree of %d leaves in a log of %d", older, c.Size)
	}
	if older == 0 {
		return nil, nil
	}
	read := &tiles{ctx: ctx, parts: parts}
	path, err := tlog.ProveTree(c.Size, older, tlog.TileHashReader(c.Tree(), read))
	return path, read.cause(err)
}

// tiles reads tiles for package tlog.
type tiles struct {
	ctx    context.Context
	parts  PartReader
	failed bool // a tile could not be read
}

// cause returns the error of a proof that could not be made. If all tiles could be read, they do not fit the
// checkpoint, so the error gets the cause ErrPart.
func (t *tiles) cause(err error) error {
	if err == nil || t.failed {
		return err
	}
	return fmt.Errorf("%w: %w", ErrPart, err)
}

func (t *tiles) Height() int                     { return TileHeight }
func (t *tiles) SaveTiles([]tlog.Tile, [][]byte) {}
func (t *tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range wanted {
		data, err := readPart(t.ctx, t.parts, Tile{tile.L, tile.N, tile.W})
		if err != nil {
			t.failed = true
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}
