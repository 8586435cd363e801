package registryctl

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"asset-registry.example/client"
	"asset-registry/shared/filelink"
	"asset-registry/shared/translog"
)

// registryReport is the result of comparing a log with its registry.
type registryReport struct {
	Assets  int          `json:"assets"`       // assets that have a leaf
	Matched int64        `json:"matched"`      // leaves whose content the registry still has
	Changed int          `json:"changedSince"` // assets with changes after the checkpoint; the next run compares them
	Erased  []erasedLeaf `json:"erased"`
	Files   *filesReport `json:"files,omitempty"` // nil: files were not compared
}

// erasedLeaf is a leaf whose content the registry has erased.
type erasedLeaf struct {
	Index    int64  `json:"index"`
	Asset    string `json:"asset"`
	Revision int64  `json:"revision"`
}

// comparison compares the leaves of a log with its registry (docs/log.md,
// "Verification", step 7).
type comparison struct {
	registry *client.Client
	policy   translog.Opener
	source   *keepingSource
	files    *fileComparison // nil: files are not compared
	line     *line           // shows how far it is
	last     int64           // position of the last leaf; changes up to it have leaves

	mu      sync.Mutex
	newest  map[assetKey]newestLeaf
	matched int64
	erased  []erasedLeaf
	changed int // assets with changes after the last leaf
}

// assetKey is the id of an asset in binary form.
type assetKey [16]byte

// keyOf converts an id to a key. The result `ok` is false if the id does not have the form of an asset's id.
func keyOf(id string) (key assetKey, ok bool) {
	if len(id) != hex.EncodedLen(len(key)) {
		return key, false
	}
	_, err := hex.Decode(key[:], []byte(id))
	return key, err == nil
}

// String returns the id in its usual form.
func (k assetKey) String() string { return hex.EncodeToString(k[:]) }

// newestLeaf is the newest leaf of an asset, with the facts that the comparison has found about it.
type newestLeaf struct {
	index, position int64
	withdrawn       bool
	proven          bool     // the registry has proven that the leaf has this content
	content         [32]byte // hash of the asset's canonical form
	listed          bool     // the registry lists the asset at this position
}

// errStopped stops the reading of a log after another error has occurred.
var errStopped = errors.New("stopped")

// compareAssets verifies a log and compares it with the registry. If files is true, it also compares the files
// of documents.
func compareAssets(ctx context.Context, p *program, v translog.Verifier, progress progress, files bool) (
	signed translog.Signed, report *registryReport, err error,
) {
	waits := client.Retry{Tries: 30, Total: 3 * time.Minute} // a long run exceeds the rate limits and must wait
	registry, err := p.client(waits, newTransport())
	if err != nil {
		return signed, nil, err
	}
	c := &comparison{
		registry: registry, policy: v.Policy, source: progress.source, line: progress.line,
		newest: map[assetKey]newestLeaf{},
	}
	if files {
		c.files = &fileComparison{registry: registry, known: map[string]filelink.Document{}}
	}
	if signed, err = c.compareLeaves(ctx, v); err != nil {
		return signed, nil, err
	}
	if err := c.compareList(ctx); err != nil {
		return signed, nil, err
	}
	if err := c.compareNewest(ctx); err != nil {
		return signed, nil, err
	}
	return signed, c.report(), nil
}

func (c *comparison) report() *registryReport {
	erased := append([]erasedLeaf{}, c.erased...)
	slices.SortFunc(erased, func(a, b erasedLeaf) int { return cmp.Compare(a.Index, b.Index) })
	report := &registryReport{Assets: len(c.newest), Matched: c.matched, Changed: c.changed, Erased: erased}
	if c.files != nil {
		report.Files = &c.files.report
	}
	return report
}

// compareLeaves verifies the log. As it reads each leaf, it asks the registry for the proof of that leaf.
func (c *comparison) compareLeaves(ctx context.Context, v translog.Verifier) (translog.Signed, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, workers := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	count := v.Leaf
	v.Leaf = func(index int64, leaf translog.Leaf) error {
		if err := count(index, leaf); err != nil {
			return err
		}
		c.note(index, leaf)
		if leaf.Kind != translog.Withdraw {
			group.Go(func() error { return c.compareLeaf(workers, index, leaf) })
		}
		if workers.Err() != nil {
			return errStopped
		}
		return nil
	}
	signed, err := v.Verify(ctx, c.source)
	if err != nil {
		cancel()
	}
	if waited := group.Wait(); err == nil || errors.Is(err, errStopped) {
		err = waited
	}
	return signed, err
}

// note records a leaf as the newest leaf of its asset.
func (c *comparison) note(index int64, leaf translog.Leaf) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, _ := keyOf(leaf.Asset) // always valid: the asset of a leaf is an id
	c.newest[key] = newestLeaf{index: index, position: leaf.Position, withdrawn: leaf.Kind == translog.Withdraw}
	c.last = leaf.Position
}

