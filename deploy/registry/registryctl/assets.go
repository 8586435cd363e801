package registryctl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"asset-registry.example/client"
	"asset-registry/deploy/registry/bulk"
)

type assetCommands struct {
	List      listAssets    `cmd:"" help:"List one page of the feed of changes."`
	Get       getAsset      `cmd:"" help:"Show an asset with all its fields."`
	Create    createAsset   `cmd:"" help:"Create an asset, a draft. Its tokens are shown this once."`
	Publish   publishAsset  `cmd:"" help:"Publish a draft: move it to pending, which puts it into the feed."`
	Patch     patchAsset    `cmd:"" help:"Change an asset."`
	Transfer  transferAsset `cmd:"" help:"Hand an asset over: print what the new owner needs."`
	Accept    acceptAsset   `cmd:"" help:"Take over an asset that its owner hands over."`
	Recover   recoverAsset  `cmd:"" help:"Give an asset new tokens, as an administrator."`
	Import    importAssets  `cmd:"" help:"Create and publish the assets of a file, with their documents."`
	Revisions listRevisions `cmd:"" help:"List the changes of an asset, the newest first."`
	Follow    followAssets  `cmd:"" help:"Print each change of the feed as a line, and wait for more."`
}

// assetID is the argument of commands about one asset.
type assetID struct {
	ID string `arg:"" help:"Id of the asset."`
}

type getAsset struct {
	assetID `embed:""`
}

// Run shows an asset. The last line that it prints is the tag, for --if-match.
func (g getAsset) Run(ctx context.Context, p *program, c *client.Client) error {
	asset, err := c.Get(ctx, g.ID)
	if err != nil {
		return err
	}
	if p.output == asJSON {
		return p.printJSON(answer{Data: &asset}, "  ")
	}
	if err := p.show(asset); err != nil {
		return err
	}
	return p.note("tag: %s", plain(string(asset.Tag)))
}

type listAssets struct {
	Limit      int    `default:"100" least:"1" help:"Largest number of assets."`
	Offset     string `help:"Start of the page, as printed after the previous page."`
	Mode       string `complete:"test,_all_" help:"${mode}"`
	Descending bool   `help:"List the newest change first."`
	Own        bool   `help:"List all own assets, with references and pages."`
}

// listed has the fields of an asset that tables and lines show.
var listed = []string{"status", "title", "owner", "assetID"}

// own prints all assets of the key's broker. References stand as the office writes them.
func (l listAssets) own(ctx context.Context, p *program) error {
	c, err := p.public(true)
	if err != nil {
		return err
	}
	type ownAsset struct {
		ID        string        `json:"id"`
		Number    string        `json:"assetID"`
		Status    client.Status `json:"status"`
		Title     string        `json:"title"`
		Reference string        `json:"reference,omitempty"`
		Page      string        `json:"page,omitempty"`
	}
	own := client.Own{
		Limit: 1000, Mode: client.Mode(l.Mode), Descending: l.Descending, Fields: append([]string{"reference"}, listed...),
	}
	all := []ownAsset{}
	var rows []row
	for page, err := range c.OwnPages(ctx, own) {
		if err != nil {
			return err
		}
		for _, a := range page.Assets {
			address := ""
			if a.Asset.Status != client.Draft {
				address = p.page(a.Asset.ID)
			}
			one := ownAsset{a.Asset.ID, a.Asset.AssetID, a.Asset.Status, a.Asset.Title, bulk.ReadReference(a.Reference), address}
			all = append(all, one)
			rows = append(rows, row{one.Reference, one.Number, string(one.Status), one.Title, one.Page, one.ID})
		}
	}
	return p.print(map[string]any{"data": all}, row{"REFERENCE", "NUMBER", "STATUS", "TITLE", "PAGE", "ID"}, rows...)
}

// Run lists one page of the feed, and prints the offset of the next page.
func (l listAssets) Run(ctx context.Context, p *program, c *client.Client) error {
	if l.Own {
		return l.own(ctx, p)
	}
	page, err := c.Page(ctx, client.Feed{
		Position: client.Position{Offset: client.Timestamp(l.Offset)}, Limit: l.Limit, Mode: client.Mode(l.Mode),
		Descending: l.Descending, Fields: listed,
	})
	if err != nil {
		return err
	}
	all := struct {
		Data []client.Asset  `json:"data"`
		Next client.Position `json:"next_page"`
	}{append([]client.Asset{}, page.Assets...), page.Next}
	if err := p.printAssets(all, page.Assets...); err != nil {
		return err
	}
	return p.note("\nThe next page: --offset '%s'", plain(string(page.Next.Offset)))
}

type createAsset struct {
	File string `short:"f" required:"" in:"" help:"JSON of an asset, {\"data\": ...} or its content. - is standard input."`

	Access string `placeholder:"FILE" out:"" help:"New file for the tokens; they are not printed. Name it again to go on."`
	Once   string `placeholder:"KEY" help:"Idempotency key: the same asset and key within 24 hours create one asset."`
}

