package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"asset-registry/filesvc"
	"asset-registry/shared/durable"
	"asset-registry/shared/errs"
	"asset-registry/shared/keyring"
)

// placeFile has the address of the bucket with the bytes of files. Without this file, the bytes are in
// filesDirectory. A backup does not contain the address: if two registries used one bucket, each would remove the
// files that only the other registry knows.
const placeFile = "files.bucket"

// placeOf returns the place where a data directory keeps the bytes of files, in the form that package filesvc needs.
func placeOf(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, placeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.Join(dir, filesDirectory), nil
	}
	place := strings.TrimSpace(string(text))
	if err == nil {
		err = checkBucket(place)
	}
	return place, errs.In(err, "read %s", filepath.Join(dir, placeFile))
}

// checkBucket returns what is wrong with the address of a bucket, or nil. It sends nothing.
func checkBucket(address string) error {
	if !filesvc.IsBucket(address) {
		return errors.New("the address of a bucket must be s3+https://HOST/BUCKET")
	}
	return filesvc.CheckPlace(address)
}

// bucketOf returns the address of the bucket of a data directory, or "" if the bytes are in the directory.
func bucketOf(dir string) (string, error) {
	place, err := placeOf(dir)
	if err != nil || !filesvc.IsBucket(place) {
		return "", err
	}
	return place, nil
}

// setPlace records where the bytes of the files of a data directory are. The argument `bucket` is the address of the
// bucket that has them. If it is "", the bytes are in the directory itself.
func setPlace(dir, bucket string) error {
	path := filepath.Join(dir, placeFile)
	if bucket != "" {
		return durable.WriteFile(path, []byte(bucket+"\n"))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.SyncDirectory(dir)
}

// MoveFiles copies the bytes of the files of a data directory to a bucket. If the argument `bucket` is "", it
// copies the bytes from the bucket to the directory. It returns both places. Afterwards the registry uses the new
// place; the bytes at the old place stay. Until all bytes are copied, the registry uses the old place, so MoveFiles
// can be called again after an interruption. The registry must not run.
func MoveFiles(ctx context.Context, dir, bucket string) (done filesvc.Copied, from, to string, err error) {
	store, secrets, err := metadataOf(dir)
	if err != nil {
		return done, "", "", err
	}
	to = filepath.Join(dir, filesDirectory)
	if bucket != "" {
		if err := checkBucket(bucket); err != nil {
			return done, "", "", fmt.Errorf("--to: %w", err)
		}
		to = bucket
	}
	if from, err = placeOf(dir); err != nil || from == to {
		return done, from, to, err
	}
	done, err = filesvc.CopyBytes(ctx, filesvc.Copying{
		Store: store, Secrets: secrets, From: from, To: to,
	})
	if err == nil {
		err = setPlace(dir, bucket)
	}
	return done, from, to, err
}

// metadataOf returns the address of the store with the metadata of the files of a data directory, and the secrets to
// which the store belongs.
func metadataOf(dir string) (store string, secrets keyring.Ring, err error) {
	if err := mustBeOurs(dir, formatFile); err != nil {
		return "", nil, err
	}
	secrets, err = keyring.Read(filepath.Join(dir, secretFile))
	return "file:" + filepath.Join(dir, filesFile), secrets, err
}

// DrawFiles lets the pictures of files be drawn again that were given up, at the next start of the registry
// (filesvc.DrawAgain). It returns the number of files. The registry must not run.
func DrawFiles(ctx context.Context, dir string, ids []string) (files int, err error) {
	store, secrets, err := metadataOf(dir)
	if err != nil {
		return 0, err
	}
	return filesvc.DrawAgain(ctx, store, secrets, ids)
}
