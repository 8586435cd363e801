// Package filelink makes and reads the addresses of files, and the signatures that go with
// them (docs/files.md, "Addresses").
package filelink

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/keyring"
)

const (
	// Lifetime is the time for which a signed address permits reading.
	Lifetime = 300 * time.Second
	// grace is the maximum difference between the clocks of two machines.
	grace = 60 * time.Second
)

// The paths of files. Files are read below GetPath, and sent below UploadPath.
const (
	GetPath    = "/get"
	UploadPath = "/upload"
	// RemovedPath lists the files that were taken down. No file has the id "removed".
	RemovedPath = GetPath + "/removed"
)

// The parameters of an address.
const (
	keyParameter       = "KeyID"
	signatureParameter = "Signature"
	expiresParameter   = "Expires"
)

// purpose is a kind of signature. It is a part of the signed text, so a signature for one purpose is not valid
// for another one.
type purpose string

const (
	toBind   purpose = "bind"
	toUpload purpose = "upload"
	toRead   purpose = "read"
)

// Signer signs addresses with the current secret, and verifies them with every secret. It
// is safe for concurrent use.
type Signer struct{ keys []keyring.Key }

// NewSigner returns a signer with the secrets that all services of one registry share. It returns an error if
// the ring has faults.
func NewSigner(secrets keyring.Ring) (*Signer, error) {
	if err := secrets.Check(); err != nil {
		return nil, err
	}
	keys, err := secrets.Derive("addresses of files")
	if err != nil {
		return nil, err
	}
	return &Signer{keys}, nil
}

// Bind returns the parameters that permit a document with this MD5, 32 hexadecimal digits, to refer to a file.
func (s *Signer) Bind(id, md5 string) url.Values { return s.sign(toBind, id, md5) }

// Upload returns the parameters that permit sending the bytes of a file.
func (s *Signer) Upload(id string) url.Values { return s.sign(toUpload, id, "") }

// Read returns the parameters that permit reading a file for Lifetime from now on.
func (s *Signer) Read(id string, now time.Time) url.Values {
	expires := strconv.FormatInt(now.Add(Lifetime).Unix(), 10)
	q := s.sign(toRead, id, expires)
	q.Set(expiresParameter, expires)
	return q
}

// CheckBind returns a fault of kind Forbidden unless q has the parameters that Bind returned.
func (s *Signer) CheckBind(id, md5 string, q url.Values) error { return s.check(toBind, id, md5, q) }

// CheckUpload returns a fault of kind Forbidden unless q has the parameters that Upload returned.
func (s *Signer) CheckUpload(id string, q url.Values) error { return s.check(toUpload, id, "", q) }

// CheckRead returns a fault of kind Forbidden if q lacks the parameters that Read returned, or if the time for reading
// has expired.
func (s *Signer) CheckRead(id string, q url.Values, now time.Time) error {
	expires := q.Get(expiresParameter)
	at, err := strconv.ParseInt(expires, 10, 64)
	left := time.Unix(at, 0).Sub(now)
	if err == nil && left < -grace {
		return refusal(expiresParameter, "Request has expired")
	}
	if err := s.check(toRead, id, expires, q); err != nil {
		return err
	}
	if left > Lifetime+grace { // no link lasts so long: a wrong clock has signed it
		return refusal(expiresParameter, "Request has expired")
	}
	return nil
}

func (s *Signer) sign(p purpose, id, about string) url.Values {
	current := s.keys[0]
	return url.Values{
		signatureParameter: {base64.RawURLEncoding.EncodeToString(mac(current.Key, p, id, about))},
		keyParameter:       {current.Name},
	}
}

// check verifies a signature. If the parameters do not name a key, check uses the current key.
func (s *Signer) check(p purpose, id, about string, q url.Values) error {
	name := s.keys[0].Name
	if q.Has(keyParameter) {
		name = q.Get(keyParameter)
	}
	for _, k := range s.keys {
		if k.Name != name {
			continue
		}
		if !q.Has(signatureParameter) {
			return refusal(signatureParameter, "Not Found")
		}
		signature, err := base64.RawURLEncoding.DecodeString(q.Get(signatureParameter))
		if err != nil {
			return refusal(signatureParameter, "Signature invalid")
		}
		if !hmac.Equal(signature, mac(k.Key, p, id, about)) {
			return refusal(signatureParameter, "Signature does not match")
		}
		return nil
	}
	return refusal(keyParameter, "Key Id does not exist")
}

func mac(key []byte, p purpose, id, about string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(string(p) + "\x00" + id + "\x00" + about))
	return m.Sum(nil)
}

func refusal(parameter, says string) error {
	return fault.New(fault.Forbidden, fault.URL, parameter, "%s", says)
}

