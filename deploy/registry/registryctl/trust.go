package registryctl

import (
	"errors"
	"fmt"
	"io"
	"os"

	"asset-registry/shared/logclient"
	"asset-registry/shared/translog"
)

// trust has the flags that say which checkpoints the user trusts.
type trust struct {
	PublicKey []string `sep:"none" placeholder:"KEY" help:"Public key of the log. May be repeated."`
	Policy    string   `placeholder:"FILE" in:"" help:"Policy file (C2SP tlog-policy) with the log's key and witnesses."`
}

// policy returns the policy that the flags describe.
func (t trust) policy() (*translog.Policy, error) {
	switch {
	case t.Policy != "" && len(t.PublicKey) > 0:
		return nil, errors.New("--public-key and --policy exclude each other")
	case t.Policy != "":
		return logclient.ReadPolicy(t.Policy)
	case len(t.PublicKey) == 0:
		return nil, errors.New("name the log's public key with --public-key, or a policy file with --policy")
	}
	var keys []translog.PublicKey
	for _, text := range t.PublicKey {
		key, err := translog.ParsePublicKey(text)
		if err != nil {
			return nil, fmt.Errorf("--public-key must be the whole line NAME+ID+KEY that the log's operator gives: %w", err)
		}
		keys = append(keys, key)
	}
	return translog.LogPolicy(keys...)
}

// readUpTo reads a file of at most `limit` bytes.
func readUpTo(file string, limit int64) ([]byte, error) {
	r, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", file, limit)
	}
	return text, nil
}

// cosigners returns the names of the witnesses that cosigned a checkpoint.
func cosigners(c translog.Signed) []string {
	names := []string{}
	for _, cosigner := range c.Cosigners {
		names = append(names, cosigner.Name)
	}
	return names
}
