package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Parts reads and changes the parts of one kind in one asset (docs/contract.md, "Parts"). T is the type of a
// part. A part has the tag of its asset.
type Parts[T any, P tagged[T]] struct {
	client      *Client
	asset, name string
}

// tagged is a pointer to T with a method that sets the tag.
type tagged[T any] interface {
	*T
	setTagged(Tagged)
}

// Items returns the items of an asset.
func (c *Client) Items(asset string) Parts[Item, *Item] {
	return Parts[Item, *Item]{c, asset, "items"}
}

// Decisions returns the decisions of an asset.
func (c *Client) Decisions(asset string) Parts[Decision, *Decision] {
	return Parts[Decision, *Decision]{c, asset, "decisions"}
}

// Documents returns the documents of an asset.
func (c *Client) Documents(asset string) Documents {
	return Documents{Parts[Document, *Document]{c, asset, "documents"}}
}

// RelatedProcesses returns the related processes of an asset.
func (c *Client) RelatedProcesses(asset string) RelatedProcesses {
	return RelatedProcesses{Parts[RelatedProcess, *RelatedProcess]{c, asset, "related_processes"}}
}

// List reads all parts. For documents, it reads only the newest version of each. The tags of listed parts are empty.
func (p Parts[T, P]) List(ctx context.Context) ([]T, error) { return p.list(ctx, nil) }

func (p Parts[T, P]) list(ctx context.Context, query url.Values) ([]T, error) {
	return dataOf[[]T](ctx, p.client, read(path("assets", p.asset, p.name), query))
}

// Get reads a part.
func (p Parts[T, P]) Get(ctx context.Context, id string) (T, error) {
	return one[T, P](ctx, p.client, read(p.path(id), nil))
}

// Add adds a part and returns it with its id.
func (p Parts[T, P]) Add(ctx context.Context, part T, w Write) (T, error) {
	return one[T, P](ctx, p.client, write(http.MethodPost, path("assets", p.asset, p.name), part, w))
}

// Patch changes the named fields of a part and returns the part.
func (p Parts[T, P]) Patch(ctx context.Context, id string, change Fields, w Write) (T, error) {
	return one[T, P](ctx, p.client, write(http.MethodPatch, p.path(id), change, w))
}

func (p Parts[T, P]) path(id string) string { return path("assets", p.asset, p.name, id) }

// Documents are the documents of an asset (docs/contract.md, "Document versions").
type Documents struct {
	Parts[Document, *Document]
}

// Versions reads all versions of all documents.
func (d Documents) Versions(ctx context.Context) ([]Document, error) {
	return d.list(ctx, url.Values{"all": {"1"}})
}

// AddVersion adds a version of a document and returns it.
func (d Documents) AddVersion(ctx context.Context, id string, version Document, w Write) (Document, error) {
	return one[Document](ctx, d.client, write(http.MethodPut, d.path(id), version, w))
}

// Download returns the address of one version of a document: the version whose URL contains the argument `key`. For a
// file of the registry, the address is valid for 300 s, even if the file is not public yet.
func (d Documents) Download(ctx context.Context, id, key string) (string, error) {
	r := read(d.path(id), url.Values{"download": {key}})
	r.redirected = true
	got, err := d.client.send(ctx, r)
	if err != nil {
		return "", err
	}
	address := got.header.Get("Location")
	if address == "" {
		return "", errors.New("the answer names no address of the document")
	}
	return address, nil
}

// RelatedProcesses are the related processes of an asset.
type RelatedProcesses struct {
	Parts[RelatedProcess, *RelatedProcess]
}

// Remove removes a related process.
func (p RelatedProcesses) Remove(ctx context.Context, id string, w Write) error {
	_, err := p.client.send(ctx, write(http.MethodDelete, p.path(id), nil, w))
	return err
}
