package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/filesvc"
	"asset-registry/gateway"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
)

// Rotated counts what a rotation has done.
type Rotated struct {
	Records  int // token records that were sealed again
	Webhooks int // webhooks whose secrets were sealed again
	Entries  int // audit log entries that were sealed again
	Secrets  int // number of secrets that are valid from now on
}

// RotateSecret gives a data directory a new secret and seals all stored data with
// it. The old secret stays valid until FinishRotation, for data that is not stored,
// such as tokens in requests. The registry must not run. After an interruption,
// call RotateSecret again: it continues with the secret that it has created.
func RotateSecret(ctx context.Context, dir string) (Rotated, error) {
	secrets, err := openExisting(dir)
	if err != nil {
		return Rotated{}, err
	}
	if len(secrets) == 1 {
		if secrets, err = beginRotation(ctx, dir, secrets); err != nil {
			return Rotated{}, err
		}
	}
	return reseal(ctx, dir, secrets, func() error { return nil })
}

// FinishRotation removes the old secret, after it has sealed all stored data with
// the new one. The registry must not run. FinishRotation may be repeated after an
// interruption. Without a rotation it returns an error.
func FinishRotation(ctx context.Context, dir string) (Rotated, error) {
	secrets, err := openExisting(dir)
	if err != nil {
		return Rotated{}, err
	}
	if len(secrets) == 1 {
		return Rotated{}, errors.New("there is no rotation to finish: rotate-secret without --finish begins one")
	}
	done, err := reseal(ctx, dir, secrets, func() error {
		return replaceFile(dir, secretFile, string(secrets.Current()))
	})
	if err == nil {
		done.Secrets = 1
	}
	return done, err
}

// openExisting returns the secrets of an existing data directory: two during a rotation, otherwise one.
func openExisting(dir string) (keyring.Ring, error) {
	if err := mustBeOurs(dir, formatFile); err != nil {
		return nil, err
	}
	return openData(dir)
}

func openAuth(ctx context.Context, dir string, secrets keyring.Ring, log *slog.Logger) (*authsvc.Server, error) {
	return authsvc.New(ctx, authsvc.Config{Store: "file:" + filepath.Join(dir, tokensFile), Secrets: secrets, Log: log})
}

// beginRotation creates a new secret and stores it together with the old one. It fails if another process has the
// data open. To check this, it opens the store with the old secret. It must not use the new secret, which is not
// saved yet: after an interruption, nobody could read the store.
func beginRotation(ctx context.Context, dir string, old keyring.Ring) (keyring.Ring, error) {
	auth, err := openAuth(ctx, dir, old, warningsOnly())
	if err != nil {
		return nil, err
	}
	both := append(keyring.Ring{[]byte(newSecret())}, old...)
	return both, errors.Join(keepBoth(dir, both), auth.Close())
}

// keepBoth stores both secrets. Before that, it pins the SERVER_ID, which was derived from the old secret.
func keepBoth(dir string, secrets keyring.Ring) error {
	// If an id is pinned already, writeFile keeps it.
	if err := writeFile(dir, serverIDFile, gateway.ServerIDOf(secrets[1])); err != nil {
		return err
	}
	return replaceFile(dir, secretFile, string(secrets[0])+"\n"+string(secrets[1]))
}

// reseal seals all token records, webhooks and audit log entries with the current secret. Then it calls the function in
// the argument `last`. Until this function returns, no other process can open the data.
func reseal(ctx context.Context, dir string, secrets keyring.Ring, last func() error) (done Rotated, err error) {
	log := warningsOnly()
	auth, err := openAuth(ctx, dir, secrets, log)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, auth.Close()) }()
	found, err := assetsvc.Reseal(ctx, assetsvc.Config{
		Store:   "file:" + filepath.Join(dir, assetsFile),
		Auth:    httpserver.InProcess(auth.Handler()),
		Secrets: secrets,
		Log:     log,
	})
	if err != nil {
		return done, err
	}
	done = Rotated{Records: found.Anew, Webhooks: found.Webhooks.Anew, Secrets: len(secrets)}
	if foreign := found.Foreign + found.Webhooks.Foreign; foreign > 0 {
		const text = "%d token records or webhooks are sealed with a secret that is not in %s: add it there as another line"
		return done, fmt.Errorf(text, foreign, filepath.Join(dir, secretFile))
	}
	if done.Entries, err = auth.Reseal(ctx); err != nil {
		return done, err
	}
	if err := filesvc.Renew(filepath.Join(dir, filesFile), secrets, log); err != nil {
		return done, err
	}
	return done, last()
}

// Compact rewrites the stores of a data directory without their free pages. Free pages still contain erased
// values until they are used again. For each file it writes the sizes before and after to w. The registry must
// not run. Each file is replaced completely or not at all.
func Compact(dir string, w io.Writer) error {
	if err := mustBeOurs(dir, formatFile); err != nil {
		return err
	}
	for _, name := range []string{assetsFile, tokensFile, filesFile} {
		before, after, err := boltfile.Compact(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s: %d bytes before, %d after\n", name, before, after); err != nil {
			return err
		}
	}
	return nil
}
