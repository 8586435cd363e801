package registryctl

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

const (
	releaseSums    = "SHA256SUMS" // file of a release that has the checksums of all other files
	maxReleaseSums = 1 << 20      // bytes
)

type verifyRelease struct {
	Dir       string `arg:"" help:"Folder of the release, whole or a part of it."`
	PublicKey string `required:"" placeholder:"KEY" help:"Public key of releases. Get it elsewhere than the release."`
}

// Help returns the long help of the command.
func (verifyRelease) Help() string {
	return `The command checks the signature of SHA256SUMS, and that each file of the folder is the one that was
signed. A file that is absent is left out, so a part of a release can be checked. Use the registryctl that you
have, not the one of the release.`
}

// Run verifies the files. It returns an error if a file differs or was not signed.
func (v verifyRelease) Run(p *program) error {
	signed, by, err := openSums(filepath.Join(v.Dir, releaseSums), v.PublicKey)
	if err != nil {
		return err
	}
	checked, forged := 0, 0
	err = filepath.WalkDir(v.Dir, func(path string, d fs.DirEntry, err error) error {
		name, pathErr := filepath.Rel(v.Dir, path)
		if err := errors.Join(err, pathErr); err != nil || d.IsDir() || name == releaseSums {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch want := signed[filepath.ToSlash(name)]; want {
		case "":
			forged++
			return p.say("%s was not signed", name)
		case fmt.Sprintf("%x", sha256.Sum256(text)):
			checked++
		default:
			forged++
			return p.say("%s is not the file that was signed", name)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case forged > 0:
		return verdict{fmt.Errorf("%d files of %s are not those that were signed", forged, v.Dir)}
	case checked == 0:
		return verdict{fmt.Errorf("%s has no file of the release", v.Dir)}
	}
	return p.note("%d of %d files are here, as %s signed them", checked, len(signed), by)
}

// openSums reads the signed checksums and the name of their signer. The keys of the map are names of files, the
// values are hexadecimal digits.
func openSums(file, key string) (sums map[string]string, by string, err error) {
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return nil, "", errors.New("--public-key must be the whole public key of releases, NAME+ID+KEY")
	}
	text, err := readUpTo(file, maxReleaseSums)
	if err != nil {
		return nil, "", err
	}
	opened, err := note.Open(text, note.VerifierList(verifier))
	if err != nil {
		return nil, "", verdict{fmt.Errorf("verify %s: %w", file, err)}
	}
	sums = map[string]string{}
	for line := range strings.Lines(opened.Text) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		sums[name] = sum
	}
	return sums, verifier.Name(), nil
}
