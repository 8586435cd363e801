package filesvc

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/filelink"
	"asset-registry/shared/filesapi"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
	"asset-registry/shared/telemetry"
)

const (
	readTimeout = 10 * time.Second // for reading a page of the feed, or completing documents
	maxPage     = 512 << 20        // bytes of a page of the feed, which has 100 assets
)

// feed reads the feed of the asset service, and asks the service to complete documents. It implements file.Feed
// and file.Documents.
type feed struct {
	http   *http.Client
	signer *identity.Signer
	base   filelink.Base
}

func newFeed(transport http.RoundTripper, signer *identity.Signer, base filelink.Base) feed {
	return feed{httpclient.New(telemetry.Transport(transport)), signer, base}
}

// page is the JSON of a page of the feed.
type page struct {
	Data []struct {
		ID        string    `json:"id"`
		Modified  time.Time `json:"dateModified"`
		Documents []struct {
			Type   string `json:"documentType"`
			URL    string `json:"url"`
			SHA256 string `json:"sha256"`
		} `json:"documents"`
	} `json:"data"`
}

func (f feed) After(ctx context.Context, position int64) (named []file.Named, next int64, err error) {
	q := url.Values{"mode": {"_all_"}, "opt_fields": {"documents"}, "limit": {"100"}}
	if position > 0 {
		q.Set("offset", time.UnixMicro(position).UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
	}
	var p page
	address := "http://assetsvc" + routes.Prefix(routes.Current) + "/assets?" + q.Encode()
	if err := f.ask(ctx, http.MethodGet, address, "", nil, &p); err != nil {
		return nil, 0, err
	}
	next = position
	for _, asset := range p.Data {
		for _, document := range asset.Documents {
			if id, _, isOurs := f.base.Parse(document.URL); isOurs && id != "" {
				naming := file.Naming{File: id, Asset: asset.ID}
				named = append(named, file.Named{
					Naming: naming, IsWhole: document.SHA256 != "", IsIllustration: document.Type == filelink.Illustration,
				})
			}
		}
		next = asset.Modified.UnixMicro()
	}
	return named, next, nil
}

// documents returns the newest versions of the documents of an asset, as a JSON list.
func (f feed) documents(ctx context.Context, caller, asset string) ([]byte, error) {
	var answer struct {
		Data json.RawMessage `json:"data"`
	}
	path := routes.Prefix(routes.Current) + "/assets/" + url.PathEscape(asset) + "/" + routes.Documents
	err := f.ask(ctx, http.MethodGet, "http://assetsvc"+path, caller, nil, &answer)
	return answer.Data, err
}

func (f feed) Complete(ctx context.Context, asset string, of file.File) error {
	text, err := json.Marshal(filesapi.Completion{
		File: of.ID, SHA256: of.SHA256, Size: of.Size, Broker: of.Broker, KeyID: of.KeyID,
	})
	if err != nil {
		return err
	}
	return f.ask(ctx, http.MethodPost, "http://assetsvc"+filesapi.CompletePath+url.PathEscape(asset), "", text, nil)
}

// ask sends a request to the asset service, and decodes the answer into the value behind the pointer. If the
// pointer is nil, it ignores the body of the answer. The argument `caller` is for package fair; "": this service.
func (f feed) ask(ctx context.Context, method, address, caller string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	signed, err := f.signer.Sign(identity.Identity{Broker: "filesvc", Role: identity.Service})
	if err != nil {
		return err
	}
	r.Header.Set(identity.Header, signed)
	if caller != "" {
		r.Header.Set(httpserver.CallerHeader, caller)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := f.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if into == nil {
		return faulthttp.Read(resp)
	}
	return faulthttp.Decode(resp, maxPage, into)
}
