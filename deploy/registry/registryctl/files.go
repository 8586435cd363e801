package registryctl

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"asset-registry.example/client"
)

type fileCommands struct {
	Upload uploadFile `cmd:"" help:"Send a file to the registry, and add a document of an asset that names it."`
	List   listFiles  `cmd:"" help:"List your broker's files, or with an administrator's key all."`
	Get    getFile    `cmd:"" help:"Write the bytes of a file."`
	Remove removeFile `cmd:"" help:"Take a file down, and all files with the same bytes, for good."`
}

type uploadFile struct {
	assetID    `embed:""`
	Path       string `arg:"" in:"" help:"The file."`
	Type       string `required:"" help:"Type of the document, such as notice."`
	Title      string `help:"Title of the document; by default the name of the file."`
	ownerToken `embed:""`
}

// Run uploads a file, and prints the document for it.
func (c uploadFile) Run(ctx context.Context, p *program, registry keyed) error {
	token, err := c.secret(c.ID)
	if err != nil {
		return err
	}
	document, err := registry.Documents(c.ID).Upload(ctx, c.Path,
		client.Document{DocumentType: c.Type, Title: c.Title}, client.Write{Token: token})
	if err != nil {
		return err
	}
	return p.print(document, row{"DOCUMENT", "TITLE", "HASH", "URL"},
		row{document.ID, document.Title, document.Hash, document.URL})
}

type listFiles struct {
	Broker string `help:"List only files of this broker. It needs an administrator's key."`
	State  string `complete:"registered,stored,removed" help:"List only files in this state: registered, stored, removed."`
}

// Run lists files.
func (l listFiles) Run(ctx context.Context, p *program, registry keyed) error {
	found, rows := []client.File{}, []row(nil)
	for f, err := range registry.Files(ctx, l.Broker) {
		if err != nil {
			return err
		}
		if l.State != "" && f.State != l.State {
			continue
		}
		found = append(found, f)
		rows = append(rows, row{f.ID, f.Broker, f.State, strconv.FormatInt(f.Size, 10), f.Title, f.Reason})
	}
	return p.print(map[string]any{"data": found}, row{"FILE", "BROKER", "STATE", "BYTES", "TITLE", "REASON"}, rows...)
}

type getFile struct {
	File string `arg:"" help:"Id of the file, as its address has it."`
	To   string `placeholder:"FILE" out:"" help:"File to write; it must not exist. By default the standard output."`
}

// Run writes the bytes of a file to the output.
func (c getFile) Run(ctx context.Context, p *program, registry *client.Client) error {
	if c.To == "" {
		return registry.ReadFile(ctx, c.File, p.out)
	}
	f, err := os.OpenFile(c.To, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := registry.ReadFile(ctx, c.File, f); err != nil {
		return fmt.Errorf("%w; %s has only a part of it", err, c.To)
	}
	return f.Close()
}

type removeFile struct {
	File   string `arg:"" help:"Id of the file, as its address has it."`
	Reason string `required:"" help:"Reason, which the registry keeps and logs."`
}

// Help describes what remains after a removal.
func (removeFile) Help() string {
	return `The bytes go at once, and readers hear 410. Documents keep the address, the hash and the size, and the public
log stays as it is. The same bytes cannot be uploaded again. It needs a key of role administrator, and cannot be
undone. The audit log has an entry with the reason. Backups keep the bytes until you remove those too; a removal is
noted beside the bytes, and so it is applied again to restored metadata.`
}

// Run removes a file.
func (c removeFile) Run(ctx context.Context, p *program, registry keyed) error {
	removed, err := registry.RemoveFile(ctx, c.File, c.Reason)
	if err != nil {
		return err
	}
	return p.print(removed, row{"FILE", "BYTES", "REASON"},
		row{removed.ID, strconv.FormatInt(removed.Size, 10), removed.Reason})
}
