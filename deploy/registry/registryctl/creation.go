package registryctl

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"asset-registry.example/client"
	"asset-registry/shared/durable"
)

// creation is a request that creates an asset. It can be repeated after an interruption, so that the tokens are
// not lost: the idempotency key is in the access file before the request is sent.
type creation struct {
	file    string // file for the tokens; "": the tokens are printed
	key     string // idempotency key
	resumed bool   // an earlier run may already have sent the request
}

// begunFile is the content of an access file while it is not known whether the asset was created.
type begunFile struct {
	Once   string          `json:"idempotencyKey"`
	Access json.RawMessage `json:"access,omitempty"`
}

// beginCreation returns the creation that a file records, or records a new one in it. The last argument is the
// idempotency key of a new creation; if it is "", the key is random. A file with any other content is refused.
func beginCreation(file, once string) (creation, error) {
	c := creation{file: file, key: once}
	if c.key == "" {
		c.key = rand.Text()
	}
	if file == "" {
		return c, nil
	}
	made, err := newAccessFile(file)
	if errors.Is(err, fs.ErrExist) {
		return resumed(c, once, err)
	}
	if err != nil {
		return c, err
	}
	err = errors.Join(json.NewEncoder(made).Encode(begunFile{Once: c.key}), made.Sync(), made.Close())
	if err != nil {
		return c, fmt.Errorf("keep the idempotency key: %w", errors.Join(err, os.Remove(file)))
	}
	return c, nil
}

// resumed returns the creation that the file records. If the file has other content, it returns the given error.
func resumed(c creation, once string, exists error) (creation, error) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return c, fmt.Errorf("keep the tokens: %w", err)
	}
	var begun begunFile
	if json.Unmarshal(text, &begun) != nil || begun.Once == "" || begun.Access != nil {
		return c, exists
	}
	if once != "" && once != begun.Once {
		return c, fmt.Errorf("%s keeps a creation with another idempotency key than --once: name a new file", c.file)
	}
	c.key, c.resumed = begun.Once, true
	return c, nil
}

// keep replaces the idempotency key in the file by the tokens.
func (c creation) keep(a answer) error {
	if c.file == "" {
		return nil
	}
	a.Data = &client.Asset{ID: a.Data.ID}
	text, err := json.Marshal(a)
	if err == nil {
		err = durable.WriteFile(c.file, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep the tokens: %w", err)
	}
	return nil
}

// failed adds to err what the user can do. If the registry has certainly created nothing, it returns err and
// removes the file.
func (c creation) failed(err error) error {
	status := client.StatusOf(err)
	refused := status >= http.StatusBadRequest && status < http.StatusInternalServerError && !c.resumed
	switch {
	case c.file == "" && refused:
		return err
	case c.file == "":
		return fmt.Errorf("%w; the asset may be there: repeat the command within 24 hours with --once %s to get its tokens",
			err, c.key)
	case refused:
		return errors.Join(err, os.Remove(c.file))
	}
	const again = "the asset may be there: repeat the command within 24 hours to get its tokens into"
	return fmt.Errorf("%w; %s %s", err, again, c.file)
}
