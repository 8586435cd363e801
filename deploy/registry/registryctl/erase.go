package registryctl

import (
	"context"
	"errors"
	"fmt"

	"asset-registry.example/client"
)

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
func (c eraseRevisions) Run(ctx context.Context, p *program) (err error) {
	if c.Through == 0 {
		c.Through = c.Revision
	}
	if c.Revision < 1 || c.Through < c.Revision {
		return fmt.Errorf("got the revisions %d through %d, want numbers from 1 in their order", c.Revision, c.Through)
	}
	registry, err := p.public(true)
	if err != nil {
		return err
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
