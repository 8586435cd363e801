package registryctl

import (
	"context"
)

type recoverAsset struct {
	assetID `embed:""`
	Reason  string `required:"" help:"Why the asset gets new tokens. Only the audit log keeps it."`
	Access  string `required:"" placeholder:"FILE" out:"" help:"New file for the tokens, which are not printed."`
}

// Help describes what a recovery does.
func (recoverAsset) Help() string {
	return `For an owner who has lost the tokens of an asset. The asset gets a new owner token and a new transfer token;
the old ones end at once. The owner stays. It needs a key of role administrator. FILE has the new tokens: send it
to the owner, in secret. After an error, run the command again with another file: only the tokens of the last
recovery are good.`
}

// Run gives the asset new tokens. It creates the file before it sends the request, because the registry gives
// the tokens only once. After an error it keeps the file only if the file has tokens.
func (a recoverAsset) Run(ctx context.Context, p *program) error {
	c, err := p.public(true)
	if err != nil {
		return err
	}
	file, err := newAccessFile(a.Access)
	if err != nil {
		return err
	}
	recovered, err := c.Recover(ctx, a.ID, a.Reason)
	if err != nil {
		return file.discard(err)
	}
	got := answer{Data: &recovered.Asset, Access: &recovered.Access}
	if err := file.write(got); err != nil {
		return p.printTokens(got, err)
	}
	return p.printAssets(got.without(a.Access), recovered.Asset)
}
