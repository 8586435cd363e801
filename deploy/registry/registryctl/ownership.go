package registryctl

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"asset-registry.example/client"

	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
)

// answer is the JSON that commands about one asset print. An access file has the same form; it needs only the
// asset's id and the tokens.
type answer struct {
	Data     *client.Asset    `json:"data,omitempty"`
	Access   *client.Access   `json:"access,omitempty"`
	Transfer *client.Transfer `json:"transfer,omitempty"` // the transfer that the command accept has made
}

// The method `without` returns the answer without its tokens if the tokens are in a file. If file is "", it returns the
// whole answer.
func (a answer) without(file string) answer {
	if file != "" {
		a.Access = nil
	}
	return a
}

// ownerToken has the flags in which the owner of an asset passes the owner token to the program.
type ownerToken struct {
	Token  string `env:"REGISTRYCTL_TOKEN" help:"Owner token. The process list shows flags: set the variable."`
	Access string `placeholder:"FILE" in:"" help:"File with the asset's tokens, as create and accept write it."`
}

// secret returns the owner token for an asset, or "" if no token was given.
func (o ownerToken) secret(id string) (client.Secret, error) {
	if o.Token != "" || o.Access == "" {
		return client.Secret(o.Token), nil
	}
	held, err := readAccess(o.Access, id)
	if err != nil {
		return "", err
	}
	return held.Access.Token, nil
}

type transferAsset struct {
	assetID `embed:""`
	Access  string `placeholder:"FILE" in:"" help:"File with the asset's tokens, as create and accept write it."`
	Secret  string `name:"transfer" env:"REGISTRYCTL_TRANSFER" help:"Transfer token, if no file has it. Set the variable."`
}

// Help describes both sides of a change of owner.
func (transferAsset) Help() string { return ownershipHelp }

const ownershipHelp = `1. The owner runs "assets transfer ID". It prints the asset's transfer token, which create or
accept has shown, and changes nothing. The owner sends the id and the token to the new owner,
in secret.

2. The new owner sets REGISTRYCTL_TRANSFER to that token and runs "assets accept ID --access FILE",
with an API key of its own that has level 3. The asset then belongs to it. FILE has the asset's new
tokens; the old ones no longer work.`

// Run prints what the new owner needs to take the asset over.
func (a transferAsset) Run(ctx context.Context, p *program, c keyed) error {
	token := client.Secret(a.Secret)
	if a.Access != "" {
		held, err := readAccess(a.Access, a.ID)
		if err != nil {
			return err
		}
		token = held.Access.Transfer
	}
	if token == "" {
		return errors.New("no transfer token: it was shown when the asset was created or accepted; " +
			"name its file with --access, or set REGISTRYCTL_TRANSFER")
	}
	asset, err := c.Get(ctx, a.ID)
	if err != nil {
		return err
	}
	me, err := c.Me(ctx)
	if err != nil {
		return err
	}
	if me.Broker != asset.Owner {
		return fmt.Errorf("the asset belongs to %q, and the API key to %q", asset.Owner, me.Broker)
	}
	if p.output == asJSON {
		return p.printJSON(answer{
			Data: &client.Asset{ID: asset.ID, Owner: asset.Owner}, Access: &client.Access{Transfer: token},
		}, "  ")
	}
	return p.note("Send this to the new owner, in secret. Whoever has it can take the asset over:\n\n"+
		"  asset           %s\n  transfer token  %s\n\n"+
		"The new owner sets REGISTRYCTL_TRANSFER to the token and runs:\n\n"+
		"  registryctl assets accept %s --access FILE", plain(asset.ID), plain(string(token)), plain(asset.ID))
}

type acceptAsset struct {
	assetID `embed:""`
	Access  string `placeholder:"FILE" out:"" help:"File for the new tokens. After an interruption, name it again."`
	Secret  string `name:"transfer" env:"REGISTRYCTL_TRANSFER" help:"Transfer token from the owner. Set the variable."`
}

// Help describes both sides of a change of owner.
func (acceptAsset) Help() string { return ownershipHelp }

// Run makes a transfer, stores its tokens, and then takes the asset over. After an interruption, the same
// command with the same file continues with the same transfer.
func (a acceptAsset) Run(ctx context.Context, p *program, c keyed) error {
	if a.Secret == "" {
		return errors.New("no transfer token: set REGISTRYCTL_TRANSFER to the one that the owner sent")
	}
	held, err := a.transfer(ctx, c)
	if err != nil {
		return err
	}
	// The tokens are printed before the change, so that no interruption loses them.
	if a.Access == "" && p.output != asJSON {
		if err := p.printTokens(held, nil); err != nil {
			return err
		}
	}
	asset, err := c.TakeOver(ctx, a.ID, held.Transfer.ID, client.Secret(a.Secret))
	if err != nil {
		if a.Access == "" && p.output == asJSON {
			return p.printTokens(held, err)
		}
		return err
	}
	held.Data = &asset
	return p.printAssets(held.without(a.Access), asset)
}

// transfer returns the transfer that the access file records. If the file records none, transfer makes one and
// records it in the file.
func (a acceptAsset) transfer(ctx context.Context, c keyed) (answer, error) {
	if a.Access != "" {
		held, err := readAccess(a.Access, a.ID)
		if err == nil && held.Transfer == nil {
			return held, fmt.Errorf("%s holds the tokens of another command: name a new file", a.Access)
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return held, err
		}
	}
	file, err := newAccessFile(a.Access)
	if err != nil {
		return answer{}, err
	}
	made, err := c.CreateTransfer(ctx)
	if err != nil {
		return answer{}, file.discard(err)
	}
	held := answer{Data: &client.Asset{ID: a.ID}, Access: &made.Access, Transfer: &made.Transfer}
	return held, file.write(held)
}

