package registry_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
	"asset-registry/shared/filesapi"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

const base filelink.Base = "https://registry.example"

const (
	fileID = "0123456789abcdef0123456789abcdef"
	md5    = "d41d8cd98f00b204e9800998ecf8427e"
)

// files is a file service that has one file, of the broker "broker".
type files struct {
	claims []filesapi.Claim
	down   bool
	file   filesapi.Claimed // zero: the bytes have not been uploaded
}

func (f *files) Claim(_ context.Context, id string, c filesapi.Claim) (filesapi.Claimed, error) {
	f.claims = append(f.claims, c)
	switch {
	case f.down:
		return filesapi.Claimed{}, fault.New(fault.Unavailable, fault.Body, "url", "down")
	case id != fileID:
		return filesapi.Claimed{}, fault.New(fault.NotFound, fault.URL, "doc_id", "Not Found")
	case c.MD5 != md5:
		return filesapi.Claimed{}, fault.New(fault.Invalid, fault.Body, "hash", "The file has another hash.")
	case !c.Signed && c.Broker != "broker":
		return filesapi.Claimed{}, fault.New(fault.Forbidden, fault.Body, "url", "This file is another broker's.")
	}
	return f.file, nil
}

// openWithFiles returns a registry with one asset, which is pending.
func openWithFiles(t *testing.T) (r *registry.Registry, f *files, links *filelink.Signer, id string) {
	t.Helper()
	r, _, _, id = open(t)
	links = expect.Get(filelink.NewSigner(keyring.Ring{bytes.Repeat([]byte{1}, keyring.MinLength)}))(t)
	f = &files{}
	r = r.WithFiles(f, base, links, time.Now)
	pending := registry.Input{Fields: parse(t, `{"status":"pending"}`)}
	expect.Get(r.Change(t.Context(), owner, id, "token", pending))(t)
	return r, f, links, id
}

func document(t *testing.T, address, hash string) record.Object {
	t.Helper()
	return parse(t, fmt.Sprintf(`{"documentType":"notice","title":"x","url":%q,"hash":%q}`, address, hash))
}

// TestDocumentsAreBoundToFiles adds documents that refer to files (docs/files.md, "Binding"). Each document must be
// added with the expected address, or be refused with the expected fault.
func TestDocumentsAreBoundToFiles(t *testing.T) {
	r, f, links, id := openWithFiles(t)
	at := place(t, id, "documents", "")
	bare, signed := base.Address(fileID), func(q url.Values) string { return base.Address(fileID) + "?" + q.Encode() }
	const foreign = "https://broker.example/x.pdf"
	for _, c := range []struct {
		name          string
		address, hash string
		isDown        bool
		want          string // the fault; "": the document is added
		stored        string
		claims        int
	}{
		{"a foreign address", foreign, "md5:" + md5, false, "", foreign, 0},
		{"the signature", signed(links.Bind(fileID, md5)), "md5:" + md5, false, "", bare, 1},
		{"the same again", bare, "md5:" + md5, true, "", bare, 0},
		{"a hash in upper case", bare, "md5:" + strings.ToUpper(md5), false, "", bare, 0},
		{"another hash", bare, "md5:" + strings.Repeat("0", 32), false, "body/hash", "", 1},
		{"another kind of hash", bare, "sha1:" + strings.Repeat("0", 40), false, "body/hash", "", 0},
		{"a signature for another hash", signed(links.Bind(fileID, fileID)), "md5:" + fileID[:31] + "0", false,
			"body/url", "", 0},
		{"a signature to upload", signed(links.Upload(fileID)), "md5:" + fileID, false, "body/url", "", 0},
		{"no such file", base.Address(md5), "md5:" + md5, false, "body/url", "", 1},
		{"an address of ours that is no file's", base.Address(fileID) + "x", "md5:" + md5, false, "body/url", "", 0},
		{"no file service", bare, "md5:" + fileID, true, "body/url", "", 1},
	} {
		f.claims, f.down = nil, c.isDown
		part, _, err := r.ChangePart(t.Context(), owner, at, "token", asset.Add,
			registry.Input{Fields: document(t, c.address, c.hash)})
		got := strings.Join(places(err), " ")
		if got != c.want || part.Text("url") != c.stored || len(f.claims) != c.claims {
			t.Errorf("%s: got %v, %q and %d claims, want %q, %q and %d claims",
				c.name, err, part.Text("url"), len(f.claims), c.want, c.stored, c.claims)
		}
		expect.Equal(t, r.Unchecked(part), part.Text("url") == foreign, "%s: a hash that nobody compares", c.name)
	}
}

