package registryctl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/command"
	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
)

type listRevisions struct {
	assetID    `embed:""`
	ownerToken `embed:""`
	Limit      int `default:"20" least:"0" help:"Largest number of changes. 0 lists all."`
}

// Run lists the changes of an asset.
func (l listRevisions) Run(ctx context.Context, p *program, c keyed) error {
	token, err := l.secret(l.ID)
	if err != nil {
		return err
	}
	found := []client.Revision{}
	for revision, err := range c.Revisions(ctx, l.ID, token) {
		if err != nil {
			return err
		}
		if found = append(found, revision); len(found) == l.Limit {
			break
		}
	}
	all := struct {
		Data []client.Revision `json:"data"`
	}{found}
	return table(p, all, row{"REVISION", "DATE", "BROKER", "ROLE", "KEY", "CHANGES"}, found, func(r client.Revision) row {
		return row{
			strconv.FormatInt(r.Revision, 10), string(r.Date), r.Author.Broker, r.Author.Role, r.Author.Key, changed(r),
		}
	})
}

// changed returns the names of the fields that a revision has changed.
func changed(r client.Revision) string {
	if r.ChangesSize > 0 {
		return fmt.Sprintf("(%d bytes, not kept)", r.ChangesSize)
	}
	var names []string
	for _, o := range r.Changes {
		names = append(names, o.Op+" "+cmp.Or(o.Path, "the whole asset"))
	}
	return strings.Join(names, ", ")
}

type followAssets struct {
	State    string        `placeholder:"FILE" out:"" xor:"start" help:"File of the position, where a later run goes on."`
	Offset   string        `xor:"start" help:"Place in the feed to start after, as a run prints at its end."`
	Fields   []string      `default:"status,title,owner,assetID" help:"Fields of each entry with -o json. '*' is all."`
	Mode     string        `complete:"test,_all_" help:"${mode}"`
	Pause    time.Duration `default:"5m" least:"0s" help:"Time between requests, if the registry has no streams."`
	UpToDate bool          `help:"End at the change that is the newest when the command begins."`
}

// Help describes what the command prints.
func (followAssets) Help() string {
	return `Changes come as they happen. A line has the time of the change, the id, the status, the owner and the title,
with tabs between them. With -o json, a line is an object with the fields of --fields. An asset comes again with each
change.

While the registry does not answer, the command says so on the standard error and waits.

FILE is written after the lines of a page are printed. So a run that is interrupted prints some lines again, and
loses none. It prints on the standard error the offset to go on from.

If the registry's data is other data than before, for instance after a restore, the line "# start over"
(JSON: {"startOver":true}) comes, and everything comes again. Drop your copy then.`
}

// Run prints the feed until ctx is done.
func (f followAssets) Run(ctx context.Context, p *program, c *client.Client) error {
	position, err := f.start()
	if err != nil {
		return err
	}
	feed := client.Feed{
		Position: position, Limit: 1000, Mode: client.Mode(f.Mode), Fields: f.Fields, Live: !f.UpToDate,
	}
	if p.output != asJSON {
		feed.Fields = listed
	}
	var goal client.Timestamp
	if f.UpToDate {
		end, err := c.Page(ctx, client.Feed{Descending: true, Limit: 1, Mode: feed.Mode})
		if err != nil {
			return err
		}
		goal = end.Next.Offset
	}
	for page, err := range c.Follow(ctx, feed, f.Pause) {
		if ctx.Err() != nil {
			return p.goOn(position)
		}
		if err != nil && !errors.Is(err, client.ErrStartOver) {
			if f.UpToDate || !passes(err) {
				return err
			}
			if err := p.say("%s; the command waits and asks again", command.Words(err)); err != nil {
				return err
			}
			continue
		}
		if upToDate, err := f.use(p, page, err != nil, goal); err != nil || upToDate && f.UpToDate {
			return err
		}
		position = page.Next
	}
	return nil
}

// start returns the position from which the feed is read.
func (f followAssets) start() (client.Position, error) {
	if f.Offset != "" {
		return client.Position{Offset: client.Timestamp(f.Offset)}, nil
	}
	return readPosition(f.State)
}

// goOn prints the offset with which another run can continue.
func (p *program) goOn(position client.Position) error {
	if position.Offset == "" {
		return nil
	}
	_, err := fmt.Fprintf(p.errOut, "Go on with --offset '%s'\n", plain(string(position.Offset)))
	return err
}

// use prints a page, or a message that the feed starts over, and then stores the position. The result upToDate reports
// whether everything up to the goal is printed. The function compares timestamps as texts: their alphabetical order is
// the order of the times (docs/contract.md, "Timestamps").
func (f followAssets) use(
	p *program, page client.Page, over bool, goal client.Timestamp,
) (upToDate bool, err error) {
	if over {
		err = p.startOver()
	} else {
		err = p.printChanges(page.Assets)
	}
	if err != nil {
		return false, err
	}
	upToDate = !over && (len(page.Assets) == 0 || page.Next.Offset >= goal)
	return upToDate, f.keep(page.Next) // if the feed starts over, Next is its beginning
}

// passes reports whether err is temporary: the registry is down or busy. A follower then waits.
func passes(err error) bool {
	status := client.StatusOf(err)
	return status == 0 || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

func (p *program) startOver() error {
	if p.output == asJSON {
		return p.printJSON(map[string]bool{"startOver": true}, "")
	}
	return p.note("# start over: the registry has other data than before")
}

// printChanges prints a line for each asset of the page.
func (p *program) printChanges(assets []client.Asset) error {
	for _, a := range assets {
		var err error
		if p.output == asJSON {
			err = p.printJSON(a, "")
		} else {
			cells := []string{string(a.DateModified), a.ID, string(a.Status), a.Owner, a.Title}
			for i := range cells {
				cells[i] = plain(cells[i])
			}
			_, err = fmt.Fprintln(p.out, strings.Join(cells, "\t"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readPosition reads the position from a file. If the name is empty or the file does not exist, it returns the
// beginning of the feed.
func readPosition(file string) (position client.Position, err error) {
	if file == "" {
		return position, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return position, nil
	}
	if err != nil {
		return position, fmt.Errorf("read the position: %w", err)
	}
	if err := json.Unmarshal(text, &position); err != nil {
		return position, fmt.Errorf("%s holds no position in the feed: remove it to start over", file)
	}
	return position, nil
}

// keep stores a position in the file of --state.
func (f followAssets) keep(position client.Position) error {
	if f.State == "" {
		return nil
	}
	text, err := json.Marshal(position)
	if err == nil {
		err = durable.WriteFile(f.State, append(text, '\n'))
	}
	return errs.In(err, "keep the position")
}
