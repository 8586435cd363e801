package assetclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"asset-registry/shared/httpserver"
)

// Recoverer describes the operator who gives an asset new tokens, with the facts that the audit log shows.
type Recoverer struct {
	KeyID     string
	RequestID string
	From      string // address of the operator
}

// Recovered has the new tokens of an asset. They are shown only once.
type Recovered struct{ Owner, Token, Transfer string }

// maxRecovered is the maximum number of bytes of an answer with an asset.
const maxRecovered = 32 << 20

// Recover gives an asset new tokens (docs/contract.md, "Recovery").
func (c *Client) Recover(ctx context.Context, by Recoverer, id, reason string) (Recovered, error) {
	body, err := json.Marshal(map[string]any{"data": map[string]string{"reason": reason}})
	if err != nil {
		return Recovered{}, fmt.Errorf("recover asset %s: %w", id, err)
	}
	headers := http.Header{}
	headers.Set(httpserver.RequestIDHeader, by.RequestID)
	headers.Set(httpserver.ClientHeader, by.From)
	path := "/api/2.5/assets/" + url.PathEscape(id) + "/recovery"
	text, err := c.send(ctx, administrator(by.KeyID), http.MethodPost, path, body, maxRecovered, headers)
	if err != nil {
		return Recovered{}, err
	}
	var answer struct {
		Access struct{ Token, Transfer string }
		Data   struct{ Owner string }
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return Recovered{}, fmt.Errorf("read the tokens of asset %s: %w", id, err)
	}
	return Recovered{answer.Data.Owner, answer.Access.Token, answer.Access.Transfer}, nil
}
