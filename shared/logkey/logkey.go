// Package logkey keeps the secret keys of a public log in a file (docs/log.md,
// "Origin and keys"). Each line holds one key in the form of signed notes, the
// newest first. All keys have one name, the log's origin.
package logkey

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
	"asset-registry/shared/translog"
)

const (
	// MaxKeys is the maximum number of keys that a file may have. Each of them signs each
	// checkpoint.
	MaxKeys = 16
	maxFile = 64 << 10 // maximum number of bytes of a file of keys
)

// Read returns the keys of a file, the newest first. There is at least one, and at
// most MaxKeys. Empty lines are ignored. An error about a key has the cause
// translog.ErrKey, names the file and the line, and never shows a secret. Without
// the file, the error has the cause fs.ErrNotExist.
func Read(file string) ([]translog.Key, error) {
	r, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the log's keys: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read the log's keys: %w", err)
	}
	keys, err := parse(text)
	return keys, errs.In(err, "read the log's keys: %s", file)
}

// parse reads the content of a file of keys.
func parse(text []byte) ([]translog.Key, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("%w: the file has more than %d bytes", translog.ErrKey, maxFile)
	}
	var keys []translog.Key
	lines := map[translog.PublicKey]int{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, err := translog.ParseKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		public := key.Public()
		switch before := lines[public]; {
		case public.Use() != translog.ForLog:
			err = errors.New("the key is not one of a log")
		case before > 0:
			err = fmt.Errorf("the key stands on line %d too", before)
		case len(keys) > 0 && public.Name() != keys[0].Public().Name():
			err = fmt.Errorf("the key has the name %.80q, the first one %.80q", public.Name(), keys[0].Public().Name())
		case len(keys) == MaxKeys:
			err = fmt.Errorf("more than %d keys", MaxKeys)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w: %w", number, translog.ErrKey, err)
		}
		lines[public] = number
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: the file has none", translog.ErrKey)
	}
	return keys, nil
}

// format returns the content of a file of keys.
func format(keys []translog.Key) []byte {
	var text bytes.Buffer
	for _, key := range keys {
		text.WriteString(key.Secret() + "\n")
	}
	return text.Bytes()
}

// NewOrigin returns an origin for a new log of the registry at an address, such as "https://registry.example":
// the address without its scheme, "/log/" and eight random hexadecimal digits. So no two logs have the same
// origin, even if they begin with the same data.
func NewOrigin(address string) string {
	if _, after, found := strings.Cut(address, "://"); found {
		address = after
	}
	digits := make([]byte, 4)
	rand.Read(digits) // never fails
	return strings.TrimSuffix(address, "/") + "/log/" + hex.EncodeToString(digits)
}

// ReadOrCreate returns the keys of a file. If the file does not exist, ReadOrCreate makes it with one key for a
// new log. The name of the log comes from the address of the registry (NewOrigin).
func ReadOrCreate(file, address string) ([]translog.Key, error) {
	keys, err := Read(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	if err := Create(file, NewOrigin(address)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return Read(file)
}

// Create makes a key for a log with an origin, and writes it into a new file, which
// only the user may read. The origin is the log's address without its scheme and
// without a slash at the end. If the file exists, it stays as it is, and the error
// has the cause fs.ErrExist. If several processes create the file at the same time,
// one succeeds.
func Create(file, origin string) error {
	if strings.Contains(origin, "://") || strings.HasSuffix(origin, "/") {
		return fmt.Errorf("make the log's key: the origin %.80q must be an address without https:// "+
			"and without a slash at the end, such as registry.example/log", origin)
	}
	key, err := translog.GenerateKey(translog.ForLog, origin)
	if err == nil {
		err = durable.Create(file, format([]translog.Key{key}))
	}
	return errs.In(err, "make the log's key")
}

// Rotate makes a new key with the same name as the others, and puts it in front of them. The file is replaced
// completely or not at all, and keeps its mode and its owner. Only one process may change a file at a time.
func Rotate(file string) error {
	keys, err := Read(file)
	if err != nil {
		return err
	}
	if len(keys) == MaxKeys {
		return fmt.Errorf("%s has %d keys, the most that a log may have: retire the old ones", file, MaxKeys)
	}
	key, err := translog.GenerateKey(translog.ForLog, keys[0].Public().Name())
	if err != nil {
		return err
	}
	return replace(file, append([]translog.Key{key}, keys...))
}

// Retire removes all keys but the newest. It changes the file as Rotate does.
func Retire(file string) error {
	keys, err := Read(file)
	if err != nil || len(keys) == 1 {
		return err
	}
	return replace(file, keys[:1])
}

func replace(file string, keys []translog.Key) error {
	return errs.In(durable.Replace(file, format(keys)), "write the log's keys")
}