// TestOthersLearnNothingOfFiles lets callers who are not allowed to change the document refer to a file. They must be
// refused before the file is claimed.
func TestOthersLearnNothingOfFiles(t *testing.T) {
	r, f, _, id := openWithFiles(t)
	stranger := identity.Identity{Broker: "stranger", Role: identity.Broker, Levels: "1234"}
	for _, c := range []struct {
		name string
		by   identity.Identity
		at   registry.Place
		verb asset.Verb
		want fault.Kind
	}{
		{"a stranger", stranger, place(t, id, "documents", ""), asset.Add, fault.Forbidden},
		{"no such asset", owner, place(t, strings.Repeat("0", 32), "documents", ""), asset.Add, fault.NotFound},
		{"no such document", owner, place(t, id, "documents", strings.Repeat("0", 32)), asset.Replace, fault.NotFound},
	} {
		_, _, err := r.ChangePart(t.Context(), c.by, c.at, "token", c.verb,
			registry.Input{Fields: document(t, base.Address(md5), "md5:"+md5)})
		if fault.KindOf(err) != c.want || len(f.claims) > 0 {
			t.Errorf("%s: got %v and %d claims, want kind %d and none", c.name, err, len(f.claims), c.want)
		}
	}
}

// TestDownloadsOfFilesAreSigned asks for the download of a document whose file is perhaps not public yet. The
// address must be signed, by the clock of the file service.
func TestDownloadsOfFilesAreSigned(t *testing.T) {
	r, f, links, id := openWithFiles(t)
	at := place(t, id, "documents", "")
	part, _, err := r.ChangePart(t.Context(), owner, at, "token", asset.Add,
		registry.Input{Fields: document(t, base.Address(fileID), "md5:"+md5)})
	expect.OK(t, err)
	at.ID = part.Text("id")
	to := expect.Get(r.Download(t.Context(), at, fileID))(t)
	got, q, isOurs := base.Parse(to)
	if !isOurs || got != fileID || links.CheckRead(fileID, q, time.Now()) != nil {
		t.Errorf("got %s, want a signed address of the file", to)
	}
	day := time.Now().Add(24 * time.Hour) // the file service's clock is a day ahead of the store's
	r = r.WithFiles(f, base, links, func() time.Time { return day })
	to, err = r.Download(t.Context(), at, fileID)
	expect.OK(t, err)
	if _, q, _ := base.Parse(to); links.CheckRead(fileID, q, day) != nil {
		t.Errorf("got %s, want an address that the file service takes by its own clock", to)
	}
}

// TestDocumentsSayWhatTheirFilesAre adds one document before the bytes of its file are uploaded, and one after
// that. In the end, both must have the hash and the size of the file (docs/files.md, D5).
func TestDocumentsSayWhatTheirFilesAre(t *testing.T) {
	r, _, links, id := openWithFiles(t)
	at := place(t, id, "documents", "")
	sum := strings.Repeat("ab", 32)
	add := func(verb asset.Verb, at registry.Place, fields record.Object) record.Object {
		t.Helper()
		part, _, err := r.ChangePart(t.Context(), owner, at, "token", verb, registry.Input{Fields: fields, Version: "2.5"})
		expect.OK(t, err)
		return part
	}
	says := func(what string, part record.Object, want string) {
		t.Helper()
		expect.Equal(t, strings.Trim(fmt.Sprint(part.Get("sha256"), " ", part.Get("size")), "<nil> "), want, "%s", what)
	}
	signed := base.Address(fileID) + "?" + links.Bind(fileID, md5).Encode()
	early := add(asset.Add, at, document(t, signed, "md5:"+md5).With("sha256", "x").With("size", record.Number("9")))
	says("before the bytes", early, "")
	foreign := add(asset.Add, at, document(t, "https://broker.example/y", "md5:"+md5))
	done := filesapi.Completion{File: fileID, SHA256: sum, Size: 12, Broker: "broker", KeyID: "k"}
	expect.Fault(t, r.Complete(t.Context(), owner, id, done), fault.Forbidden, "a broker completes a document")
	service := identity.Identity{Broker: "filesvc", Role: identity.Service}
	for range 2 {
		expect.OK(t, r.Complete(t.Context(), service, id, done))
	}
	expect.Fault(t, r.Complete(t.Context(), service, strings.Repeat("0", 32), done), fault.NotFound, "no such asset")
	another := done
	another.SHA256, another.Size = strings.Repeat("cd", 32), 13
	expect.OK(t, r.Complete(t.Context(), service, id, another))
	at.ID = early.Text("id")
	read := func(what, want string) {
		t.Helper()
		part, _, err := r.ReadPart(t.Context(), at)
		expect.OK(t, err)
		says(what, part, want)
	}
	read("after the bytes, and after others for the same file", sum+" 12")
	at.ID = foreign.Text("id")
	read("a document of another address", "")
	at.ID = early.Text("id")
	changes := expect.Get(r.Revisions(t.Context(), owner, id, "token", 0, 10))(t)
	if len(changes) != 5 { // the creation, the publication, two documents, and the hash and size of one file
		t.Errorf("got %d changes, want 5", len(changes))
	}
	says("the same file again", add(asset.Replace, at, document(t, base.Address(fileID), "md5:"+md5).With("title", "y")),
		sum+" 12")
	says("another address", add(asset.Replace, at, document(t, "https://broker.example/x", "md5:"+md5)), "")
	var f *files
	r, f, links, id = openWithFiles(t)
	f.file = filesapi.Claimed{SHA256: sum, Size: 7}
	signed = base.Address(fileID) + "?" + links.Bind(fileID, md5).Encode()
	says("bytes that came before", add(asset.Add, place(t, id, "documents", ""), document(t, signed, "md5:"+md5)), sum+" 7")
}
