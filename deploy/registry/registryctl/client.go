package registryctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpclient"
)

const (
	callTimeout = 60 * time.Second
	maxAnswer   = 64 << 20 // bytes
)

// errNoKey is returned for a request that needs an API key when none is set.
var errNoKey = errors.New("no API key: set one in the config file, the environment or a flag (registryctl --help)")

// public returns a client of the public API. withKey says that the call needs an
// API key.
func (p *program) public(withKey bool) (*client.Client, error) {
	if withKey && p.Key == "" {
		return nil, errNoKey
	}
	return client.New(client.Config{
		URL: p.URL, Key: client.Secret(p.Key), UserAgent: "registryctl", Timeout: callTimeout,
		Retry: client.Retry{Tries: 4, Total: 15 * time.Second},
	})
}

// noAnswer says in front of a network's error that the registry does not answer.
func noAnswer(err error) error {
	if _, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("the registry does not answer: %w", err)
	}
	return err
}

// send makes a request of the admin API and returns the body of the answer. For a
// status of 400 or more, the error holds the registry's description. body may be nil.
func send(ctx context.Context, method, address, key string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%q is not a valid address", address)
	}
	req.SetBasicAuth(key, "")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := httpclient.New(nil).Do(req)
	if err != nil {
		return nil, noAnswer(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the answer ended early: %w", err)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return text, nil
	}
	return nil, refusal(resp.Status, text)
}

// refusal describes an answer with an error status.
func refusal(status string, text []byte) error {
	var answer struct{ Errors []fault.Detail }
	if err := json.Unmarshal(text, &answer); err != nil || len(answer.Errors) == 0 {
		return fmt.Errorf("the server answers %s and is not the registry: check the address", status)
	}
	details := make([]string, len(answer.Errors))
	for i, d := range answer.Errors {
		details[i] = fmt.Sprintf("%s %s: %s", d.Location, d.Name, d.Description)
	}
	return fmt.Errorf("%s: %s", status, strings.Join(details, "; "))
}

// call calls the admin API. body is sent as JSON; nil sends no body.
func call[T any](ctx context.Context, p *program, method, path string, query url.Values, body any) (
	answer adminapi.Response[T], err error,
) {
	if p.AdminKey == "" {
		return answer, errNoKey
	}
	var encoded []byte
	if body != nil {
		if encoded, err = json.Marshal(adminapi.Request[any]{Data: body}); err != nil {
			return answer, fmt.Errorf("encode request: %w", err)
		}
	}
	address := strings.TrimSuffix(p.AdminURL, "/") + adminapi.Prefix + path + "?" + query.Encode()
	text, err := send(ctx, method, address, p.AdminKey, encoded)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, errors.New("the answer is not the admin API's")
	}
	return answer, nil
}

// all reads a list page by page, from the first page to the last, and calls visit
// for each page. It sets "after" in query.
func all[T any](ctx context.Context, p *program, path string, query url.Values, visit func([]T)) error {
	for {
		page, err := call[[]T](ctx, p, http.MethodGet, path, query, nil)
		if err != nil {
			return err
		}
		visit(page.Data)
		if page.Next == "" {
			return nil
		}
		query.Set("after", page.Next)
	}
}
