//go:build !windows

package registryctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"asset-registry.example/client"
	"asset-registry/shared/replica"
	"asset-registry/shared/translog"
)

// mostSteps is the maximum number of an asset's changes that are checked to find the state that the copy has.
const mostSteps = 64

// copyReport is the result of verifying a copy.
type copyReport struct {
	Assets   int   `json:"assets"` // assets of the copy
	Matched  int64 `json:"matched"`
	Test     int64 `json:"test"`     // assets in test mode; these have no proofs
	Changed  int64 `json:"changed"`  // assets with too many later changes to reach the leaf of the copy's state
	Erased   int64 `json:"erased"`   // assets whose content the registry has erased
	Differs  int64 `json:"differs"`  // assets that differ; the standard error names the first mostFaults
	Unproven int64 `json:"unproven"` // assets that are not in the sample, if a sample was taken
}

// copyVerifier checks the assets of a copy with the public log.
type copyVerifier struct {
	registry *client.Client
	policy   translog.Opener
	copied   *replica.Replica
	sample   int // number of assets in the sample; 0: all assets

	mu     sync.Mutex
	report copyReport
}

// errDiffers is returned for an asset whose state in the copy is not the state in the log.
var errDiffers = errors.New("differs from the public log")

// run checks the copy and prints the report. It fails if an asset differs.
func (v *copyVerifier) run(ctx context.Context, p *program) error {
	assets, err := v.copied.Check()
	if err != nil {
		return err
	}
	v.report.Assets = assets
	group, workers := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	checked := 0
	err = v.each(func(asset replica.Entry) error {
		checked++
		asset.JSON = bytes.Clone(asset.JSON)
		group.Go(func() error { return v.one(workers, p, asset) })
		return workers.Err()
	})
	if waited := group.Wait(); waited != nil {
		err = waited
	}
	if err != nil {
		return err
	}
	v.report.Unproven = int64(assets - checked)
	if err := p.report(v.report); err != nil {
		return err
	}
	if v.report.Differs > 0 {
		return fmt.Errorf("%d of %d assets differ from the public log", v.report.Differs, checked)
	}
	return nil
}

// The method `each` calls the function `check` for each asset of the sample. Without a sample, it calls check for each
// asset of the copy.
func (v *copyVerifier) each(check func(replica.Entry) error) error {
	if v.sample == 0 {
		return v.copied.Walk(check)
	}
	ids, err := v.copied.Sample(v.sample)
	if err != nil {
		return err
	}
	for _, id := range ids {
		asset, _, err := v.copied.Get(id)
		if err == nil {
			err = check(asset)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// The method `one` handles a single asset: it checks the asset, counts the result, and names the asset if it
// differs. It returns an error only if the asset could not be checked.
func (v *copyVerifier) one(ctx context.Context, p *program, asset replica.Entry) error {
	found, err := v.check(ctx, asset)
	differs := errors.Is(err, errDiffers)
	if err != nil && !differs {
		return fmt.Errorf("asset %s: %w", asset.ID, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if differs {
		v.report.Differs++
		if enough, failed := p.isEnough(); enough {
			return failed
		}
		return p.say("asset %s: %v", asset.ID, err)
	}
	*found++
	return nil
}

// check looks for the leaf that has the copy's state of an asset, from the newest leaf backwards. It returns the field
// of the report that counts the asset. If no leaf has that state, it returns errDiffers.
func (v *copyVerifier) check(ctx context.Context, asset replica.Entry) (*int64, error) {
	var shown struct {
		Mode client.Mode `json:"mode"`
	}
	if err := json.Unmarshal(asset.JSON, &shown); err != nil {
		return nil, fmt.Errorf("%w: %w", errDiffers, err)
	}
	test := shown.Mode == client.TestMode
	for revision, steps := int64(0), 0; steps < mostSteps; steps++ {
		got, err := v.registry.Proof(ctx, asset.ID, revision)
		switch {
		case hasNoLeaf(err) && revision > 1:
			revision-- // changes in test mode have no leaf
			continue
		case hasNoLeaf(err) && test:
			return &v.report.Test, nil
		case hasNoLeaf(err):
			return nil, fmt.Errorf("%w: no leaf has its dateModified", errDiffers)
		case err != nil:
			return nil, err
		}
		if _, err := v.policy.Open([]byte(got.Checkpoint)); err != nil {
			return nil, err // the registry or the policy is wrong, not the copy
		}
		leaf, evidence, err := v.open(got, asset.ID)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errDiffers, err)
		}
		if steps == 0 && leaf.Kind != translog.Withdraw && evidence.Salt == nil { // the newest change is never erased
			return nil, fmt.Errorf("%w: the registry gives no salt of its newest change", errDiffers)
		}
		if leaf.Position <= asset.Position || leaf.Revision == 1 {
			return v.compareCopied(asset, test, leaf, evidence)
		}
		revision = leaf.Revision - 1
	}
	return &v.report.Changed, nil
}

// hasNoLeaf reports whether err is the answer about an asset or a revision without a leaf. A registry without a
// public log returns a different error.
func hasNoLeaf(err error) bool {
	refusal, ok := errors.AsType[*client.Error](err)
	if !ok || !client.IsNotFound(err) {
		return false
	}
	_, noLog := refusal.Detail("not_found")
	return !noLog
}

// compareCopied compares an asset of the copy with a leaf: the newest leaf that is not later than the asset.
func (v *copyVerifier) compareCopied(
	asset replica.Entry, test bool, leaf translog.Leaf, evidence translog.Evidence,
) (*int64, error) {
	withdrawn := leaf.Kind == translog.Withdraw
	switch {
	case test && withdrawn && leaf.Position <= asset.Position:
		return &v.report.Test, nil
	case test:
		return nil, fmt.Errorf("%w: its leaf is not one of test mode", errDiffers)
	case withdrawn:
		return nil, fmt.Errorf("%w: its leaf is a withdraw", errDiffers)
	case leaf.Position != asset.Position:
		return nil, fmt.Errorf("%w: no leaf has its dateModified", errDiffers)
	case evidence.Salt == nil:
		return &v.report.Erased, nil
	}
	if err := leaf.Match(asset.JSON, *evidence.Salt); err != nil {
		return nil, fmt.Errorf("%w: %w", errDiffers, err)
	}
	return &v.report.Matched, nil
}

// open verifies a proof of an asset.
func (v *copyVerifier) open(got client.Proof, id string) (translog.Leaf, translog.Evidence, error) {
	proof, err := proofOf(got)
	if err != nil {
		return translog.Leaf{}, translog.Evidence{}, err
	}
	leaf, evidence, _, err := proof.VerifyAsset(v.policy)
	if err == nil && leaf.Asset != id {
		err = fmt.Errorf("%w: the registry proves asset %s", translog.ErrTampered, leaf.Asset)
	}
	return leaf, evidence, err
}
