package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/gateway"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
)

// Rotated tells what a rotation has done.
type Rotated struct {
	Records int // token records that were sealed anew
	Entries int // entries of the audit log that were
	Secrets int // how many are good from now on
}

// RotateSecret gives a data directory a new secret, and seals all that is stored
// with it. The old one stays good beside it, for what is not stored, until
// RotateSecret is told to finish: then it is removed. The registry must not run.
// Interrupted anywhere, the same call may be repeated: a rotation that was begun
// goes on with the secret that it has made.
func RotateSecret(ctx context.Context, dir string, finish bool) (done Rotated, err error) {
	if _, err := os.Stat(filepath.Join(dir, formatFile)); errors.Is(err, fs.ErrNotExist) {
		return done, fmt.Errorf("%s is no data directory of the registry", dir)
	}
	secrets, err := openData(dir)
	if err != nil {
		return done, err
	}
	begun := len(secrets) > 1
	if finish && !begun {
		return done, errors.New("there is no rotation to finish: the data directory has one secret")
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if !begun {
		if secrets, err = begin(ctx, dir, secrets, log); err != nil {
			return done, err
		}
	}
	auth, err := openAuth(ctx, dir, secrets, log)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, auth.Close()) }()
	if done, err = reseal(ctx, dir, secrets, auth, log); err != nil {
		return done, err
	}
	done.Secrets = len(secrets)
	if finish {
		done.Secrets = 1
		return done, replaceFile(dir, secretFile, string(secrets.Current()))
	}
	return done, nil
}

func openAuth(ctx context.Context, dir string, secrets keyring.Ring, log *slog.Logger) (*authsvc.Server, error) {
	return authsvc.New(ctx, authsvc.Config{Store: "file:" + filepath.Join(dir, tokensFile), Secrets: secrets, Log: log})
}

// begin makes a new secret and keeps it beside the old one, unless another
// process has the data. No store may be opened with the new one before: the
// store would then belong to a secret that nobody has kept.
func begin(ctx context.Context, dir string, old keyring.Ring, log *slog.Logger) (keyring.Ring, error) {
	auth, err := openAuth(ctx, dir, old, log)
	if err != nil {
		return nil, err
	}
	both := append(keyring.Ring{[]byte(newSecret())}, old...)
	return both, errors.Join(keepBoth(dir, both), auth.Close())
}

// keepBoth stores both secrets, after it has pinned the SERVER_ID that was made
// of the old one.
func keepBoth(dir string, secrets keyring.Ring) error {
	if err := writeFile(dir, serverIDFile, gateway.ServerIDOf(secrets[1])); err != nil { // one that is there stays
		return err
	}
	return replaceFile(dir, secretFile, string(secrets[0])+"\n"+string(secrets[1]))
}

func reseal(ctx context.Context, dir string, secrets keyring.Ring, auth *authsvc.Server, log *slog.Logger) (done Rotated, err error) {
	found, err := assetsvc.Reseal(ctx, assetsvc.Config{
		Store: "file:" + filepath.Join(dir, assetsFile), Auth: httpserver.InProcess(auth.Handler()), Secrets: secrets, Log: log,
	})
	if err != nil {
		return done, err
	}
	done.Records = found.Anew
	if found.Foreign > 0 {
		return done, fmt.Errorf("%d token records are sealed with a secret that %s does not have: put it there as one line more", found.Foreign, filepath.Join(dir, secretFile))
	}
	done.Entries, err = auth.Reseal(ctx)
	return done, err
}