// printTokens prints the tokens of an answer, even if err says that they could not be used or stored. It
// returns err.
func (p *program) printTokens(a answer, err error) error {
	if p.output == asJSON {
		if err != nil {
			return errors.Join(err, p.printJSON(a, "  "))
		}
		return nil // the command prints the tokens as part of its JSON
	}
	return errors.Join(err, p.note("The owner token, which cannot be shown again:\n\n  %s\n\n"+
		"The transfer token, likewise:\n\n  %s\n", plain(string(a.Access.Token)), plain(string(a.Access.Transfer))))
}

// readAccess reads the tokens of an asset from a file. The file is the access file of one asset, or the file of
// an import. If it has several entries for the asset, the last one counts.
func readAccess(name, id string) (held answer, err error) {
	file, err := os.Open(name)
	if err != nil {
		return held, fmt.Errorf("read the tokens: %w", err)
	}
	defer file.Close()
	other := ""
	for decoder := json.NewDecoder(file); ; {
		var next answer
		if err := decoder.Decode(&next); err != nil {
			break // the end of the file, or a last line that a running import has not finished
		}
		if next.Data == nil || next.Access == nil {
			continue
		}
		if other = next.Data.ID; other == id {
			held = next
		}
	}
	switch {
	case held.Data != nil:
		return held, nil
	case other == "":
		return held, fmt.Errorf("%s has no tokens: name a file that create, import or accept has written", name)
	}
	return held, fmt.Errorf("%s has the tokens of another asset, %s", name, other)
}

// accessFile is a new file for tokens. It is created before the request, because the registry gives the tokens
// only once, in the answer. A nil *accessFile stores nothing.
type accessFile struct{ *os.File }

// newAccessFile creates a file that only the user can access. It refuses a file that exists. If name is empty,
// it returns nil.
func newAccessFile(name string) (*accessFile, error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep the tokens: %w", err)
	}
	return &accessFile{file}, nil
}

// write writes the id and the tokens to the file, and closes it.
func (f *accessFile) write(a answer) error {
	if f == nil {
		return nil
	}
	a.Data = &client.Asset{ID: a.Data.ID}
	err := json.NewEncoder(f).Encode(a)
	return errs.In(errors.Join(err, f.Sync(), f.Close()), "keep the tokens")
}

// discard removes the file, because the request failed with err, and returns err.
func (f *accessFile) discard(err error) error {
	if f == nil {
		return err
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

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
func (a recoverAsset) Run(ctx context.Context, p *program, c keyed) error {
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

// creation is a request that creates an asset. It can be repeated after an interruption, so that the tokens are
// not lost: the idempotency key is in the access file before the request is sent.
type creation struct {
	file    string // file for the tokens; "": the tokens are printed
	key     string // idempotency key
	resumed bool   // an earlier run may already have sent the request
}

// begunFile is the content of an access file while it is not known whether the asset was created.
type begunFile struct {
	Once   string          `json:"idempotencyKey"`
	Access json.RawMessage `json:"access,omitempty"`
}

// beginCreation returns the creation that a file records, or records a new one in it. The last argument is the
// idempotency key of a new creation; if it is "", the key is random. A file with any other content is refused.
func beginCreation(file, once string) (creation, error) {
	c := creation{file: file, key: cmp.Or(once, rand.Text())}
	if file == "" {
		return c, nil
	}
	made, err := newAccessFile(file)
	if errors.Is(err, fs.ErrExist) {
		return resumed(c, once, err)
	}
	if err != nil {
		return c, err
	}
	err = errors.Join(json.NewEncoder(made).Encode(begunFile{Once: c.key}), made.Sync(), made.Close())
	if err != nil {
		return c, fmt.Errorf("keep the idempotency key: %w", errors.Join(err, os.Remove(file)))
	}
	return c, nil
}

// resumed returns the creation that the file records. If the file has other content, it returns the given error.
func resumed(c creation, once string, exists error) (creation, error) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return c, fmt.Errorf("keep the tokens: %w", err)
	}
	var begun begunFile
	if json.Unmarshal(text, &begun) != nil || begun.Once == "" || begun.Access != nil {
		return c, exists
	}
	if once != "" && once != begun.Once {
		return c, fmt.Errorf("%s keeps a creation with another idempotency key than --once: name a new file", c.file)
	}
	c.key, c.resumed = begun.Once, true
	return c, nil
}

// keep replaces the idempotency key in the file by the tokens.
func (c creation) keep(a answer) error {
	if c.file == "" {
		return nil
	}
	a.Data = &client.Asset{ID: a.Data.ID}
	text, err := json.Marshal(a)
	if err == nil {
		err = durable.WriteFile(c.file, append(text, '\n'))
	}
	return errs.In(err, "keep the tokens")
}

// failed adds to err what the user can do. If the registry has certainly created nothing, it returns err and
// removes the file.
func (c creation) failed(err error) error {
	status := client.StatusOf(err)
	refused := status >= http.StatusBadRequest && status < http.StatusInternalServerError && !c.resumed
	switch {
	case c.file == "" && refused:
		return err
	case c.file == "":
		return fmt.Errorf("%w; the asset may be there: repeat the command within 24 hours with --once %s to get its tokens",
			err, c.key)
	case refused:
		return errors.Join(err, os.Remove(c.file))
	}
	const again = "the asset may be there: repeat the command within 24 hours to get its tokens into"
	return fmt.Errorf("%w; %s %s", err, again, c.file)
}
