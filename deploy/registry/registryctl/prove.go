package registryctl

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"asset-registry.example/client"
	"asset-registry/shared/errs"
	"asset-registry/shared/translog"
)

type proveAsset struct {
	assetID  `embed:""`
	Revision int64 `least:"0" help:"Number of the change, as revisions lists it. By default the newest public one."`
}

// Help describes how the proof is used.
func (proveAsset) Help() string {
	return `Write the proof into a file: registryctl prove ID > ID.tlog-proof. It holds the asset as it was public
after the change, and all that shows that the public log has this change. "registryctl verify FILE" checks it
without a network.`
}

// Run prints the proof for a change of an asset, in the form of a proof file.
func (c proveAsset) Run(ctx context.Context, p *program, registry *client.Client) error {
	got, err := registry.Proof(ctx, c.ID, c.Revision)
	if err != nil {
		return err
	}
	leaf, err := translog.ParseLeaf(got.Leaf)
	if err != nil {
		return fmt.Errorf("the registry's proof: %w", err)
	}
	if leaf.Asset != c.ID || c.Revision != 0 && leaf.Revision != c.Revision {
		return fmt.Errorf("the registry's proof is of another change: revision %d of %s", leaf.Revision, leaf.Asset)
	}
	proof, err := proofOf(got)
	if err != nil {
		return fmt.Errorf("the registry's proof: %w", err)
	}
	_, err = p.out.Write(proof.Encode())
	return err
}

// proofOf converts the registry's answer to a proof as a proof file contains it.
func proofOf(got client.Proof) (translog.Proof, error) {
	evidence := translog.Evidence{Leaf: jsontext.Value(got.Leaf), Asset: jsontext.Value(got.Asset)}
	if got.Salt != "" {
		evidence.Salt = new(translog.Salt)
		if err := evidence.Salt.UnmarshalText([]byte(got.Salt)); err != nil {
			return translog.Proof{}, err
		}
	}
	extra, err := evidence.Encode()
	if err != nil {
		return translog.Proof{}, err
	}
	proof := translog.Proof{Extra: extra, Index: got.Index, Checkpoint: []byte(got.Checkpoint)}
	for _, text := range got.Path {
		hash, err := tlog.ParseHash(text)
		if err != nil {
			return translog.Proof{}, err
		}
		proof.Path = append(proof.Path, hash)
	}
	return proof, nil
}

// readProof reads a proof file, or the registry's answer in JSON, indented or not, as a page of the site saves it. Its
// errors have the cause translog.ErrProof.
func readProof(text []byte) (translog.Proof, error) {
	answer := bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff"))) // editors add the mark
	if !bytes.HasPrefix(answer, []byte("{")) {
		return translog.ParseProof(text)
	}
	var got struct {
		Data client.Proof `json:"data"`
	}
	err := json.Unmarshal(answer, &got)
	leaf := jsontext.Value(got.Data.Leaf)
	if err == nil {
		err = leaf.Compact()
	}
	if err != nil {
		return translog.Proof{}, fmt.Errorf("%w: %w", translog.ErrProof, err)
	}
	got.Data.Leaf = []byte(leaf)
	proof, err := proofOf(got.Data)
	return proof, errs.In(err, "%w", translog.ErrProof)
}

// The values of provenFacts.Content.
const (
	matches   = "matches the leaf"
	erased    = "erased"
	withdrawn = "none: the asset was withdrawn"
)

// provenFacts are the facts that a proof proves.
type provenFacts struct {
	Origin   string   `json:"origin"`
	Size     int64    `json:"size"`
	Index    int64    `json:"index"`
	Kind     string   `json:"kind"`
	Asset    string   `json:"asset"`
	Revision int64    `json:"revision"`
	Time     string   `json:"time"`
	Content  string   `json:"content"`
	Cosigned []string `json:"cosigned"`
}

// verifyProof verifies a proof file, and prints the facts that it proves.
func (p *program) verifyProof(file string, policy *translog.Policy) error {
	text, err := readUpTo(file, translog.MaxProof)
	if err != nil {
		return fmt.Errorf("read the proof: %w", err)
	}
	proof, err := readProof(text)
	if err != nil {
		return verdict{fmt.Errorf("%s is not valid: %w", file, err)}
	}
	leaf, evidence, signed, err := proof.VerifyAsset(policy)
	if err != nil {
		return verdict{fmt.Errorf("%s is not valid: %w", file, err)}
	}
	content := matches
	if evidence.Salt == nil {
		content = erased
		if leaf.Kind == translog.Withdraw {
			content = withdrawn
		}
	}
	err = p.report(provenFacts{
		Origin: signed.Origin, Size: signed.Size, Index: proof.Index, Kind: string(leaf.Kind), Asset: leaf.Asset,
		Revision: leaf.Revision, Time: timeOf(leaf.Position), Content: content, Cosigned: cosigners(signed),
	})
	if err == nil && content == erased {
		const text = "%s proves that there was a change, and no content: it has neither salt nor asset"
		err = verdict{fmt.Errorf(text, file)}
	}
	return err
}

// report prints an object as JSON, or as text with one field in each line.
func (p *program) report(object any) error {
	if p.output == asJSON {
		return p.printJSON(object, "  ")
	}
	return p.show(object)
}
