package registry

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/errs"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
	"asset-registry/shared/filesapi"
	"asset-registry/shared/identity"
)

// Place is the address of a part of an asset.
type Place struct {
	Asset string // id
	Part  asset.Part
	ID    string // id of the part; "": all parts of the kind, or a new part
}

// selection selects the part. For a new part it selects none.
func (p Place) selection() asset.Selection {
	if p.ID == "" {
		return asset.Selection{}
	}
	return asset.Selection{Part: p.Part, ID: p.ID}
}

// ReadPart returns a part and the position of its asset, or a fault of kind
// NotFound.
func (r *Registry) ReadPart(ctx context.Context, at Place) (record.Object, int64, error) {
	a, stored, err := r.look(ctx, at.Asset, at.selection())
	if err != nil {
		return nil, 0, err
	}
	part, err := a.Part(at.Part, at.ID)
	return part, stored.Position, err
}

// ReadParts returns the parts of one kind that an asset has, and the position of the asset.
func (r *Registry) ReadParts(ctx context.Context, at Place, s asset.Scope) (record.List, int64, error) {
	a, stored, err := r.look(ctx, at.Asset, asset.Selection{Part: at.Part, Scope: s})
	if err != nil {
		return nil, 0, err
	}
	return a.Parts(at.Part, s), stored.Position, nil
}

// Download returns the URL of one version of a part. The argument `key` says which version.
func (r *Registry) Download(ctx context.Context, at Place, key string) (string, error) {
	a, _, err := r.look(ctx, at.Asset, at.selection())
	if err != nil {
		return "", err
	}
	to, err := a.Download(at.Part, at.ID, key)
	if err != nil {
		return "", err
	}
	return r.download(to), nil
}

// ChangePart adds, changes or removes a part, depending on the verb. It returns the part (nil if it was removed) and
// the new position of the asset. The parameter `token` is the owner token, or "" if the caller sent none.
func (r *Registry) ChangePart(
	ctx context.Context, by identity.Identity, at Place, token string, verb asset.Verb, in Input,
) (record.Object, int64, error) {
	var part record.Object
	var file asset.File
	if verb == asset.Add || verb == asset.Replace { // other verbs do not change the file
		var err error
		if in.Fields, file, err = r.bind(ctx, by, at, token, in.Fields); err != nil {
			return nil, 0, err
		}
	}
	var ignored []string
	apply := func(current asset.Asset, _ int64, as asset.Caller) (next asset.Asset, err error) {
		next, part, err = r.rules.ChangePart(current, asset.PartChange{
			Part:    at.Part,
			ID:      at.ID,
			Verb:    verb,
			Fields:  in.Fields,
			File:    file,
			Caller:  as,
			Version: in.Version,
			Now:     r.now(),
			NewID:   newID,
		})
		ignored = next.Ignored()
		return next, err
	}
	changed, err := r.change(ctx, by, at.Asset, token, in.Guard, apply)
	if err != nil {
		return nil, 0, err
	}
	in.tell(ignored)
	return part, changed.Position, nil
}

// Admit refuses a caller who is not allowed to change a part. It is for a request whose body cannot be read: the
// refusal must come before the fault of the body. The owner token may be in the unreadable body. So a caller without a
// token counts as the owner if the key is a key of the owner's broker.
func (r *Registry) Admit(ctx context.Context, by identity.Identity, at Place, token string) error {
	a, stored, err := r.look(ctx, at.Asset, at.selection())
	if err != nil {
		return err
	}
	as, err := r.standing(ctx, by, a, token, stored.Sealed)
	if err != nil {
		return err
	}
	if token == "" && by.Broker == as.owner {
		as.role = asset.Owner
	}
	caller := asset.Caller{Role: as.role, NotOwner: as.notOwner(by, token, tokenOfWrite)}
	return withinTest(by, a.Admit(caller, at.Part, at.ID), a)
}

// Files keeps the files that documents refer to.
type Files interface {
	// Claim keeps a file for another day. Within it the caller stores a document that refers to the file. It returns
	// a fault if the document is not allowed to refer to the file.
	Claim(ctx context.Context, id string, c filesapi.Claim) (filesapi.Claimed, error)
}

// binding has everything that is needed to bind documents to files of this registry.
type binding struct {
	files Files // nil: this registry keeps no files, and all addresses lead elsewhere
	base  filelink.Base
	links *filelink.Signer
	now   func() time.Time // the clock that decides when links expire
}

// WithFiles returns a registry whose documents may refer to its own files. The addresses of these files begin with
// the given base. The given clock (now) decides when links to read the files expire. The file service must use the
// same clock, which may differ from the store's clock.
func (r *Registry) WithFiles(files Files, base filelink.Base, links *filelink.Signer, now func() time.Time) *Registry {
	with := *r
	with.binding = binding{files, base, links, now}
	return &with
}

// md5Prefix is the beginning of the hash of every file of this registry.
const md5Prefix = "md5:"

// bind claims the file that a new version of a document refers to, if it is a file of this registry. It returns the
// fields with the address that is stored, and the file if its bytes have been uploaded. A caller who is not allowed to
// change the document learns nothing about the file.
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
	case document != nil: // a stored version has this file, so the file is kept already
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

// claim claims a file for a document. The parameter `query` has the query parameters of the address in the document.
// The result is the file if its bytes have been uploaded.
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
	return asset.File{SHA256: claimed.SHA256, Size: claimed.Size}, errs.In(err, "claim file %s", id)
}

// Complete adds the hash and the size of a file to all documents of an asset that refer to it. It is for a file
// that was uploaded after these documents were stored. The author of the change is the key that uploaded the
// file. If no document lacks these fields, nothing changes. Complete returns a fault of kind NotFound if the
// asset does not exist.
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

// inURL returns a fault about the signature in the url of a document.
func inURL(err error) error {
	return fault.New(fault.Forbidden, fault.Body, "url",
		"The signature does not permit this document to name the file: %v", err)
}

// sameDocument returns a stored version of the document that has the same url and hash as the given fields. If no
// version has them, it returns nil.
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

// Unchecked reports whether a document has a hash that the registry has not compared with a file, because the
// file is kept elsewhere.
func (r *Registry) Unchecked(document record.Object) bool {
	if r.binding.files != nil {
		if id, _, isOurs := r.binding.base.Parse(document.Text("url")); isOurs && id != "" {
			return false
		}
	}
	return document.Text("hash") != ""
}

// download returns the address from which the bytes of a document can be read now. For a file of this registry,
// this address works even before the file is public.
func (r *Registry) download(address string) string {
	if r.binding.files == nil {
		return address
	}
	id, _, isOurs := r.binding.base.Parse(address)
	if !isOurs || id == "" { // the address is not ours, or it has no id of a file (only in old documents)
		return address
	}
	return r.binding.base.Address(id) + "?" + r.binding.links.Read(id, r.binding.now()).Encode()
}

// maxHeld is the largest step back of a clock that Held hides.
const maxHeld = time.Second

// Held returns a new clock that follows the given clock, but hides its small steps back. While the given clock is up
// to a second behind the latest time that the new clock has returned, the new clock returns this latest time again.
// So a time that is read before a write is never after a position that is read during the write. If the given
// clock steps back further, it was wrong before, and the new clock follows the step. The new clock is safe for
// concurrent use if the given clock is.
func Held(now func() time.Time) func() time.Time {
	var mu sync.Mutex
	var latest time.Time
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		t := now()
		if back := latest.Sub(t); back <= 0 || back > maxHeld {
			latest = t
		}
		return latest
	}
}