// compareLeaf compares a leaf with the proof that the registry gives for it.
func (c *comparison) compareLeaf(ctx context.Context, index int64, leaf translog.Leaf) error {
	fail := func(err error) error {
		return fmt.Errorf("leaf %d, revision %d of asset %s: %w", index, leaf.Revision, leaf.Asset, err)
	}
	got, err := c.registry.Proof(ctx, leaf.Asset, leaf.Revision)
	if err != nil {
		return fail(err)
	}
	proof, err := proofOf(got)
	if err != nil {
		return fail(fmt.Errorf("the registry's proof: %w", err))
	}
	proven, evidence, signed, err := proof.VerifyAsset(c.policy)
	switch {
	case err != nil:
		return fail(fmt.Errorf("the registry's proof: %w", err))
	case proof.Index != index || proven != leaf:
		return fail(fmt.Errorf("%w: the registry proves another leaf, %d", translog.ErrTampered, proof.Index))
	case signed.Size == c.source.parsed.Size && signed.Root != c.source.parsed.Root:
		return fail(fmt.Errorf("%w: the registry's proof has another tree of the same size", translog.ErrConsistency))
	}
	return c.keep(index, leaf, evidence)
}

// keep records whether the content of a leaf is erased. If the leaf is the newest one of its asset, keep also
// stores a hash of the content, for the comparison with the current asset.
func (c *comparison) keep(index int64, leaf translog.Leaf, evidence translog.Evidence) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if evidence.Salt == nil {
		c.erased = append(c.erased, erasedLeaf{index, leaf.Asset, leaf.Revision})
		return nil
	}
	c.matched++
	key, _ := keyOf(leaf.Asset)
	n := c.newest[key]
	if n.index != index {
		return nil
	}
	text, err := translog.Canonical(evidence.Asset)
	n.proven, n.content = true, sha256.Sum256(text)
	c.newest[key] = n
	return err
}

// compareList compares the registry's list with the newest leaves. The list is in the order of dateModified, so
// compareList ends at the first change after the last leaf.
func (c *comparison) compareList(ctx context.Context) error {
	before := int64(0)
	for page, err := range c.registry.Pages(ctx, client.Feed{Limit: 1000}) {
		if err != nil {
			return err
		}
		for _, asset := range page.Assets {
			modified, err := asset.DateModified.Time()
			at := modified.UnixMicro()
			if err != nil || at <= before {
				return fmt.Errorf("%w: asset %q is listed with dateModified %q after %s", translog.ErrTampered, asset.ID,
					asset.DateModified, timeOf(before))
			}
			if before = at; at > c.last {
				return nil
			}
			if err := c.compareEntry(asset.ID, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareEntry compares an entry of the list with the newest leaf of its asset. The entry is not newer than the
// last leaf of the log.
func (c *comparison) compareEntry(id string, at int64) error {
	key, ok := keyOf(id)
	n, known := c.newest[key]
	switch {
	case !ok:
		return fmt.Errorf("the list has an asset with the id %q", id)
	case !known:
		return fmt.Errorf("%w: asset %s is listed and has no leaf", translog.ErrTampered, id)
	case n.withdrawn:
		return fmt.Errorf("%w: asset %s is listed, and its newest leaf is a withdraw", translog.ErrTampered, id)
	case at != n.position:
		return fmt.Errorf("%w: asset %s is listed with a change at %s, and its newest leaf is one at %s",
			translog.ErrTampered, id, timeOf(at), timeOf(n.position))
	}
	n.listed = true
	c.newest[key] = n
	return nil
}

// compareNewest compares the newest leaf of each asset with the current asset.
func (c *comparison) compareNewest(ctx context.Context) error {
	group, workers := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	compared := 0
	for key, n := range c.newest {
		if workers.Err() != nil {
			break
		}
		group.Go(func() error {
			changed, err := c.compareNow(workers, key.String(), n)
			c.mu.Lock()
			defer c.mu.Unlock()
			if changed {
				c.changed++
			}
			compared++
			c.line.show(func(time.Duration) string { return fmt.Sprintf("%d of %d assets", compared, len(c.newest)) })
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// compareNow compares the current asset with its newest leaf. The result "changed" reports whether the asset has
// changed after the last leaf of the log.
func (c *comparison) compareNow(ctx context.Context, id string, n newestLeaf) (changed bool, err error) {
	fail := func(reason string) error {
		return fmt.Errorf("%w: asset %s %s its newest leaf, %d", translog.ErrTampered, id, reason, n.index)
	}
	text, err := c.registry.GetJSON(ctx, id)
	if client.IsNotFound(err) {
		return false, fail("is gone from the registry, which contradicts")
	}
	if err != nil {
		return false, err
	}
	var asset struct {
		Mode         client.Mode
		DateModified client.Timestamp
	}
	if err := json.Unmarshal(text, &asset); err != nil {
		return false, fmt.Errorf("asset %s is not an object: %w", id, err)
	}
	at, err := asset.DateModified.Time()
	canonical, err2 := translog.Canonical(text)
	if err := errors.Join(err, err2); err != nil {
		return false, fmt.Errorf("asset %s: %w", id, err)
	}
	switch isTest := asset.Mode == client.TestMode; {
	case at.UnixMicro() > c.last:
		return true, nil
	case n.withdrawn && isTest && at.UnixMicro() >= n.position: // changes in test mode have no leaves
		return false, nil
	case at.UnixMicro() != n.position:
		return false, fail("has another dateModified than")
	case n.withdrawn:
		return false, fail("is not in test mode, unlike after")
	case isTest:
		return false, fail("is in test mode, unlike after")
	case !n.listed:
		return false, fail("is not listed, which contradicts")
	case !n.proven:
		return false, fail("is shown without the salt of")
	case sha256.Sum256(canonical) != n.content:
		return false, fail("has another content than")
	}
	if c.files == nil {
		return false, nil
	}
	return false, c.files.compare(ctx, id, text)
}