// Base is the public address of a registry, without a slash at its end. Addresses of files
// begin with it. An empty Base has no files.
type Base string

// Address returns the address of a file.
func (b Base) Address(id string) string { return string(b) + GetPath + "/" + id }

// UploadAddress returns the address to which the bytes of a file are sent.
func (b Base) UploadAddress(id string) string { return string(b) + UploadPath + "/" + id }

// Illustration is a type of documents. Small pictures are made only of the files of these documents.
const Illustration = "illustration"

// pictureTypes has the names that types of pictures have, with the name that all browsers know.
var pictureTypes = map[string]string{
	"image/jpeg": "image/jpeg", "image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg",
	"image/png": "image/png", "image/x-png": "image/png", "image/apng": "image/png",
	"image/vnd.mozilla.apng": "image/png", "image/gif": "image/gif", "image/webp": "image/webp",
}

// PictureType returns the usual name of a type of pictures, or "" for another media type. Browsers show pictures of
// these types, and small versions are made of them.
func PictureType(media string) string { return pictureTypes[media] }

// IsPicture reports whether a media type is one of pictures.
func IsPicture(media string) bool { return PictureType(media) != "" }

// PictureOf returns the id of a document's file if small pictures are made of that file. It returns "" if the
// document is no illustration. It also returns "" if the file is not the registry's, has not come yet or is no
// picture. PictureOf does not check whether the file was removed or the making of pictures failed.
func PictureOf(documentType, format, sha256, address string) string {
	if documentType != Illustration || !IsPicture(format) {
		return ""
	}
	if id, isKept := (Document{URL: address, SHA256: sha256}).File(); isKept {
		return id
	}
	return ""
}

// The longer sides of the pictures that are made of a file, in pixels (docs/files.md, "Pictures").
const (
	SmallPicture = 320
	LargePicture = 1200
)

// Picture returns the address of a small version of the picture file at an address. For a path it returns a
// path.
func Picture(address string, side int) string { return address + "/" + strconv.Itoa(side) }

// Parse returns the id of the file that an address names, and the parameters of the address. isOurs reports
// whether the address is below the address of this registry's files, in whatever spelling. If such an address
// names no file, id is empty.
func (b Base) Parse(address string) (id string, q url.Values, isOurs bool) {
	u, err := url.Parse(address)
	own, ownErr := url.Parse(string(b) + GetPath + "/")
	if b == "" || err != nil || ownErr != nil || place(u) != place(own) {
		return "", nil, false
	}
	id, isBelow := strings.CutPrefix(path.Clean("/"+u.Path), own.Path)
	if !isBelow {
		return "", nil, false
	}
	if !IsID(id) {
		id = ""
	}
	return id, u.Query(), true
}

// place returns scheme, host and port of an address in one spelling.
func place(u *url.URL) string {
	// The function url.Parse has made the scheme lower case.
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) + ":" + port
}

// idLength is the number of digits of an id.
const idLength = 32

// IsID reports whether a text has the form of a file's id: 32 lower-case hexadecimal digits. An MD5 has the
// same form.
func IsID(text string) bool {
	return len(text) == idLength && strings.Trim(text, "0123456789abcdef") == ""
}

// Document has the facts about a file that a document of an asset states.
type Document struct {
	URL    string
	Hash   string // "md5:" and 32 hexadecimal digits, or a hash of another kind
	SHA256 string // "": the registry does not keep the file, or its bytes have not come
	Size   int64
}

// File returns the id of the file that a document names. isKept is false if the registry does not keep the file,
// or if the bytes of the file have not come. File sees this from the SHA-256 of the document, which the registry
// sets only for the bytes that it keeps.
func (d Document) File() (id string, isKept bool) {
	id = path.Base(d.URL)
	return id, d.SHA256 != "" && IsID(id)
}

// Documents returns the documents of an asset, also the documents of its parts.
func Documents(asset []byte) (found []Document, err error) {
	var value any
	if err := json.Unmarshal(asset, &value); err != nil {
		return nil, err
	}
	var walk func(value any) error
	walk = func(value any) error {
		switch v := value.(type) {
		case []any:
			for _, element := range v {
				if err := walk(element); err != nil {
					return err
				}
			}
		case map[string]any:
			for name, element := range v {
				if err := walk(element); err != nil {
					return err
				}
				if _, isList := element.([]any); !isList || name != "documents" {
					continue
				}
				text, err := json.Marshal(element)
				if err != nil {
					return err
				}
				var documents []Document
				if err := json.Unmarshal(text, &documents); err != nil {
					return fmt.Errorf("its documents: %w", err)
				}
				found = append(found, documents...)
			}
		}
		return nil
	}
	return found, walk(value)
}
