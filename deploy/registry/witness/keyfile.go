package witness

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"asset-registry/shared/durable"
	"asset-registry/shared/translog"
)

// ReadKey reads the secret key of a witness from a file. If the file does not exist and name is not empty,
// ReadKey makes a key with this name and writes it to the file, which only its owner can read.
func ReadKey(file, name string) (translog.Key, error) {
	key, err := readKey(file)
	if errors.Is(err, fs.ErrNotExist) && name != "" {
		if err := makeKey(file, name); err != nil {
			return translog.Key{}, fmt.Errorf("make the key of the witness: %w", err)
		}
		key, err = readKey(file)
	}
	if err != nil {
		return translog.Key{}, fmt.Errorf("read the key of the witness: %w", err)
	}
	if public := key.Public(); public.Use() != translog.ForWitness || name != "" && public.Name() != name {
		return translog.Key{}, fmt.Errorf("%s holds the key of %q, want one of the witness %q", file, public.Name(), name)
	}
	return key, nil
}

func readKey(file string) (translog.Key, error) {
	r, err := os.Open(file)
	if err != nil {
		return translog.Key{}, err
	}
	text, err := io.ReadAll(io.LimitReader(r, 4096))
	if err := errors.Join(err, r.Close()); err != nil {
		return translog.Key{}, err
	}
	return translog.ParseKey(strings.TrimSpace(string(text)))
}

// makeKey writes a new key, completely or not at all. If two processes make the file at the same time, the first
// file stays.
func makeKey(file, name string) error {
	key, err := translog.GenerateKey(translog.ForWitness, name)
	if err != nil {
		return err
	}
	if err := durable.Create(file, []byte(key.Secret()+"\n")); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
