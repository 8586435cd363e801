package registryctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
)

const assetsPath = "/api/2.5/assets"

type assetCommands struct {
	List   listAssets  `cmd:"" help:"List one page of the feed of changes."`
	Get    getAsset    `cmd:"" help:"Show an asset."`
	Create createAsset `cmd:"" help:"Create an asset and print its tokens, which cannot be shown again."`
	Patch  patchAsset  `cmd:"" help:"Change an asset."`
}

// asset holds the fields that tables show.
type asset struct {
	ID           string `json:"id"`
	AssetID      string `json:"assetID"`
	Status       string `json:"status"`
	Title        string `json:"title"`
	Owner        string `json:"owner"`
	DateModified string `json:"dateModified"`
}

// assetID is the argument of commands about one asset.
type assetID struct {
	ID string `arg:"" help:"Id of the asset."`
}

func (a assetID) path() string { return assetsPath + "/" + url.PathEscape(a.ID) }

type getAsset struct {
	assetID `embed:""`
}

// Run shows an asset.
func (g getAsset) Run(ctx context.Context, p *program) error {
	return p.oneAsset(ctx, assetRequest{method: http.MethodGet, path: g.path()})
}

type listAssets struct {
	Limit      int    `default:"100" help:"Largest number of assets."`
	Offset     string `help:"Start of the page, as printed after the previous page."`
	Mode       string `help:"'test' lists test assets only, '_all_' adds them. By default they are left out."`
	Descending bool   `help:"List the newest change first."`
}

// Run lists a page of the feed and prints the next page's offset.
func (l listAssets) Run(ctx context.Context, p *program) error {
	query := url.Values{"limit": {strconv.Itoa(l.Limit)}, "opt_fields": {"status,title,owner,assetID"}}
	if l.Offset != "" {
		query.Set("offset", l.Offset)
	}
	if l.Mode != "" {
		query.Set("mode", l.Mode)
	}
	if l.Descending {
		query.Set("descending", "1")
	}
	text, err := p.sendAsset(ctx, assetRequest{method: http.MethodGet, path: assetsPath + "?" + query.Encode()})
	if err != nil {
		return err
	}
	var answer struct {
		Data     []asset `json:"data"`
		NextPage struct {
			Offset string `json:"offset"`
		} `json:"next_page"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return errNotRegistry
	}
	if err := p.printAssets(text, answer.Data...); err != nil {
		return err
	}
	return p.note("\nThe next page: --offset '%s'", plain(answer.NextPage.Offset))
}

type createAsset struct {
	File string `short:"f" required:"" help:"JSON of the asset, {\"data\": ...} or its content. - is the standard input."`
}

// Run creates an asset.
func (c createAsset) Run(ctx context.Context, p *program) error {
	body, err := p.body(c.File)
	if err != nil {
		return err
	}
	return p.oneAsset(ctx, assetRequest{method: http.MethodPost, path: assetsPath, body: body})
}

type patchAsset struct {
	assetID `embed:""`
	File    string `short:"f" required:"" help:"JSON of the fields to change, as for create. - is the standard input."`
	Token   string `env:"REGISTRYCTL_TOKEN" help:"Owner token. The process list shows flags: set the variable."`
}

// Run changes the fields of an asset.
func (c patchAsset) Run(ctx context.Context, p *program) error {
	body, err := p.body(c.File)
	if err != nil {
		return err
	}
	return p.oneAsset(ctx, assetRequest{method: http.MethodPatch, path: c.path(), token: c.Token, body: body})
}

// body reads JSON from a file, or from the standard input for "-". It adds the
// {"data": ...} around the JSON if it is missing.
func (p *program) body(file string) ([]byte, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(p.in)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the asset: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("%s is not a JSON object: %w", file, err)
	}
	if _, wrapped := fields["data"]; wrapped {
		return text, nil
	}
	return json.Marshal(map[string]json.RawMessage{"data": text})
}

// assetRequest is a request of the public API. token is an owner token, "" for
// none; body is nil for a read.
type assetRequest struct {
	method, path, token string
	body                []byte
}

// sendAsset sends the request and returns the body of the answer.
func (p *program) sendAsset(ctx context.Context, r assetRequest) ([]byte, error) {
	if r.body != nil && p.Key == "" {
		return nil, errNoKey
	}
	header := http.Header{}
	if r.token != "" {
		header.Set("X-Access-Token", r.token)
	}
	return send(ctx, r.method, strings.TrimSuffix(p.URL, "/")+r.path, p.Key, header, r.body)
}

// errNotRegistry is returned for an answer that is not the public API's JSON.
var errNotRegistry = errors.New("the answer is not the registry's")

// oneAsset sends a request that returns an asset. It prints the asset, and its
// tokens if the answer holds them.
func (p *program) oneAsset(ctx context.Context, r assetRequest) error {
	text, err := p.sendAsset(ctx, r)
	if err != nil {
		return err
	}
	var answer struct {
		Data   asset `json:"data"`
		Access struct {
			Token    string `json:"token"`
			Transfer string `json:"transfer"`
		} `json:"access"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return errNotRegistry
	}
	if answer.Access.Token != "" {
		err := p.note("The owner token, which cannot be shown again:\n\n  %s\n\nThe transfer token, likewise:\n\n  %s\n",
			answer.Access.Token, answer.Access.Transfer)
		if err != nil {
			return err
		}
	}
	return p.printAssets(text, answer.Data)
}

func (p *program) printAssets(text []byte, assets ...asset) error {
	var rows []row
	for _, a := range assets {
		rows = append(rows, row{a.ID, a.AssetID, a.Status, a.Owner, a.DateModified, a.Title})
	}
	return p.print(json.RawMessage(text), row{"ID", "ASSET ID", "STATUS", "OWNER", "MODIFIED", "TITLE"}, rows...)
}
