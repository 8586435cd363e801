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

	"github.com/spf13/cobra"
)

const assetsPath = "/api/2.5/assets"

// asset is what tables show of one.
type asset struct {
	ID           string `json:"id"`
	AssetID      string `json:"assetID"`
	Status       string `json:"status"`
	Title        string `json:"title"`
	Owner        string `json:"owner"`
	DateModified string `json:"dateModified"`
}

func (p *program) assets() *cobra.Command {
	group := newGroup("assets", "Assets of the registry")

	get := &cobra.Command{Use: "get ID", Short: "Show an asset", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		return p.oneAsset(cmd.Context(), http.MethodGet, assetsPath+"/"+url.PathEscape(args[0]), "", nil)
	}}

	var limit int
	var offset, mode string
	var descending bool
	list := &cobra.Command{Use: "list", Short: "List a page of the feed of changes", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		for name, value := range map[string]string{"offset": offset, "mode": mode} {
			if value != "" {
				query.Set(name, value)
			}
		}
		if descending {
			query.Set("descending", "1")
		}
		return p.listAssets(cmd.Context(), query)
	}}
	list.Flags().IntVar(&limit, "limit", 100, "the most assets")
	list.Flags().StringVar(&offset, "offset", "", "where the page begins, as a page before has said")
	list.Flags().StringVar(&mode, "mode", "", "test: test assets; _all_: these too")
	list.Flags().BoolVar(&descending, "descending", false, "the newest first")

	var created, changed string
	create := &cobra.Command{Use: "create", Short: "Create an asset, and print its tokens, this once", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		body, err := p.body(created)
		if err != nil {
			return err
		}
		return p.oneAsset(cmd.Context(), http.MethodPost, assetsPath, "", body)
	}}
	create.Flags().StringVarP(&created, "file", "f", "", "JSON of the asset, with or without {\"data\": ...} around it; - is the standard input")
	var token string
	patch := &cobra.Command{Use: "patch ID", Short: "Change an asset", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		body, err := p.body(changed)
		if err != nil {
			return err
		}
		if token == "" {
			token = p.env("REGISTRYCTL_TOKEN")
		}
		return p.oneAsset(cmd.Context(), http.MethodPatch, assetsPath+"/"+url.PathEscape(args[0]), token, body)
	}}
	patch.Flags().StringVarP(&changed, "file", "f", "", "JSON of what is to be another, with or without {\"data\": ...} around it; - is the standard input")
	patch.Flags().StringVar(&token, "token", "", "owner token; better in the environment, as REGISTRYCTL_TOKEN")
	for _, cmd := range []*cobra.Command{create, patch} {
		if err := cmd.MarkFlagRequired("file"); err != nil {
			panic(err) // there is no such flag: a mistake in the name
		}
	}

	group.AddCommand(get, list, create, patch)
	return group
}

// body reads the data of an asset and wraps it as the registry wants it.
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
		return nil, fmt.Errorf("%s is no JSON object: %w", file, err)
	}
	if _, wrapped := fields["data"]; wrapped {
		return text, nil
	}
	return json.Marshal(map[string]json.RawMessage{"data": text})
}

func (p *program) sendAsset(ctx context.Context, method, path, token string, body []byte) ([]byte, error) {
	if body != nil && p.Key == "" {
		return nil, errNoKey
	}
	header := http.Header{}
	if token != "" {
		header.Set("X-Access-Token", token)
	}
	return send(ctx, method, strings.TrimSuffix(p.URL, "/")+path, p.Key, header, body)
}

func (p *program) oneAsset(ctx context.Context, method, path, token string, body []byte) error {
	text, err := p.sendAsset(ctx, method, path, token, body)
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
		return errors.New("the answer is not the registry's")
	}
	if answer.Access.Token != "" {
		if err := p.note("The owner token, which is shown this once:\n\n  %s\n\nThe transfer token, likewise:\n\n  %s\n", answer.Access.Token, answer.Access.Transfer); err != nil {
			return err
		}
	}
	return p.printAssets(text, answer.Data)
}

func (p *program) listAssets(ctx context.Context, query url.Values) error {
	query.Set("opt_fields", "status,title,owner,assetID")
	text, err := p.sendAsset(ctx, http.MethodGet, assetsPath+"?"+query.Encode(), "", nil)
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
		return errors.New("the answer is not the registry's")
	}
	if err := p.printAssets(text, answer.Data...); err != nil {
		return err
	}
	return p.note("\nThe next page: --offset '%s'", plain(answer.NextPage.Offset))
}

func (p *program) printAssets(text []byte, assets ...asset) error {
	var rows []row
	for _, a := range assets {
		rows = append(rows, row{a.ID, a.AssetID, a.Status, a.Owner, a.DateModified, a.Title})
	}
	return p.print(json.RawMessage(text), row{"ID", "ASSET ID", "STATUS", "OWNER", "MODIFIED", "TITLE"}, rows...)
}
