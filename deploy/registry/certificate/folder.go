package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
)

// The files of one authority. Each authority has its own directory, so that a certificate of a test authority is
// never used in place of a certificate of the real authority.
const (
	accountFile     = "account.key"
	certificateFile = "certificate.pem" // has the key and the chain, so that they always match
)

// FileForm is a regular expression for the names of all files, relative to the directory that was passed to Open.
const FileForm = `[a-z0-9.-]+/(?:account\.key|certificate\.pem)`

// folder is the directory of one authority.
type folder string

var notInNames = regexp.MustCompile(`[^a-z0-9.-]+`)

func folderOf(dir, directory string) folder {
	name := "authority"
	if u, err := url.Parse(directory); err == nil && u.Host != "" {
		name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(u.Host), "-"), ".")
	}
	return folder(filepath.Join(dir, name))
}

func (f folder) file(name string) string { return filepath.Join(string(f), name) }

// create creates the directory.
func (f folder) create() error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	parent := filepath.Dir(string(f))
	return errors.Join(durable.SyncDirectory(parent), durable.SyncDirectory(filepath.Dir(parent)))
}

// account returns the key of the account. If there is no key yet, it makes one.
func (f folder) account() (crypto.Signer, error) {
	text, err := os.ReadFile(f.file(accountFile))
	if errors.Is(err, fs.ErrNotExist) {
		key, text, err := newKey()
		if err != nil {
			return nil, err
		}
		if err := f.create(); err != nil {
			return nil, err
		}
		return key, durable.WriteFile(f.file(accountFile), text)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is damaged: remove it, and a new account is made", f.file(accountFile))
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	return key, errs.In(err, "%s is damaged: remove it, and a new account is made", f.file(accountFile))
}

// newKey returns a new key, and the key as PEM.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// certificate returns the stored certificate, or nil if none is stored for the host.
func (f folder) certificate(host string) (*tls.Certificate, error) {
	text, err := os.ReadFile(f.file(certificateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return read(text, host)
}

// keep stores a key and the chain of its certificate, and returns them as a certificate.
func (f folder) keep(key []byte, chain [][]byte, host string) (*tls.Certificate, error) {
	text := key
	for _, der := range chain {
		text = append(text, blockOf(der)...)
	}
	got, err := read(text, host)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the authority: %w", err)
	}
	if err := f.create(); err != nil {
		return nil, err
	}
	return got, durable.WriteFile(f.file(certificateFile), text)
}

// blockOf returns a certificate as PEM.
func blockOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// read parses a key and a chain. It refuses a certificate that is not valid for the host now.
func read(text []byte, host string) (*tls.Certificate, error) {
	got, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, err
	}
	if err := got.Leaf.VerifyHostname(host); err != nil {
		return nil, err
	}
	if now := time.Now(); now.Before(got.Leaf.NotBefore.Add(-time.Hour)) || now.After(got.Leaf.NotAfter) {
		return nil, fmt.Errorf("it is valid from %s to %s only", got.Leaf.NotBefore, got.Leaf.NotAfter)
	}
	return &got, nil
}
