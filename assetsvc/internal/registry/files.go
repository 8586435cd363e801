package registry

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
	"asset-registry/shared/filesapi"
	"asset-registry/shared/identity"
)

// Files keeps the files of documents.
type Files interface {
	// Claim keeps a file for another day, so that a document can be committed that names it. It
	// returns a fault if the document may not.
	Claim(ctx context.Context, id string, c filesapi.Claim) (filesapi.Claimed, error)
}

// binding is how documents are bound to files of this registry.
type binding struct {
	files Files // nil: all addresses are foreign
	base  filelink.Base
	links *filelink.Signer
	now   func() time.Time // the clock by which links end
}

// WithFiles returns a registry whose documents may name files, whose addresses begin with a
// base. Links to read them end by the clock now, which the file service has too; the store's clock may
// differ.
func (r *Registry) WithFiles(files Files, base filelink.Base, links *filelink.Signer, now func() time.Time) *Registry {
	with := *r
	with.binding = binding{files, base, links, now}
	return &with
}

// md5Prefix begins a hash that files have.
const md5Prefix = "md5:"

// bind claims the file that a new version of a document names, if that is a file of this
// registry. It returns the fields with the address that is stored, and the file if its bytes have
// come. A caller who may not change the document learns nothing about the file.
func (r *Registry) bind(
	ctx context.Context, by identity.Identity, at Place, token string, fields record.Object,
) (record.Object, asset.File, error) {
	none := asset.File{}
	if r.binding.files == nil || !at.Part.Versioned() {
		return fields, none, nil
	}
	id, query, isOurs := r.binding.base.Parse(fields.Text("url"))
	if !isOurs {
		return fields, none, nil
	}
	if err := r.Admit(ctx, by, at, token); err != nil {
		return nil, none, err
	}
	if id == "" {
		return nil, none, noFile()
	}
	hash := strings.ToLower(fields.Text("hash"))
	bound := fields.With("url", r.binding.base.Address(id)).With("hash", hash)
	switch document, err := r.sameDocument(ctx, at, bound); {
	case err != nil:
		return nil, none, err
	case document != nil: // its file is kept for ever
		return bound, asset.FileIn(document), nil
	}
	md5, isMD5 := strings.CutPrefix(hash, md5Prefix)
	if !isMD5 || !filelink.IsID(md5) {
		return nil, none, fault.New(fault.Invalid, fault.Body, "hash",
			"A document with a file of this registry needs the hash of the file, as the upload returned it: md5:...")
	}
	file, err := r.claim(ctx, by, id, md5, query)
	return bound, file, err
}

// claim claims a file for a document whose address has a query. It returns the file if its bytes
// have come.
func (r *Registry) claim(
	ctx context.Context, by identity.Identity, id, md5 string, query url.Values,
) (asset.File, error) {
	claim := filesapi.Claim{MD5: md5, Broker: by.Broker}
	if query.Has("Signature") {
		if err := r.binding.links.CheckBind(id, md5, query); err != nil {
			return asset.File{}, inURL(err)
		}
		claim.Signed = true
	}
	claimed, err := r.binding.files.Claim(ctx, id, claim)
	if fault.KindOf(err) == fault.NotFound {
		return asset.File{}, noFile()
	}
	if err != nil {
		return asset.File{}, fmt.Errorf("claim file %s: %w", id, err)
	}
	return asset.File{SHA256: claimed.SHA256, Size: claimed.Size}, nil
}

// Complete lets the documents of an asset that name a file say what it is. Its bytes came after
// these documents. The author of the change is the key that uploaded the file. Without a document
// that lacks this, nothing changes. It returns a fault of kind NotFound if there is no such asset.
func (r *Registry) Complete(ctx context.Context, by identity.Identity, id string, c filesapi.Completion) error {
	if by.Role != identity.Service || r.binding.files == nil {
		return forbidden("only services complete documents")
	}
	_, err := r.save(ctx, id, step{
		ask: func(Record) error { return nil },
		next: func(stored Record) (Record, error) {
			before, err := decode(stored)
			if err != nil {
				return Record{}, err
			}
			next := before.WithFile(r.binding.base.Address(c.File), asset.File{SHA256: c.SHA256, Size: c.Size})
			if next.Equal(before) {
				return Record{}, nil
			}
			return r.changed(stored, before, next, stored.Sealed, Author{c.Broker, c.KeyID, asset.Owner})
		},
	})
	return err
}

func noFile() error { return fault.New(fault.Invalid, fault.Body, "url", "There is no such file.") }

// inURL returns the fault of a signature as one of the document's url.
func inURL(err error) error {
	return fault.New(fault.Forbidden, fault.Body, "url",
		"The signature does not permit this document to name the file: %v", err)
}

// sameDocument returns a version of a document that has the same file as fields, or nil.
func (r *Registry) sameDocument(ctx context.Context, at Place, fields record.Object) (record.Object, error) {
	versions, _, err := r.ReadParts(ctx, at, asset.AllVersions)
	if err != nil {
		return nil, err
	}
	for _, element := range versions {
		version, _ := element.(record.Object)
		if version.Text("url") == fields.Text("url") && version.Text("hash") == fields.Text("hash") {
			return version, nil
		}
	}
	return nil, nil
}

// Unchecked reports whether a document has a hash that nobody has compared with a file, because the
// file is not one of this registry.
func (r *Registry) Unchecked(document record.Object) bool {
	if r.binding.files != nil {
		if id, _, isOurs := r.binding.base.Parse(document.Text("url")); isOurs && id != "" {
			return false
		}
	}
	return document.Text("hash") != ""
}

// download returns where the bytes of a document are now: for a file of this registry, an
// address that also works before the file has become public.
func (r *Registry) download(address string) string {
	if r.binding.files == nil {
		return address
	}
	id, _, isOurs := r.binding.base.Parse(address)
	if !isOurs || id == "" { // it is older than the rule
		return address
	}
	return r.binding.base.Address(id) + "?" + r.binding.links.Read(id, r.binding.now()).Encode()
}