// Run creates an asset.
func (a createAsset) Run(ctx context.Context, p *program, c keyed) error {
	fields, err := p.fields(a.File)
	if err != nil {
		return err
	}
	begun, err := beginCreation(a.Access, a.Once)
	if err != nil {
		return err
	}
	created, err := c.CreateFields(ctx, fields, begun.key)
	if err != nil {
		return begun.failed(err)
	}
	p.tellIgnored(created.Asset.Tagged)
	got := answer{Data: &created.Asset, Access: &created.Access}
	if err := begun.keep(got); err != nil {
		return p.printTokens(got, err)
	}
	if a.Access == "" {
		if err := p.printTokens(got, nil); err != nil {
			return err
		}
	}
	return p.printAssets(got.without(a.Access), created.Asset)
}

type publishAsset struct {
	assetID    `embed:""`
	ownerToken `embed:""`
}

// Run publishes an asset.
func (a publishAsset) Run(ctx context.Context, p *program, c keyed) error {
	return p.change(ctx, c, a.ID, a.ownerToken, client.Fields{"status": client.Pending}, "")
}

type patchAsset struct {
	assetID    `embed:""`
	ownerToken `embed:""`
	File       string `short:"f" required:"" in:"" help:"JSON of the fields to change, as for create. null clears one."`
	IfMatch    string `placeholder:"TAG" help:"Change the asset only if it still has this tag, as get shows it."`
}

// Run changes the fields of an asset.
func (a patchAsset) Run(ctx context.Context, p *program, c keyed) error {
	fields, err := p.fields(a.File)
	if err != nil {
		return err
	}
	return p.change(ctx, c, a.ID, a.ownerToken, fields, client.Tag(a.IfMatch))
}

// change changes an asset and prints it.
func (p *program) change(
	ctx context.Context, c keyed, id string, owner ownerToken, fields client.Fields, tag client.Tag,
) error {
	token, err := owner.secret(id)
	if err != nil {
		return err
	}
	asset, err := c.Patch(ctx, id, fields, client.Write{Token: token, IfMatch: tag})
	if err != nil {
		return err
	}
	p.tellIgnored(asset.Tagged)
	return p.printAssets(answer{Data: &asset}, asset)
}

// tellIgnored prints the fields of a write that the registry has ignored. It prints them to the standard error.
func (p *program) tellIgnored(of client.Tagged) {
	if len(of.Ignored) > 0 {
		fmt.Fprintf(p.errOut, "The registry has ignored: %s\n", plain(strings.Join(of.Ignored, ", ")))
	}
}

// fields reads a JSON object from a file, or from the standard input if file is "-". If the object has a member
// "data", fields returns the object in it.
func (p *program) fields(file string) (client.Fields, error) {
	in, name := p.in, "the standard input"
	if file != "-" {
		name = file
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read the asset: %w", err)
		}
		defer opened.Close()
		in = opened
	}
	text, err := io.ReadAll(io.LimitReader(in, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the asset: %w", err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("%s is not a JSON object: %w", name, err)
	}
	if data, wrapped := object["data"]; wrapped {
		object = nil
		if err := json.Unmarshal(data, &object); err != nil {
			return nil, fmt.Errorf("data in %s is not a JSON object: %w", name, err)
		}
	}
	fields := client.Fields{}
	for name, value := range object {
		fields[name] = value
	}
	return fields, nil
}

// printAssets prints the answer as JSON, or a table with a row for each asset.
func (p *program) printAssets(answer any, assets ...client.Asset) error {
	header := row{"ID", "ASSET ID", "STATUS", "OWNER", "MODIFIED", "TITLE"}
	return table(p, answer, header, assets, func(a client.Asset) row {
		return row{a.ID, a.AssetID, string(a.Status), a.Owner, string(a.DateModified), a.Title}
	})
}

type eraseRevisions struct {
	assetID  `embed:""`
	Revision int64 `required:"" least:"1" help:"Number of the revision, as revisions lists it."`
	Through  int64 `help:"Number of the last revision to erase, if there are several."`
}

// Help describes what is erased.
func (eraseRevisions) Help() string {
	return `Destroys the content of revisions, such as personal data, and the salts of their leaves in the public log.
Leaves, dates and authors stay, so all other proofs stay valid. It needs a key of role administrator, and
cannot be undone.

Change the asset first, so that it does not have the data any more. Then erase each revision that had them:
from the one that brought them through the last one before your change. Backups keep them until you erase
or remove those too.`
}

// Run erases the revisions, the oldest first.
func (c eraseRevisions) Run(ctx context.Context, p *program, registry keyed) (err error) {
	c.Through = cmp.Or(c.Through, c.Revision)
	if c.Revision < 1 || c.Through < c.Revision {
		return fmt.Errorf("got the revisions %d through %d, want numbers from 1 in their order", c.Revision, c.Through)
	}
	done := []client.Revision{}
	if p.output == asJSON {
		defer func() { // also after an error, because the content that was erased before the error is gone
			err = errors.Join(err, p.printJSON(map[string]any{"data": done}, "  "))
		}()
	}
	for revision := c.Revision; revision <= c.Through; revision++ {
		erased, err := registry.EraseRevision(ctx, c.ID, revision)
		if err != nil {
			return fmt.Errorf("revision %d: %w", revision, err)
		}
		if erased.Erased == nil {
			return fmt.Errorf("revision %d: the registry does not say that it is erased", revision)
		}
		done = append(done, erased)
		if err := p.note("revision %d is erased since %s", revision, erased.Erased.Date); err != nil {
			return err
		}
	}
	return nil
}
