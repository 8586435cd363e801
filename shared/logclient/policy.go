package logclient

import (
	"errors"
	"fmt"
	"io"
	"os"

	"asset-registry/shared/errs"
	"asset-registry/shared/translog"
)

// ReadPolicy reads a policy file (docs/log.md, "Witnesses"). Errors about its content
// name the file and have the cause translog.ErrPolicy.
func ReadPolicy(file string) (*translog.Policy, error) {
	r, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the policy of the log: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, translog.MaxPolicy+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read the policy of the log: %w", err)
	}
	policy, err := translog.ParsePolicy(text)
	return policy, errs.In(err, "read the policy of the log: %s", file)
}
